"""Support with the sentences that it rests on: copied sentences, the closest sentence, and the slots that differ."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from merilo.bounded_cache import BoundedCache
from merilo.data.sentences import sentences
from merilo.data.short_answers import affirms, taken_apart
from merilo.judges.lexical_text import words
from merilo.judges.lexical_units import item_text, units_of
from merilo.judges.question_echo import strip_question_echoes
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
