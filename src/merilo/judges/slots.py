"""Comparison of the slots of an English statement with a sentence: numbers with units, dates, names, negation.

`conflict` names the first slot in which a statement differs from a sentence. A difference can only lower a verdict.
Numbers are equal in any form: "4 hours" and "240 minutes", "two thirds of" excepted, "1,000" and "one thousand".
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.judges.words import coverage, shares, stems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TABLES: Final[dict[str, Any]] = tomllib.loads(files("merilo.judges").joinpath("slots.toml").read_text("utf-8"))


def _sized(text: str) -> Iterator[tuple[str, float]]:
    """Yield words with their size, from a text such as "1 metre metres, 1000 km"."""
    for size, *words in map(str.split, text.split(",")):
        yield from ((word, float(size)) for word in words)


def _counted(name: str, start: int) -> dict[str, int]:
    return {word: at for at, word in enumerate(_TABLES[name].split(), start)}


_WORDS: Final = _counted("ones", 0) | {word: 10 * at for word, at in _counted("tens", 2).items()}
_SCALES: Final = dict(_sized(_TABLES["scales"]))
_ORDINAL_ENDS: Final = frozenset({"st", "nd", "rd", "th"})
_UNITS: Final = {word: (dimension, size) for dimension, text in _TABLES["units"].items() for word, size in _sized(text)}
_COUNTED: Final = frozenset({*_UNITS, *_SCALES})
_MONTHS: Final = {word[:size]: at for word, at in _counted("months", 1).items() for size in (3, 4, len(word))}
_OTHER_MONTHS: Final = {word: at for text in _TABLES["other_months"] for at, word in enumerate(text.split(), 1)}
"""Of other languages, in lower case; they are read only beside a day."""
_WEEKDAYS: Final = _counted("weekdays", 1)
_NEGATIONS: Final = _set(_TABLES["negations"])
_LIMITING: Final = _set("only either both some most any if unless")
"""Words that change what a negation means: "only for this" says the same as "not for another"."""
_OPPOSITES: Final = [tuple(map(_set, text.split("/"))) for text in _TABLES["opposites"].values()]
_UNWEIGHED: Final = _NEGATIONS.union(*(one | other for one, other in _OPPOSITES))
FUNCTION_WORDS: Final = _set(_TABLES["function_words"])
"""Common English words without content. Lower case."""
_PERCENTS: Final = ("per cent", "pour cent", "por ciento")
_SAME_AS: Final = dict.fromkeys(("noon", "midday"), "12:00") | {"midnight": "0:00"} | dict.fromkeys(_PERCENTS, "%")
_CLOCK: Final = re.compile(r"(?P<hour>2[0-4]|[01]?\d)(?::(?P<minute>[0-5]\d))?(?P<half>\s?[ap]m)?")
_TOKEN: Final = re.compile(
    r"(?P<clock>\b(?:2[0-4]|[01]?\d)(?::[0-5]\d(?:\s?[ap]\.?m\b\.?)?|\s?[ap]\.?m\b\.?)|\b(?:noon|midday|midnight)\b)"
    r"|(?P<number>(?:(?<![^\s(\[,;:])[-−–])?(?:\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?:[.,]\d+)?(?!\w)|\d+(?:[.,]\d+)*))"
    r"|(?P<word>km/h|m/s|per cent|pour cent|por ciento|(?<=[\d万亿])(?:[万亿年月日元米天]|公里|公斤|小时|个月)"
    r"|[^\W\d_]+(?:['’][^\W\d_]+)*[²³]?)|(?P<symbol>[%$€£¥₹°~≈−–—:/-])"
)
_DASHES: Final = _set("- – — −")
_CURRENCY: Final = _set("$ € £ ¥ ₹ usd eur gbp jpy inr")
_OTHER_DIGIT: Final = re.compile(r"(?![0-9])\d")
_DOTTED: Final = re.compile(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}\.\d{3},\d+")
"""Thousands as German and other languages write them."""
_DAY_MONTH_YEAR: Final = re.compile(r"(0?[1-9]|[12]\d|3[01])\.(0?[1-9]|1[0-2])\.([12]\d{3})")
_DOTTED_ONCE: Final = re.compile(r"\D{0,4}[1-9]\d{0,2}\.\d{3}(?![\d.,])")
"""Either thousands or a decimal fraction."""
_HEDGES: Final = _set("about around approximately roughly nearly almost some circa ca ~ ≈")
_MAX_CACHED: Final = 1_000
"""Characters. The slots of a longer text are read each time."""
_MIN_OTHER: Final = 0.6
"""Fraction of a statement's other words, by weight, from which a sentence is about the same."""
_MIN_NAMES: Final = 0.75
"""The same for a name: a sentence often has another one, or a pronoun."""
_RIVAL: Final = 0.8
"""Fraction of the best sentence's share from which another sentence may be meant as well."""
_ALL: Final = 0.9
"""Fraction of the words from which two sentences have the same words."""
_MAX_CLOSE: Final = 20
_JOINED: Final = re.compile(r"[;,]? (?:and|while|whereas|but) |;")
_EXACT: Final = 1e-6
_HEDGED: Final = 0.1
_YEARS: Final = range(1000, 2101)


