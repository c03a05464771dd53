"""Words that are hyphenated at the end of a line, as in text from a PDF, joined again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BROKEN: Final = re.compile(
    r"(?<![^\W\d_])(?P<first>[^\W\d_]++)(?P<hyphen>[-\u2010\u00ad])[ \t]*+\r?\n[ \t>]*+(?P<second>[^\W\d_]++)"
)
"""Possessive, so that the time is in proportion to the text."""
_WORD: Final = re.compile(r"[^\W\d_]++(?:-[^\W\d_]++)*+")
_LINE_END: Final = re.compile(r"[-\u2010\u00ad][ \t]*+\r?\n")


def join_broken_words(*groups: Sequence[str]) -> list[tuple[str, ...]]:
    r"""Return groups of texts in which each word that a line end divides is whole.

    A part that begins with a capital keeps its hyphen ("Saint-", "Denis"). Any other word loses it, unless only the
    hyphenated word occurs elsewhere in the texts.

    >>> join_broken_words(["two broth-\ners"], ["a well-\nknown house"], ["well-known"])
    [('two brothers',), ('a well-known house',), ('well-known',)]
    """
    if not any("\n" in text and _LINE_END.search(text) for group in groups for text in group):
        return [tuple(group) for group in groups]
    whole = {
        word for group in groups for text in group for word in _WORD.findall(text.replace("\u2010", "-").casefold())
    }

    def joined(found: re.Match[str]) -> str:
        one, two = found["first"], found["second"]
        plain, compound = one + two, f"{one}-{two}"
        if found["hyphen"] == "\u00ad" or plain.casefold() in whole:
            return plain
        return compound if compound.casefold() in whole or two[0].isupper() else plain

    return [tuple(_joined(text, joined) for text in group) for group in groups]


def _joined(text: str, joined: Callable[[re.Match[str]], str]) -> str:
    return _BROKEN.sub(joined, text) if "\n" in text and _LINE_END.search(text) else text
