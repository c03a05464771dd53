"""Statements that are copied from a context: they are supported in every language, whatever the model says."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data.sentences import sentences
from merilo.data.short_answers import affirms, taken_apart
from merilo.judges.question_echo import strip_question_echoes
from merilo.judges.refusals import is_question
from merilo.judges.words import stems

if TYPE_CHECKING:
    from collections.abc import Sequence

P_COPIED: Final = 0.99
"""The probability that a copied sentence is supported. It is not fitted: nothing but the question can matter."""
_SIGNS: Final = str.maketrans("‐‑‒–—−", "------", "\"'“”„‟‘’‚‛«»‹›`*_")
"""Dashes become hyphens; quotation marks are removed."""
_MARKS: Final = re.compile(r"[\s>#|]*(?:(?:[-*+•–]|\d{1,3}[.)]|[a-z]\))\s+)?")
_END: Final = " .!;:,…。|"


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
    known = [_normals(own) for own in contexts]
    # A block of code may contain a blank line, as a question with its answer does.
    is_block = any(_normal(statement) in each for each in known)
    asked, said = (None if is_block else taken_apart(statement)) or ("", statement)
    if not stems(said) or is_question(said) or (asked and affirms(said) is not None):
        return ()
    whole, parts = _normal(said), [each for each in map(_normal, sentences(said)) if each]
    found: list[Position] = []
    for context, (own, places) in enumerate(zip(contexts, known, strict=True)):
        wanted = [whole] if whole in places or len(parts) < 2 else parts
        at = [places[each] for each in wanted if each in places]
        is_echo = asked and not any(map(stems, strip_question_echoes(asked, [own[each] for each in at])))
        if len(at) == len(wanted) and not is_echo:
            found += [Position(context, each) for each in dict.fromkeys(at)]
    return tuple(found)


def _normals(own: Sequence[str]) -> dict[str, int]:
    """Return the position of each sentence, and of each of its lines, by its normal form."""
    found: dict[str, int] = {}
    for place, sentence in enumerate(own):
        if not is_question(sentence):
            for text in (sentence, *(sentence.split("\n") if "\n" in sentence else ())):
                found.setdefault(_normal(text), place)
    return found


def _normal(text: str) -> str:
    """Return a sentence in the form in which copies are compared."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    plain = _MARKS.sub("", plain, count=1).translate(_SIGNS).casefold()
    return " ".join(plain.split()).strip(_END)