class Difference(NamedTuple):
    """A slot of a statement and the slot of the sentence that it differs from, as written; empty if there is none."""

    kind: str
    stated: str
    found: str


class Number(NamedTuple):
    """A number in the base unit of its dimension; a plain count has no dimension."""

    value: float
    dimension: str
    raw: float
    text: str
    counted: str
    """The stem of the word after it."""
    hedged: bool


class Date(NamedTuple):
    """A date; each part is 0 if it is not stated."""

    year: int
    month: int
    day: int
    weekday: int
    text: str


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of a text."""

    numbers: tuple[Number, ...]
    dates: tuple[Date, ...]
    names: tuple[str, ...]
    words: frozenset[str]
    """All words, in lower case."""
    rest: str
    """The text without its numbers, dates, negations and words of an axis."""
    denied: tuple[str, ...]
    """The stem of the first content word after each negation; empty if there is none."""

    @property
    def values(self) -> tuple[Number | Date, ...]:
        """The numbers and the dates."""
        return (*self.numbers, *self.dates)


def slots(text: str) -> Slots:
    """Return the slots of a text; those of short texts are cached."""
    return _cached(text) if len(text) <= _MAX_CACHED else _Reader(text).read()


@lru_cache(maxsize=1_024)
def _cached(text: str) -> Slots:
    return _Reader(text).read()


def composed(text: str) -> str:
    """Return a text in NFC, with digits 0 to 9."""
    plain = text if text.isascii() else unicodedata.normalize("NFC", text)
    return plain if text.isascii() else _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain)


class _Reader:
    """One pass over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = composed(text)
        self.found = list(_TOKEN.finditer(self.text))
        low = (each.group().lower().replace("’", "'") for each in self.found)
        self.low = [_SAME_AS.get(each, each) for each in low]
        self.used = set[int]()
        self.numbers: list[Number] = []
        self.dates: list[Date] = []

    def read(self) -> Slots:
        place = 0
        while place < len(self.low):
            place = self._date(place) or self._clock(place) or self._number(place) or place + 1
        rest = " ".join(
            each.group() for at, each in enumerate(self.found) if at not in self.used and self.low[at] not in _UNWEIGHED
        )
        numbers, dates, names = tuple(self.numbers), tuple(self.dates), tuple(self._names())
        return Slots(numbers, dates, names, frozenset(self.low), rest, tuple(self._denied()))

    def word(self, place: int) -> str:
        return self.low[place] if 0 <= place < len(self.low) else ""

    def gap(self, place: int) -> str:
        """Return the text between a token and the one before it; a space beyond the text."""
        if not 0 < place < len(self.found):
            return " "
        return self.text[self.found[place - 1].end() : self.found[place].start()]

    def integer(self, place: int) -> int:
        word = self.word(place)
        return int(word) if word.isdigit() and word.isascii() and len(word) <= 4 else -1

    def take(self, first: int, end: int) -> str:
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
        if not month or not self.found[at].group()[0].isupper():
            month = _OTHER_MONTHS.get(self.word(at), 0) if day else 0
        if not month:
            return self._dated(place, place + 1, (number, 0, 0, 0)) if self._is_year(place) else 0
        end = at + 1 + (self.word(at + 1) == "de")
        if not day and 1 <= self.integer(end) <= 31:
            day, end = self.integer(end), end + 1 + (self.word(end + 1) in _ORDINAL_ENDS)
        year = self.integer(end) if self.integer(end) in _YEARS else 0
        return self._dated(place, end + bool(year), (year, month, day, 0))

    def _is_year(self, place: int) -> bool:
        priced, counted = self.word(place - 1) in _CURRENCY, self.word(place + 1) in _COUNTED
        return self.integer(place) in _YEARS and not priced and not counted

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
        at = end + (self.word(end) in _DASHES and self.gap(end) == "" and self.gap(end + 1) == "")
        if not ordinal and not dimension and (unit := self._unit(at)):
            dimension, size = unit
            value, end = value * size, at + 1
            scale = (self._unit(end) or ("",))[0] if dimension == "degree" and not self.gap(end).strip() else ""
            if scale in {"degree", "fahrenheit"}:  # "degrees Celsius"
                dimension, end = scale, end + 1
        counted = "".join(stems(self.word(end) if self.word(end) not in FUNCTION_WORDS else ""))
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

    def _names(self) -> Iterator[str]:
        for place, each in enumerate(self.found):
            word = each.group()
            if each["word"] is None or not word[0].isupper() or place in self.used or self.low[place] in FUNCTION_WORDS:
                continue
            before = self.text[max(0, each.start() - 3) : each.start()].rstrip()
            opens = not before or before[-1] in '.!?:;\n"“„«(|•*#>-–'
            follows = self.found[place + 1].group()[:1].isupper() if place + 1 < len(self.found) else False
            if not opens or follows or (len(word) > 1 and word.isupper()):
                yield word.removesuffix("'s").removesuffix("’s")

    def _denied(self) -> Iterator[str]:
        for at, word in enumerate(self.low):
            answers = at == 0 and word == "no" and self.gap(1).strip()[:1] in {",", ".", "!"}
            if (word in _NEGATIONS or word.endswith("n't")) and not answers:
                after = (each for each in self.low[at + 1 : at + 6] if each not in FUNCTION_WORDS and each[0].isalnum())
                yield "".join(stems(next(after, "")))


