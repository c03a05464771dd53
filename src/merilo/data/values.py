"""Numbers and dates of a text in any form, and whether two texts have the same ones.

"4 hours" equals "240 minutes", "1,000" equals "one thousand", "$1.2 million" equals "$1,200,000", "noon" equals "12:00"
and "May 3" equals "3 May", in digits of any script. "5 MW" and "5 mW" differ.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_TABLES: Final[dict[str, Any]] = tomllib.loads(files("merilo.data").joinpath("values.toml").read_text("utf-8"))


def _sized(text: str) -> Iterator[tuple[str, float]]:
    """Yield words with their size, from a text such as "1 metre metres, 1000 km"."""
    for size, *words in map(str.split, text.split(",")):
        yield from ((word, float(size)) for word in words)


def _counted(name: str, start: int) -> dict[str, int]:
    return {word: at for at, word in enumerate(_TABLES[name].split(), start)}


_WORDS: Final = _counted("ones", 0) | {word: 10 * at for word, at in _counted("tens", 2).items()}
_WORDS["twice"], _WORDS["thrice"] = 2, 3
_SCALES: Final = dict(_sized(_TABLES["scales"]))
_ORDINAL_ENDS: Final = frozenset({"st", "nd", "rd", "th"})
_UNITS: Final = {word: (dimension, size) for dimension, text in _TABLES["units"].items() for word, size in _sized(text)}
_COUNTED: Final = frozenset({*_UNITS, *_SCALES})
_MONTHS: Final = {word[:size]: at for word, at in _counted("months", 1).items() for size in (3, 4, len(word))}
_OTHER_MONTHS: Final = {word: at for text in _TABLES["other_months"] for at, word in enumerate(text.split(), 1)}
"""Of other languages, in lower case; read only next to a day."""
_WEEKDAYS: Final = _counted("weekdays", 1)
FUNCTION_WORDS: Final = word_set(_TABLES["function_words"])
"""Common English words without content. Lower case."""
_PERCENTS: Final = ("per cent", "pour cent", "por ciento")
_SAME_AS: Final = dict.fromkeys(("noon", "midday"), "12:00") | {"midnight": "0:00"} | dict.fromkeys(_PERCENTS, "%")
_CLOCK: Final = re.compile(r"(?P<hour>2[0-4]|[01]?\d)(?::(?P<minute>[0-5]\d))?(?P<half>\s?[ap]m)?")
_TOKEN: Final = re.compile(
    r"(?P<clock>\b(?:2[0-4]|[01]?\d)(?::[0-5]\d(?:\s?[ap]\.?m\b\.?)?|\s?[ap]\.?m\b\.?)|\b(?:noon|midday|midnight)\b)"
    r"|(?P<code>\b(?!(?:USD|EUR|GBP|JPY|INR)\d)[A-Za-z]{1,9}-?\d{1,9}[A-Za-z]{0,3}(?:-[A-Z\d]{1,4})?\b)"
    r"|(?P<number>(?:(?<![^\s(\[,;:])[-−–])?(?:\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?:[.,]\d+)?(?!\w)|\d+(?:[.,]\d+)*))"
    r"|(?P<word>km/h|m/s|per cent|pour cent|por ciento|(?<=[\d万亿])(?:[万亿年月日元米天]|公里|公斤|小时|个月)"
    r"|[^\W\d_]+(?:['’][^\W\d_]+)*[²³]?)|(?P<symbol>[%$€£¥₹°~≈−–—:/-])"
)
_DASHES: Final = word_set("- – — −")
_CURRENCY: Final = word_set("$ € £ ¥ ₹ usd eur gbp jpy inr")
_OTHER_DIGIT: Final = re.compile(r"(?![0-9])\d")
_IN_BRACKETS: Final = re.compile(r"(?<=\d)\(([a-z])\)")
_DOTTED: Final = re.compile(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}\.\d{3},\d+")
"""Thousands as German and other languages write them."""
_DAY_MONTH_YEAR: Final = re.compile(r"(0?[1-9]|[12]\d|3[01])\.(0?[1-9]|1[0-2])\.([12]\d{3})")
_DOTTED_ONCE: Final = re.compile(r"\D{0,4}[1-9]\d{0,2}\.\d{3}(?![\d.,])")
"""Either thousands or a decimal fraction."""
_WITH_CENTS: Final = frozenset({"usd", "eur"})
_POUNDS: Final = ("pound", "pounds", "lb", "lbs")
_HEDGES: Final = word_set("about around approximately roughly nearly almost some circa ca ~ ≈")
_EXACT: Final = 1e-6
_HEDGED: Final = 0.1
_YEARS: Final = range(1000, 2101)


class Number(NamedTuple):
    """A number in the base unit of its dimension; a plain count has no dimension."""

    value: float
    dimension: str
    raw: float
    text: str
    counted: str
    """The word after it, in lower case; empty for a function word."""
    hedged: bool


class Date(NamedTuple):
    """A date; each part is 0 if it is not stated."""

    year: int
    month: int
    day: int
    weekday: int
    text: str


@dataclass(frozen=True, slots=True)
class Values:
    """The numbers and the dates of a text."""

    numbers: tuple[Number, ...]
    dates: tuple[Date, ...]

    @property
    def values(self) -> tuple[Number | Date, ...]:
        """The numbers and the dates."""
        return (*self.numbers, *self.dates)


def values(text: str) -> Values:
    """Return the numbers and the dates of a text."""
    reader = Reader(text)
    return Values(tuple(reader.numbers), tuple(reader.dates))


def composed(text: str) -> str:
    """Return a text in NFC, with digits 0 to 9; "401(k)" as "401k"."""
    text = _IN_BRACKETS.sub(r"\1", text)
    plain = text if text.isascii() else unicodedata.normalize("NFC", text)
    return plain if text.isascii() else _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain)


class Reader:
    """One pass over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = composed(text)
        self.found = list(_TOKEN.finditer(self.text))
        low = (each.group().lower().replace("’", "'") for each in self.found)
        self.low = [_SAME_AS.get(each, each) for each in low]
        self.used = set[int]()
        self.numbers: list[Number] = []
        self.dates: list[Date] = []
        place = 0
        while place < len(self.low):
            place = self._date(place) or self._clock(place) or self._number(place) or place + 1

    def word(self, place: int) -> str:
        """Return a token in lower case; empty beyond the text."""
        return self.low[place] if 0 <= place < len(self.low) else ""

    def gap(self, place: int) -> str:
        """Return the text between a token and the one before it; a space beyond the text."""
        if not 0 < place < len(self.found):
            return " "
        return self.text[self.found[place - 1].end() : self.found[place].start()]

    def integer(self, place: int) -> int:
        """Return a token as an integer of at most four digits, otherwise -1."""
        word = self.word(place)
        return int(word) if word.isdigit() and word.isascii() and len(word) <= 4 else -1

    def take(self, first: int, end: int) -> str:
        """Return the text of tokens, and record that they are part of a value."""
        self.used.update(range(first, end))
        return self.text[self.found[first].start() : self.found[end - 1].end()]

    def _date(self, place: int) -> int:
        """Read 12 March 2020, March 12, 2020, 2020-03-12, a weekday or a year; return the end, 0 if there is none."""
        number, capital = self.integer(place), self.found[place].group()[0].isupper()
        if written := _DAY_MONTH_YEAR.fullmatch(self.low[place]):
            day, month, year = map(int, written.groups())
            return self._dated(place, place + 1, (year, month, day, 0))
        if capital and self.word(place) in _WEEKDAYS:
            return self._dated(place, place + 1, (0, 0, 0, _WEEKDAYS[self.word(place)]))
        month, day = self.integer(place + 2), self.integer(place + 4)
        signs = self.word(place + 1) + self.word(place + 3)
        if number in _YEARS and signs in {"--", "年月"} and 1 <= month <= 12:
            return self._dated(place, place + 5 + (self.word(place + 5) == "日"), (number, month, day, 0))
        day, at = 0, place
        if 1 <= number <= 31:
            day, at = number, place + 1 + (self.word(place + 1) in _ORDINAL_ENDS)
            at += self.word(at) in {"of", "de"}
        month = _MONTHS.get(self.word(at), 0)
        capital = at < len(self.found) and self.found[at].group()[0].isupper()
        if month and not (capital or day or self.integer(at + 1) > 0):  # "may" and "march" are words
            month = 0
        if not month:
            month = _OTHER_MONTHS.get(self.word(at), 0) if day else 0
        if not month:
            priced, counted = self.word(place - 1) in _CURRENCY, self.word(place + 1) in _COUNTED
            is_year = number in _YEARS and not priced and not counted
            return self._dated(place, place + 1, (number, 0, 0, 0)) if is_year else 0
        end = at + 1 + (self.word(at + 1) == "de")
        if not day and 1 <= self.integer(end) <= 31:
            day, end = self.integer(end), end + 1 + (self.word(end + 1) in _ORDINAL_ENDS)
        year = self.integer(end) if self.integer(end) in _YEARS else 0
        return self._dated(place, end + bool(year), (year, month, day, 0))

    def _dated(self, first: int, end: int, parts: tuple[int, int, int, int]) -> int:
        self.dates.append(Date(*parts, self.take(first, end)))
        return end

    def _clock(self, place: int) -> int:
        """Read 14:30, 2 pm and noon as minutes; return the end, 0 if there is none."""
        found = _CLOCK.fullmatch(self.low[place].replace(".", "")) if self.found[place]["clock"] else None
        if found is None:
            return 0
        hour, half = int(found["hour"]), (found["half"] or "").strip()
        value = 60.0 * (hour % 12 + 12 * (half == "pm") if half else hour) + int(found["minute"] or 0)
        self.numbers.append(Number(value, "clock", value / 60, self.take(place, place + 1), "", hedged=False))
        return place + 1

    def _number(self, place: int) -> int:
        """Read a number in digits or words with its scale and unit; return the index after it, 0 if there is none."""
        value, end = self._value(place)
        if end == place:
            return 0
        ordinal = self.word(end) in _ORDINAL_ENDS and self.gap(end) == ""
        end += ordinal
        while self.word(end) in _SCALES and (self.gap(end) == "" or len(self.word(end)) > 1):
            value, end = value * _SCALES[self.word(end)], end + 1
        before = self.word(place - 1)
        raw, first, dimension = value, place, "ordinal" if ordinal else ""
        if before in _CURRENCY:
            first, dimension = place - 1, _UNITS[before][0]
        at = end + (self.word(end) in _DASHES and self.gap(end) == self.gap(end + 1))
        if not ordinal and not dimension and not self.gap(at).strip() and (unit := self._unit(at)):
            dimension, size = unit
            value, end = value * size, at + 1
            scale = (self._unit(end) or ("",))[0] if dimension == "degree" and not self.gap(end).strip() else ""
            if scale in {"degree", "fahrenheit"}:  # "degrees Celsius"
                dimension, end = scale, end + 1
        # "14; Accidents" counts nothing
        is_word = self.word(end)[:1].isalpha() and self.word(end) not in FUNCTION_WORDS
        counts = not dimension and self.gap(end) == " " and is_word
        counted = self.word(end) if counts else ""
        hedged = self.word(first - 1) in _HEDGES
        self.numbers.append(Number(value, dimension, raw, self.take(first, end), counted, hedged))
        return end

    def _unit(self, place: int) -> tuple[str, float] | None:
        """Return the dimension and the size of a unit. The case counts if the list has both: mW and MW."""
        written = self.found[place].group() if place < len(self.found) else ""
        is_unit = len(written) > 1 or not written.isupper() or written in "WVCF"
        return (_UNITS.get(written) or _UNITS.get(self.low[place])) if written and is_unit else None

    def _value(self, place: int) -> tuple[float, int]:
        word = self.word(place)
        if self.found[place]["number"]:
            word = word.replace(".", "") if _DOTTED.fullmatch(word) else word
            plain = re.sub("[ \u00a0\u202f'’]|,(?=\\d{3}(?!\\d))", "", word).replace(",", ".")
            plain = plain.replace("−", "-").replace("–", "-")
            return (float(plain), place + 1) if plain.count(".") < 2 else (0.0, place)
        total, end = 0.0, place
        while self.word(end) in _WORDS and (
            not total or (total % 100 >= 20 and _WORDS[self.word(end)] < 10) or not total % 100
        ):
            total, end = total + float(_WORDS[self.word(end)]), end + 1
            if self.word(end) == "hundred":
                total, end = total * 100, end + 1
                end += self.word(end) == "and" and self.word(end + 1) in _WORDS
            elif self.word(end) == "-" and self.word(end + 1) in _WORDS and total % 100 >= 20:
                end += 1
        # "One" is a pronoun more often than a number.
        return (total, end) if end > place and (total != 1.0 or self.word(end) in _COUNTED) else (0.0, place)


