"""Slots of a text: its numbers with units, dates, names, negations and comparison words, in comparable form.

Numbers of every script are read, and words of the languages in `slot_words`. A number has several readings if its
form is ambiguous: "1.000" is 1000 and 1. Two numbers are equal if any of their readings are.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from merilo.bounded_cache import BoundedCache
from merilo.judges.lexical_text import stems_of
from merilo.judges.numerals import in_digits
from merilo.judges.slot_dates import DateReader
from merilo.judges.slot_numbers import NumberReader
from merilo.judges.slot_types import Date, Number, Slots, Token
from merilo.judges.slot_words import (
    AXES,
    FUNCTION_WORDS,
    NEGATIONS,
    PHRASES,
    UNABLE,
)

_CACHED_BYTES: Final = 16_000_000
_BYTES_PER_TOKEN: Final = 600
_EXACT: Final = 1e-6
_ROUNDED: Final = 0.02
_HEDGED: Final = 0.1
_MONTH_S: Final = 30.44 * 86400
_CALENDAR: Final = 0.03


def slots(text: str) -> Slots:
    """Return the slots of a text; short texts are cached."""
    return _cached[text] if len(text) <= _MAX_CACHED else _slots(text)


def equal_numbers(one: Number, other: Number) -> bool:
    """Return True if a statement's number is the number of a source: equal, rounded, or within its bound."""
    if one.dimension != other.dimension:
        if {one.dimension, other.dimension} == {"time", "months"}:
            return _near(_in_seconds(one), _in_seconds(other), _CALENDAR)
        plain = "" in {one.dimension, other.dimension}
        return plain and "ordinal" not in {one.dimension, other.dimension} and _near(one.raw, other.raw, _EXACT)
    if same_value(one, other):
        return True
    if one.dimension == "ordinal":
        return False
    if one.bound and not other.bound and any(one.bound * (b - a) >= 0 for a in one.values for b in other.values):
        return True
    if one.hedged or other.hedged:
        return _near(one.values, other.values, _HEDGED)
    return any(_rounds(a, b) or _rounds(b, a) for a in one.values for b in other.values)


def same_value(one: Number, other: Number) -> bool:
    """Return True if two numbers with units have the same value: "4 hours", "240 minutes"."""
    return one.dimension == other.dimension and _near(one.values, other.values, _EXACT)


def equal_dates(one: Date, other: Date) -> bool:
    """Return True if no part of two dates differs and at least one is in both."""
    if one.swapped or other.swapped:
        flipped = one._replace(month=one.day, day=one.month, swapped=False)
        plain = one._replace(swapped=False)
        theirs = other._replace(swapped=False)
        return equal_dates(plain, theirs) or equal_dates(flipped, theirs)
    same = False
    for mine, their in zip(one[1:4], other[1:4], strict=True):
        if mine is not None and their is not None:
            if mine != their:
                return False
            same = True
    if one.year is not None and other.year is not None:
        return one.year < other.year + other.years and other.year < one.year + one.years
    return same


def dates_differ(one: Date, other: Date) -> bool:
    """Return True if two dates state the same part differently."""
    shared = any(mine is not None and their is not None for mine, their in zip(one[:4], other[:4], strict=True))
    return shared and not equal_dates(one, other)


def _near(ours: tuple[float, ...], theirs: tuple[float, ...], tolerance: float) -> bool:
    return any(abs(a - b) <= tolerance * max(abs(a), abs(b)) for a in ours for b in theirs)


def _in_seconds(number: Number) -> tuple[float, ...]:
    return tuple(value * _MONTH_S for value in number.values) if number.dimension == "months" else number.values


def _rounds(short: float, long: float) -> bool:
    """Return True if the first number is the second one, rounded to at least two significant digits."""
    if not short or not long or abs(short - long) > _ROUNDED * abs(long):
        return False
    digits, more = (len(f"{abs(each):.12g}".replace(".", "").strip("0")) for each in (short, long))
    return 2 <= digits < more and f"{abs(long):.{digits - 1}e}" == f"{abs(short):.{digits - 1}e}"


def _slots(text: str) -> Slots:
    plain = text if text.isascii() else in_digits(unicodedata.normalize("NFC", text))
    return _Reader(plain).read()


class _Reader(DateReader, NumberReader):
    """One pass over the tokens of a text."""

    def read(self) -> Slots:
        place = 0
        while place < len(self.found):
            place = self.read_date(place) or self.read_clock(place) or self.read_number(place) or place + 1
        tokens = tuple(
            Token(each.group(), low, _stem(low), each.start(), each.end())
            for each, low in zip(self.found, self.low, strict=True)
        )
        names, initials = self._names()
        negations, poles = self._words()
        return Slots(
            tokens, frozenset(each.stem for each in tokens), tuple(self.numbers), tuple(self.dates),
            tuple(self.clocks), names, initials, negations, poles, frozenset(self.used),
        )  # fmt: skip

    def _names(self) -> tuple[frozenset[int], frozenset[int]]:
        names, initials = set[int](), set[int]()
        for place, each in enumerate(self.found):
            word = each.group()
            if each["word"] is None or not word[0].isupper() or place in self.used:
                continue
            if self.low[place] in FUNCTION_WORDS and not (word.isupper() and len(word) > 1):
                continue
            before = self.text[max(0, each.start() - 3) : each.start()].rstrip()
            opens = not before or before[-1] in '.!?:;\n"“„«(|•*#>' or before in {"-", "–"}
            (initials if opens and not (word.isupper() and len(word) > 1) else names).add(place)
        return frozenset(names), frozenset(initials)

    def _words(self) -> tuple[tuple[int, ...], tuple[tuple[int, str, int], ...]]:
        """Return the negations and the comparison words."""
        negations: list[int] = []
        poles: list[tuple[int, str, int]] = []
        place = 0
        while place < len(self.low):
            phrase = self._phrase(place)
            if phrase is not None:
                size, meaning = phrase
                if meaning == "no_longer":
                    negations.append(place)
                poles += [(place, axis, pole) for axis, pole in AXES.get(meaning, ())]
                place += size
                continue
            word = self.low[place]
            if (word in NEGATIONS or word.endswith("n't") or word in UNABLE) and not self._answers(place):
                negations.append(place)
            elif place not in self.used:
                poles += [(place, axis, pole) for axis, pole in AXES.get(word, ())]
            place += 1
        return tuple(negations), tuple(poles)

    def _answers(self, place: int) -> bool:
        """Return True for a "no" that answers a question, before a statement: "No, it is."."""
        return place == 0 and (self.gap(1).strip()[:1] in {",", ".", ";", "!", ":"} or self.word(1) == "but")

    def _phrase(self, place: int) -> tuple[int, str] | None:
        for words, meaning in _PHRASES_BY_START.get(self.low[place], ()):
            if tuple(self.low[place : place + len(words)]) == words:
                return len(words), meaning
        return None


def _stem(low: str) -> str:
    found = stems_of(low)
    return "".join(found) if found else low


_PHRASES_BY_START: Final[dict[str, list[tuple[tuple[str, ...], str]]]] = {}
for _words, _meaning in sorted(PHRASES, key=lambda each: -len(each[0])):
    _PHRASES_BY_START.setdefault(_words[0], []).append((_words, _meaning))


_MAX_CACHED: Final = 4_000
"""Characters. A longer text is read each time."""


def _bytes_of(text: str, found: Slots) -> int:
    return 1_000 + len(text) + _BYTES_PER_TOKEN * len(found.tokens)


_cached: Final = BoundedCache(_slots, size=_bytes_of, max_size=_CACHED_BYTES)