def written_alike(statement: str, contexts: Iterable[Sequence[str]]) -> str:
    """Return a statement with its numbers and dates as the closest sentences of contexts write equal ones.

    >>> written_alike("The trail is 1.5 km long.", [["The trail is 1,500 m long."]])
    'The trail is 1,500 m long.'
    """
    mine, texts, written = slots(statement), [text for context in contexts for text in context], composed(statement)
    values = [each for each in mine.values if isinstance(each, Date) or not each.hedged]
    ranked = sorted(zip(shares(mine.rest, texts if values else ()), texts, strict=False), key=lambda each: -each[0])
    close = [slots(text) for share, text in ranked[:_MAX_CLOSE] if share >= _MIN_OTHER]
    for each in values:
        others = (other for own in close for other in own.values if _is_same(each, other))
        if (other := next(others, None)) is not None:
            text = re.escape(each.text)
            written = re.sub(rf"(?<![\d.,]){text}(?!\d)", other.text, written, count=1)
    return written


def _is_same(one: Number | Date, other: Number | Date) -> bool:
    if isinstance(one, Number) and isinstance(other, Number):
        return not other.hedged and _equal(one, other)
    return type(one) is type(other) and one[:4] == other[:4]


def has_values(mine: Slots, own: Slots) -> bool:
    """Return True if a sentence has each number and date of a statement."""
    return all(_has_number(each, own) for each in mine.numbers) and all(_has_date(each, own) for each in mine.dates)


def reordered(statement: str, contexts: Iterable[Sequence[str]]) -> bool:
    """Return True if sentences have the words of a statement, but none has its names and numbers in the same order.

    "Lund beat Visby" and "Visby beat Lund" have the same words, and so have two values that are exchanged.
    """
    mine, texts = slots(statement), [text for context in contexts for text in context]
    close = [slots(text) for share, text in zip(shares(mine.rest, texts), texts, strict=True) if share >= _ALL]
    same = [[*zip(_order(mine), _order(own), strict=True)] for own in close if coverage(own.rest, [statement]) >= _ALL]
    differ = any(one != other and sorted(one) == sorted(other) for pairs in same for one, other in pairs)
    return differ and not any(all(one == other for one, other in pairs) for pairs in same)


def _order(own: Slots) -> tuple[list[str], list[str]]:
    return [" ".join(stems(each)) for each in own.names], [f"{each.value} {each.dimension}" for each in own.numbers]