def has_values(mine: Values, own: Values) -> bool:
    """Return True if a sentence has each number and date of a statement."""
    return all(has_value(each, own) for each in mine.values)


def has_value(value: Number | Date, own: Values) -> bool:
    """Return True if a text has a value: a bare number fits any unit, a counted one only its own.

    >>> has_value(values("390 pounds").numbers[0], values("It costs £390."))
    True
    """
    if isinstance(value, Date):
        return has_date(value, own)
    if not value.dimension:
        return has_number(value, own)
    equals = (each for each in own.numbers if equal(value, each))
    return any(value.dimension == each.dimension or not (value.counted or each.counted) for each in equals)


def has_number(number: Number, source: Values) -> bool:
    """Return True if a text has a number equal to this one, or the year that it may be."""
    years = [float(each.year) for each in source.dates]
    return any(equal(number, each) for each in source.numbers) or (not number.dimension and number.raw in years)


def equal(one: Number, other: Number) -> bool:
    """Return True if a statement's number is that of a source: equal, or nearly so after "about"."""
    kinds = {one.dimension, other.dimension}
    if "cents" in kinds and kinds & _WITH_CENTS:
        return abs(one.value - other.value) <= _EXACT * abs(one.value)
    if kinds == {"gbp", "mass"} and all(each.text.endswith(_POUNDS) for each in (one, other)):
        return one.raw == other.raw
    if len(kinds) > 1:
        is_hour = "clock" not in kinds or not (one.counted or other.counted)
        return "" in kinds and "ordinal" not in kinds and is_hour and one.raw == other.raw
    tolerance = _HEDGED if one.hedged or other.hedged else _EXACT
    values = [(mine, their) for mine in _values(one) for their in _values(other)]
    return any(abs(mine - their) <= tolerance * max(abs(mine), abs(their)) for mine, their in values)


def _values(number: Number) -> tuple[float, ...]:
    return (number.value, number.value * 1000) if _DOTTED_ONCE.match(number.text) else (number.value,)


def has_date(date: Date, source: Values) -> bool:
    """Return True if a text has a date that agrees with this one in each part that both state."""
    years = {each.year for each in source.dates} | {int(each.raw) for each in source.numbers if each.raw in _YEARS}
    if not date.month and not date.weekday:
        return date.year in years
    equal = [
        each
        for each in source.dates
        if not any(mine and their and mine != their for mine, their in zip(date[:4], each[:4], strict=True))
        and any(a and a == b for a, b in zip(date[1:4], each[1:4], strict=True))
    ]
    return bool(equal) and (not date.year or date.year in years)
