"""The slots of a text: numbers with units, dates, names, negations and comparison words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Token(NamedTuple):
    """A word or number of a text."""

    text: str
    low: str
    stem: str
    start: int
    end: int


class Number(NamedTuple):
    """A number with its unit."""

    values: tuple[float, ...]
    """Its readings, in the base unit of its dimension."""
    dimension: str
    """For example "time", "percent", "ordinal"; empty for a plain count."""
    raw: tuple[float, ...]
    """Its readings as written, without the unit."""
    text: str
    place: int
    """The index of its first token."""
    end: int
    """The index after its last token, without the unit."""
    hedged: bool = False
    bound: int = 0
    """+1 after "at least" or "more than", -1 after "at most" or "less than"."""
    weak: bool = False
    """True for "one", which never conflicts."""


class Date(NamedTuple):
    """A date; each part is None if it is not stated."""

    year: int | None
    month: int | None
    day: int | None
    weekday: int | None
    text: str
    place: int
    years: int = 1
    """The number of years from `year` on: 10 for a decade, 100 for a century."""
    swapped: bool = False
    """True if day and month may be the other way round, as in 03/04/2020."""


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The tokens of a text and its slots."""

    tokens: tuple[Token, ...]
    stems: frozenset[str]
    numbers: tuple[Number, ...]
    dates: tuple[Date, ...]
    clocks: tuple[tuple[int, int], ...]
    """Times of day as minutes and token index."""
    names: frozenset[int]
    """Indices of tokens that are capitalised within a sentence."""
    initials: frozenset[int]
    """Indices of capitalised tokens at the beginning of a sentence: names or not."""
    negations: tuple[int, ...]
    """Indices of tokens that deny."""
    poles: tuple[tuple[int, str, int], ...]
    """Index, axis and pole of each comparison word."""
    used: frozenset[int]
    """Indices of tokens of numbers and dates."""


class Difference(NamedTuple):
    """A slot of a statement and the slot of the sentence that it differs from, as written; empty if there is none."""

    kind: str
    stated: str
    found: str