def conflict(statement: str, contexts: Sequence[Sequence[str]]) -> Difference | None:
    """Return the slot in which a statement differs from the sentences of contexts that it is closest to, or lacks.

    None if no slot conflicts: a sentence that could be meant has them all, or no sentence is about the same. If each
    part of a statement has a number and a name, each is compared alone.
    """
    parts = _JOINED.split(statement)
    if len(parts) > 1 and all(each.numbers and each.names for each in map(slots, parts)):
        return next(filter(None, (conflict(part, contexts) for part in parts)), None)
    mine = slots(statement)
    places = [(context, at) for context in contexts for at in range(len(context))]
    held = shares(mine.rest, (context[at] for context, at in places))
    best = max(held, default=0.0)
    differing: Difference | None = None
    if best >= _MIN_OTHER:
        for share, (context, at) in sorted(zip(held, places, strict=True), key=lambda each: -each[0]):
            if share < _RIVAL * best:
                break
            near = "\n".join((context[0][:300], *(context[max(0, at - 1) : at]), *context[at + 1 : at + 2]))
            own = slots(context[at])
            found = next(_differences(mine, own, slots(near), share), None)
            row = context[at].partition("; ")[0]  # other cells of it may have the other values
            cells = [each for each in context[max(0, at - _MAX_CLOSE) : at + _MAX_CLOSE] if each.startswith(row)]
            if found is None and has_values(mine, slots("\n".join(cells))):
                differing = None
                break
            differing = differing or found
    return differing or absent(statement, contexts)


def absent(statement: str, contexts: Iterable[Sequence[str]]) -> Difference | None:
    """Return the first number or date of a statement that is nowhere in the contexts; None if all are there.

    Small counts are left out, because they may be made of what the contexts list.
    """
    mine, texts = slots(statement), [text for context in contexts for text in context]
    for number in mine.numbers:
        counts = number.raw <= 10 and number.dimension in {"", "ordinal"}
        if not counts and not any(_has_number(number, slots(text)) for text in texts):
            return Difference("number", number.text, "")
    missing = (each for each in mine.dates if not any(_has_date(each, slots(text)) for text in texts))
    return next((Difference("date", each.text, "") for each in missing), None)


def unstated(said: str, asked: str, sentence: str, near: str) -> Difference | None:
    """Return the first slot of a short answer that a sentence does not state; None if it states all.

    Slots of the question may be near the sentence, those that the answer adds must be in it.
    """
    mine, question, own, around = slots(said), slots(asked), slots(sentence), slots(near)
    for number in mine.numbers:
        if not _has_number(number, own) and not (_has_number(number, question) and _has_number(number, around)):
            other = next((each.text for each in own.numbers if each.dimension == number.dimension), "")
            return Difference("number", number.text, other)
    for date in mine.dates:
        part = date._replace(year=0) if date.month and _has_date(date._replace(month=0, day=0), around) else date
        if not _has_date(part, own):
            return Difference("date", date.text, next((each.text for each in own.dates), ""))
    known = frozenset(stems(f"{asked} {sentence}"))
    missing = next((name for name in mine.names if known.isdisjoint(stems(name))), None)
    if missing is not None:
        return Difference("name", missing, "")
    whole = slots(f"{asked} {said}")
    return next(iter((*_opposed(whole, own), *_denials(mine, own))), None)


def _differences(mine: Slots, own: Slots, near: Slots, share: float) -> Iterator[Difference]:
    for number in mine.numbers:
        if _has_number(number, own):
            continue
        free = [each for each in own.numbers if not any(_equal(ours, each) for ours in mine.numbers)]
        plain = [each for each in free if each.dimension == number.dimension]
        rivals = [
            each
            for each in plain
            if number.dimension not in {"", "ordinal"} or each.counted == number.counted or len(plain) == 1
        ]
        if rivals:
            yield Difference("number", number.text, rivals[0].text)
    for date in mine.dates:
        other = next((each for each in own.dates if _dates_differ(date, each)), None)
        if other is not None and not _has_date(date, own):
            yield Difference("date", date.text, other.text)
    words = frozenset(stems(f"{own.rest}\n{near.rest}"))
    missing = [name for name in mine.names if words.isdisjoint(stems(name))]
    others = [name for name in own.names if frozenset(stems(mine.rest)).isdisjoint(stems(name))]
    lost = shares(mine.rest, (" ".join(missing),))[0]
    if missing and others and share >= _MIN_NAMES * (1 - lost) > 0:
        yield Difference("name", missing[0], others[0])
    yield from _opposed(mine, own)
    yield from _denials(mine, own)


