"""Statements that are copied from a context: they are supported in every language, whatever the model says."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.bounded_cache import BoundedCache
from merilo.data.sentences import sentences
from merilo.data.short_answers import affirms, taken_apart
from merilo.judges.question_echo import strip_question_echoes
from merilo.judges.refusals import is_question
from merilo.judges.words import stems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

P_COPIED: Final = 0.99
"""The probability that a copied sentence is supported. It is not fitted: nothing but the question can matter."""
_QUOTES: Final = dict.fromkeys(map(ord, "\"'“”„‟‘’‚‛«»‹›`*_"))
_DASHES: Final = dict.fromkeys(map(ord, "‐‑‒–—−"), "-")
_WHITE: Final = re.compile(r"\s+")
_MARKS: Final = re.compile(r"[\s>#|]*(?:(?:[-*+•–]|\d{1,3}[.)]|[a-z]\))\s+)?")
_END: Final = " .!;:,…。|"
_CACHED_BYTES: Final = 16_000_000


class Position(NamedTuple):
    """A sentence of a context."""

    context: int
    sentence: int


def copied_from(statement: str, contexts: Sequence[Sequence[str]]) -> tuple[Position, ...]:
    """Return the sentences or list items of contexts, given as their sentences, that equal a statement.

    Case, quotation marks, white space, list markers and final punctuation do not count. A statement of several
    sentences is copied if one context contains them all. The positions are of all contexts that contain it. A question
    states nothing, and a sentence that echoes the question of a short answer does not support it.
    """
    # A block of code may contain a blank line, as a question with its answer does.
    is_block = any(_normal(statement) in _normal_sentences[tuple(own)] for own in contexts)
    asked, said = (None if is_block else taken_apart(statement)) or ("", statement)
    if not stems(said) or is_question(said) or (asked and affirms(said) is not None):
        return ()
    whole, parts = _normal(said), [each for each in map(_normal, sentences(said)) if each]
    found: list[Position] = []
    for context, own in enumerate(contexts):
        places = _normal_sentences[tuple(own)]
        wanted = [whole] if whole in places else parts if len(parts) > 1 else [""]
        at = [places[each] for each in wanted if each in places]
        if len(at) < len(wanted):
            continue
        if not asked or any(map(stems, strip_question_echoes(asked, [own[each] for each in at]))):
            found += [Position(context, each) for each in dict.fromkeys(at)]
    return tuple(found)


def _normal(text: str) -> str:
    """Return a sentence in the form in which copies are compared."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    plain = _MARKS.sub("", plain, count=1).translate({**_QUOTES, **_DASHES}).casefold()
    return _WHITE.sub(" ", plain).strip(_END)


def _normals(own: tuple[str, ...]) -> Mapping[str, int]:
    """Return the position of each sentence, and of each of its lines, by its normal form."""
    found: dict[str, int] = {}
    for place, sentence in enumerate(own):
        if not is_question(sentence):
            for text in (sentence, *(sentence.split("\n") if "\n" in sentence else ())):
                found.setdefault(_normal(text), place)
    return found


def _bytes_of(own: tuple[str, ...], found: Mapping[str, int]) -> int:
    return 200 + sum(300 + 2 * len(each) for each in own) + 100 * len(found)


_normal_sentences: Final = BoundedCache(_normals, size=_bytes_of, max_size=_CACHED_BYTES)
