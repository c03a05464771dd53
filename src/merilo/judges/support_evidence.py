"""Support with the sentences that it rests on: copied sentences, the closest sentence, and the slots that differ."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from merilo.bounded_cache import BoundedCache
from merilo.data.language import detect_language
from merilo.data.sentences import sentences
from merilo.data.short_answers import affirms, has_few_words, taken_apart
from merilo.judges.lexical_text import words
from merilo.judges.lexical_units import item_text, units_of
from merilo.judges.question_echo import strip_question_echoes
from merilo.judges.slot_check import absent_slot, denies, places_of, unstated
from merilo.judges.slot_types import Difference
from merilo.judges.support_alignment import align
from merilo.judges.support_candidates import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.judges.lexical_match import Lexicon, Matches
    from merilo.judges.support_result import SupportResult

P_COPIED: Final = 0.99
"""The probability that a copied sentence is supported. It is not fitted: nothing but the question can matter."""
P_COMPLETE: Final = 0.9
"""The same for a statement whose words and slots are all in one sentence, in about their order."""
_BELOW: Final = 0.95
"""A statement that differs gets its probability times this fraction of the threshold, which keeps their order."""
_SAME: Final = 0.8
"""Fraction of a question, by weight, from which a sentence without a negation affirms it."""
_DIGITS: Final = 6
_QUOTES: Final = dict.fromkeys(map(ord, "\"'“”„‟‘’‚‛«»‹›`*_"))
_DASHES: Final = dict.fromkeys(map(ord, "‐‑‒–—−"), "-")
_WHITE: Final = re.compile(r"\s+")
_MARKS: Final = re.compile(r"[\s>#|]*")
_END: Final = " .!;:,…。|"
_CACHED_BYTES: Final = 16_000_000
_MIN_CITED: Final = 0.2
"""Fraction of a statement, by weight, from which a sentence is named as the closest one."""


def copied_from(statement: str, contexts: Sequence[Sequence[str]]) -> tuple[Position, ...]:
    """Return the sentences or list items of contexts, given as their sentences, that equal a statement.

    Case, quotation marks, white space, list markers and final punctuation do not count. A statement of several
    sentences is copied if one context contains them all. The positions are of all contexts that contain it. A question
    states nothing, and a sentence that echoes the question of a short answer does not support it.
    """
    # A block of code may contain a blank line, as a question with its answer does.
    is_block = any(_normal(statement) in _normal_sentences[tuple(own)] for own in contexts)
    apart = None if is_block else taken_apart(statement)
    asked, said = apart if apart is not None else ("", statement)
    whole = _normal(said)
    if not words(said).stems or words(said).is_question or (apart is not None and affirms(said) is not None):
        return ()
    parts = [each for each in map(_normal, sentences(said)) if each]
    found: list[Position] = []
    for context, own in enumerate(contexts):
        places = _normal_sentences[tuple(own)]
        if whole in places:
            at = [places[whole]]
        elif len(parts) > 1 and all(each in places for each in parts):
            at = [places[each] for each in parts]
        else:
            continue
        if asked and not any(words(each).stems for each in strip_question_echoes(asked, [own[each] for each in at])):
            continue
        found += [Position(context, each) for each in dict.fromkeys(at)]
    return tuple(found)


def with_evidence(
    result: SupportResult,
    statement: str,
    contexts: Sequence[Sequence[str]],
    *,
    found: Sequence[Matches],
    lexicon: Lexicon,
    judge: Callable[[str], SupportResult],
) -> SupportResult:
    """Return a result with its sentences, as the slots of the statement require it.

    A statement whose slots differ from its closest sentence is not supported; one that is complete there is. `found`:
    the matches of the statement in each context. `judge` judges the statement with its numbers written as there.
    """
    aligned = align(statement, contexts, found, lexicon)
    if not aligned:
        return result
    closest = aligned[0]
    if result.decided_by == "supported":
        if closest.differences:
            probability = round(result.probability * result.yes_from * _BELOW, _DIGITS)
            result = replace(
                result, supported=False, evidence=(), probability=probability, differences=closest.differences
            )
        elif closest.rewritten is not None and not closest.complete and not result.supported:
            other = judge(closest.rewritten)
            result = max(result, other, key=lambda each: each.probability)
        elif closest.complete:
            complete = {each.position.context for each in aligned if each.complete}
            evidence = tuple(sorted(complete.union(result.evidence)))
            result = replace(result, supported=True, evidence=evidence, probability=max(result.probability, P_COMPLETE))
    cited = [each.position for each in aligned if each.position.context in result.evidence]
    if not result.supported:
        cited = [each.position for each in aligned[:1] if each.share >= _MIN_CITED]
    return replace(result, sentences=tuple(cited))


def checked(
    result: SupportResult,
    said: str,
    asked: str,
    contexts: Sequence[Sequence[str]],
    *,
    found: Sequence[Matches],
    table: Mapping[str, float],
) -> SupportResult:
    """Return a result, not supported if no sentence of a supporting context states the slots of a short statement.

    `asked`: the question that the statement answers, or an empty text.
    """
    if not has_few_words(said, detect_language(said)):
        return _without_absent(result, said, contexts)
    found_at, closest = _stating(said, asked, contexts, found, table)
    if result.supported and found_at.keys() & set(result.evidence):
        evidence = tuple(at for at in result.evidence if at in found_at)
        return replace(result, evidence=evidence, sentences=tuple(found_at[at] for at in evidence))
    differences = result.differences or ((closest,) if closest and not found_at else ())
    return _refused(result, differences) if result.supported else replace(result, differences=differences)


def _stating(
    said: str, asked: str, contexts: Sequence[Sequence[str]], found: Sequence[Matches], table: Mapping[str, float]
) -> tuple[dict[int, Position], Difference | None]:
    """Return the best sentence of each context that states a short statement, and the difference of the closest one."""
    answer = affirms(said) if asked else None
    stating: dict[int, tuple[float, Position]] = {}
    closest: tuple[float, Difference | None] = (-1.0, None)
    for context, (own, each) in enumerate(zip(contexts, found, strict=True)):
        for place, unit in enumerate(places_of(own)):
            share = each.share(each.prefix_masks[place])
            if not share:
                continue
            differs = unstated(said, asked, unit, table) if answer is None else _unlike(asked, unit.text, answer, share)
            if differs is None and share > stating.get(context, (0.0,))[0]:
                stating[context] = (share, Position(context, each.owners[place]))
            if share > closest[0]:
                closest = (share, differs)
    if answer is not None and closest[1] is not None:
        return {}, closest[1]
    return {context: position for context, (_, position) in stating.items()}, closest[1]


def _refused(result: SupportResult, differences: tuple[Difference, ...]) -> SupportResult:
    """Return a supported result as not supported because of differences."""
    probability = round(result.probability * result.yes_from * _BELOW, _DIGITS)
    return replace(
        result,
        supported=False,
        evidence=(),
        probability=probability,
        sentences=result.sentences[:1],
        differences=differences,
    )


def _without_absent(result: SupportResult, said: str, contexts: Sequence[Sequence[str]]) -> SupportResult:
    """Return a result, not supported if a number or date of the statement is in none of the contexts."""
    absent = absent_slot(said, contexts) if result.supported else None
    return result if absent is None else _refused(result, (absent,))


def _unlike(asked: str, sentence: str, answer: object, share: float) -> Difference | None:
    """Return the negation by which a sentence gives the other answer than a yes (True) or no; None if unknown."""
    is_denied = denies(sentence, asked) != denies(asked, asked)
    if answer and is_denied:
        return Difference("negation", "yes", "a negation")
    if not answer and not is_denied and share >= _SAME:
        return Difference("negation", "no", "no negation")
    return None


def _normal(text: str) -> str:
    """Return a sentence in the form in which copies are compared."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    plain = item_text(_MARKS.sub("", plain, count=1)).translate({**_QUOTES, **_DASHES}).casefold()
    return _WHITE.sub(" ", plain).strip(_END)


def _normals(own: tuple[str, ...]) -> Mapping[str, int]:
    """Return the position of each sentence, and of each line of code or of a table, by its normal form."""
    found: dict[str, int] = {}
    for place, sentence in enumerate(own):
        if words(sentence).is_question:
            continue
        found.setdefault(_normal(sentence), place)
        if "\n" in sentence:
            for unit in units_of(sentence):
                found.setdefault(_normal(unit), place)
    return found


def _bytes_of(own: tuple[str, ...], found: Mapping[str, int]) -> int:
    return 200 + sum(300 + 2 * len(each) for each in own) + 100 * len(found)


_normal_sentences: Final = BoundedCache(_normals, size=_bytes_of, max_size=_CACHED_BYTES)
