"""Stretches of a text: by the positions of its characters, and by those that are not white space.

"Dense" positions count the characters that are not white space. Chunkers trim, join and wrap lines, so white space
differs between a document and a chunk of it. All other characters are equal, code point by code point.
"""

from typing import Final, NamedTuple

MAX_GRADE: Final = 1_000_000
"""The largest grade of a span. Sums of much larger ones would be infinite."""


class Span(NamedTuple):
    """The characters from `start` up to, and not including, `end`; both count from 0."""

    start: int
    end: int


class DenseSpan(NamedTuple):
    """A stretch of a document from `start` up to, and not including, `end`, in dense positions."""

    document: str
    start: int
    end: int


def dense(text: str) -> str:
    """Return the text without its white space."""
    return "".join(text.split())
