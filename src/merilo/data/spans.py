"""A stretch of a text, by the positions of its characters."""

from typing import NamedTuple


class Span(NamedTuple):
    """The characters from `start` up to, and not including, `end`; both count from 0."""

    start: int
    end: int