def _opposed(mine: Slots, own: Slots) -> Iterator[Difference]:
    """Yield a word of an axis for which a sentence has the opposite only, unless one of the two is denied."""
    if bool(mine.denied) is bool(own.denied):
        for stated, found in _axes():
            if mine.words & stated and not mine.words & found and own.words & found and not own.words & stated:
                yield Difference("comparison", min(mine.words & stated), min(own.words & found))


def _denials(mine: Slots, own: Slots) -> Iterator[Difference]:
    """Yield a negation of a word that the other text has without one."""
    if not (mine.words | own.words).isdisjoint(_LIMITING):
        return
    ours = [each for each in mine.denied if each in stems(" ".join(own.words))]
    theirs = [each for each in own.denied if each in stems(" ".join(mine.words))]
    if bool(ours) is not bool(theirs) and bool(mine.denied) is not bool(own.denied):
        yield Difference("negation", *(("no negation", "a negation") if theirs else ("a negation", "no negation")))


def _axes() -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    for one, other in _OPPOSITES:
        yield from ((one, other), (other, one))


def _has_number(number: Number, source: Slots) -> bool:
    years = [float(each.year) for each in source.dates]
    return any(_equal(number, each) for each in source.numbers) or (not number.dimension and number.raw in years)


def _equal(one: Number, other: Number) -> bool:
    """Return True if a statement's number is that of a source: equal, or nearly so after "about"."""
    kinds = {one.dimension, other.dimension}
    if len(kinds) > 1:
        is_hour = "clock" not in kinds or not (one.counted or other.counted)
        return "" in kinds and "ordinal" not in kinds and is_hour and one.raw == other.raw
    tolerance = _HEDGED if one.hedged or other.hedged else _EXACT
    values = [(mine, their) for mine in _values(one) for their in _values(other)]
    return any(abs(mine - their) <= tolerance * max(abs(mine), abs(their)) for mine, their in values)


def _values(number: Number) -> tuple[float, ...]:
    return (number.value, number.value * 1000) if _DOTTED_ONCE.match(number.text) else (number.value,)


def _has_date(date: Date, source: Slots) -> bool:
    years = {each.year for each in source.dates} | {int(each.raw) for each in source.numbers if each.raw in _YEARS}
    if not date.month and not date.weekday:
        return date.year in years
    equal = [
        each
        for each in source.dates
        if not _dates_differ(date, each) and any(a and a == b for a, b in zip(date[1:4], each[1:4], strict=True))
    ]
    return bool(equal) and (not date.year or date.year in years)


def _dates_differ(one: Date, other: Date) -> bool:
    """Return True if two dates state the same part differently."""
    return any(mine and their and mine != their for mine, their in zip(one[:4], other[:4], strict=True))


# -- parts of reasons ---------------------------------------------------------------------------------

_MAX_QUOTED: Final = 160
"""Characters of a sentence in a reason; a longer one is shortened around the words of the statement."""
_MAX_SHARED: Final = 300
_WORD: Final = re.compile(r"\w+")


def quoted(sentence: str, at: int, about: str) -> str:
    """Return the number and the text of a sentence, shortened around the words of `about`."""
    return f"sentence {at + 1}: '{excerpt(sentence, about)}'."


def differs(difference: Difference | None) -> str:
    """Return a sentence that names the difference, after a space; empty if there is none."""
    if difference is None:
        return ""
    found = f" Differs in: {difference.stated} / {difference.found}."
    return found if difference.found else f" Not in it: {difference.stated}."


def excerpt(sentence: str, statement: str) -> str:
    """Return a sentence on one line, shortened around the words that it shares with the statement."""
    text = " ".join(sentence.split())
    if len(text) <= _MAX_QUOTED:
        return text
    stated = frozenset(stems(statement))
    words = (each for each in _WORD.finditer(text) if len(each.group()) > 3)
    shared = [each.start() for each in words if not stated.isdisjoint(stems(each.group()))][:_MAX_SHARED]
    near = _MAX_QUOTED * 3 // 4
    start = max(shared, key=lambda at: sum(at <= other < at + near for other in shared), default=0)
    start = 0 if start < _MAX_QUOTED // 8 else text.rfind(" ", 0, start) + 1
    end = start + _MAX_QUOTED
    end = len(text) if end >= len(text) else max(text.rfind(" ", start, end), start + _MAX_QUOTED // 2)
    return f"{'... ' if start else ''}{text[start:end]}{' ...' if end < len(text) else ''}"
