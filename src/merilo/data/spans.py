"""A stretch of a text, by the places of its characters."""

from typing import NamedTuple


class Span(NamedTuple):
    """The characters from `start` up to, but not with, `end`; both count from 0."""

    start: int
    end: int
