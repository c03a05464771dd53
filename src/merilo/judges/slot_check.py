"""The slots of a short statement that a sentence does not state: numbers, dates, times, names, words, negation.

A number, date or time of day of the statement must be in the sentence itself, and in a table row below the header
that the statement names. Names may also be near it. Only what the statement adds to its question is examined.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.judges.lexical_text import prefix, stems_of, weight, words
from merilo.judges.lexical_units import CELLS, MAX_UNIT, is_field, units_of
from merilo.judges.slot_types import Difference
from merilo.judges.slot_words import DENIALS, FUNCTION_WORDS, PARTS, UNABLE, UNITS
from merilo.judges.slots import equal_dates, equal_numbers, slots
from merilo.judges.support_candidates import has_date, has_number, has_year
from merilo.judges.table_cells import cell_differences, cells_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.judges.lexical_text import Words
    from merilo.judges.slot_types import Date, Number, Slots, Token
    from merilo.judges.table_cells import Cells

_MIN_WORDS: Final = 0.5
"""Fraction of the words that a statement adds, by weight, that its sentence contains; more than this with spaces."""
_MIN_SHARED: Final = 0.6
"""Fraction of a statement's words in a unit from which a negation or comparison word of both is compared."""
_STRICT: Final = 1e-6
_CONTRACTED: Final = frozenset("c d j l m n qu s t jusqu".split())
_FINAL: Final = re.compile("(?:です|でした|である|だ|입니다|이다|이에요|예요|에요)$")
"""Verbs at the end of a Japanese or Korean answer that only say that it is one."""
_MEASURED: Final = frozenset(
    "away long old tall high wide deep thick ago total altogether only each large up down".split()
)
"""Words after a number that say how it is measured, not what is counted."""
_SCOPE: Final = 6
"""Characters next to a part that denies, in which it may find what it denies."""
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_BEFORE: Final = frozenset(DENIALS[:6])
_TITLE: Final = 300
"""Characters of the first sentence of a context that count as its title."""
_MAX_CELLS: Final = 300
"""Cells or rows from which a table is not compared by its names, which takes time in proportion to their square."""
_MAX_YEAR: Final = 10_000
_COUNTED: Final = 10


class Place(NamedTuple):
    """A unit of a context, with what is read near it."""

    text: str
    near: str = ""
    """The title of the context and the adjacent sentences."""
    cells: Cells = ()
    """Headers and values, if the unit is a row of a table or a line with a name and a value."""
    rows: Cells = ()
    """The rows of the context by their first cells, if the unit is a row."""


def places_of(sentences: Sequence[str]) -> list[Place]:
    """Return the units of a context, in the order of `merilo.judges.lexical_match.match`."""
    fields = tuple(
        cell
        for each in sentences
        for unit in units_of(each)
        if is_field(unit) and CELLS not in unit
        for cell in cells_of(unit)
    )
    rows = rows_of(sentences)
    found: list[Place] = []
    for at, sentence in enumerate(sentences):
        pieces = units_of(sentence)
        title = sentences[0].lstrip().partition("\n")[0][:_TITLE] if at else ""
        around = [sentences[place] for place in (at - 1, at + 1) if 0 <= place < len(sentences)]
        for unit in pieces:
            is_row = CELLS in unit or len(pieces) > 1
            near = title if is_row else "\n".join((title, *(each for each in around if len(each) <= MAX_UNIT)))
            is_cells = CELLS in unit and is_field(unit)
            found.append(
                Place(
                    unit,
                    near,
                    cells_of(unit) if is_cells else fields if is_field(unit) else (),
                    rows if is_cells else (),
                )
            )
    return found


def denies(text: str, about: str) -> bool:
    """Return True if a text denies something that another text is about."""
    return bool(_denying(slots(text), text, about))


def absent_slot(said: str, contexts: Sequence[Sequence[str]]) -> Difference | None:
    """Return the first number or date in digits of a statement that no unit of the contexts has; None if all are there.

    A count up to ten may be made of what the contexts list, and is left out.
    """
    mine = slots(said)
    numbers = [each for each in mine.numbers if not each.weak and each.text[:1].isdigit() and max(each.raw) > _COUNTED]
    if not numbers and not mine.dates:
        return None
    units = [slots(unit) for own in contexts for sentence in own for unit in units_of(sentence)]
    for number in numbers:
        if not any(has_number(number, own) for own in units):
            return Difference("number", number.text, "")
    for date in mine.dates:
        if not any(has_date(date, own) for own in units):
            return Difference("date", date.text, "")
    return None


def unstated(said: str, asked: str, place: Place, table: Mapping[str, float]) -> Difference | None:
    """Return the first slot of a statement that a unit does not state; None if it states all.

    `asked`: the question that the statement answers, or an empty text. `table`: the weights of words.
    """
    return next(_unstated(said, asked, place, table), None)


def _unstated(said: str, asked: str, place: Place, table: Mapping[str, float]) -> Iterator[Difference]:
    mine, question, own = slots(said), slots(asked), slots(place.text)
    near = slots(place.near) if place.near else own
    yield from _values(mine, question, own, near)
    if mine.numbers or mine.dates:
        for cells, keyed in ((place.cells, bool(place.rows)), (place.rows, False)):
            if 1 < len(cells) <= _MAX_CELLS:
                yield from cell_differences(said, asked, cells, keyed=keyed)
    # Of a statement in other words than the unit, a negation may be part of other words too ("is free of").
    if asked or _share(mine, own) >= _MIN_SHARED:
        yield from _opposites(mine, said, own, place.text)
        yield from _denials(mine, said, own, place.text, asked)
    yield from _names(mine, question, own, own if asked else near, table)
    if asked:  # the curve has weighed the words of a statement that is read alone
        yield from _missing_words(mine, said, asked, place, table)


def _values(mine: Slots, question: Slots, own: Slots, near: Slots) -> Iterator[Difference]:
    """Yield numbers, dates, times of day and periods ("a week") of a statement that a unit does not have."""
    for number in mine.numbers:
        if number.weak or _has_exactly(number, own) or (has_number(number, question) and has_number(number, near)):
            continue
        other = next((each.text for each in own.numbers if each.dimension == number.dimension), "")
        yield Difference("number", number.text, other)
    for date in mine.dates:
        if not _has_parts(date, own, near if _has_parts(date, question, question) else own):
            yield Difference("date", date.text, own.dates[0].text if own.dates else "")
    for minutes, _ in mine.clocks:
        if all(minutes != each for each, _ in own.clocks):
            yield Difference("time", _clock(minutes), _clock(own.clocks[0][0]) if own.clocks else "")
    for at, token in enumerate(mine.tokens):
        if at not in mine.used and _is_period(token.low) and not _has(token.stem, own):
            yield Difference("unit", token.text, next((each.text for each in own.tokens if _is_period(each.low)), ""))


def _is_period(low: str) -> bool:
    return len(low) > 1 and UNITS.get(low, ("", 0.0))[0] in {"time", "months"}


def _has_exactly(number: Number, source: Slots) -> bool:
    """Return True if a text has a number, in any form; "at most 49" is not the number of "16"."""
    plain = number._replace(bound=0, hedged=False)
    if any(equal_numbers(plain, each._replace(bound=0, hedged=False)) for each in source.numbers):
        return True
    return number.dimension in {"", "ordinal"} and any(
        has_year(int(each), source) for each in number.raw if each < _MAX_YEAR
    )


def _has_parts(date: Date, source: Slots, near: Slots) -> bool:
    """Return True if a text states every part of a date, and no other value of one; the year may be near it."""
    if date.month is None and date.day is None and date.weekday is None:
        return has_year(date.year, source) or any(equal_dates(date, each) for each in source.dates)
    equal = [each for each in source.dates if equal_dates(date, each)]
    if not equal:
        return False
    has_year_too = date.year is None or has_year(date.year, source) or has_year(date.year, near)
    parts = ((date.month, "month"), (date.day, "day"))
    return has_year_too and all(
        mine is None or date.swapped or any(each.swapped or getattr(each, name) == mine for each in equal)
        for mine, name in parts
    )


def _share(mine: Slots, own: Slots) -> float:
    """Return the fraction of the content words of a statement that a unit contains."""
    content = [each.stem for each in mine.tokens if each.low not in FUNCTION_WORDS and each.text[0].isalpha()]
    return sum(_has(each, own) for each in content) / (len(content) or 1)


def _clock(minutes: int) -> str:
    return f"{minutes // 60}:{minutes % 60:02}"


def _poles(found: Slots, text: str) -> dict[tuple[str, int], str]:
    low = text.lower()
    poles = {(axis, pole): found.tokens[place].text for place, axis, pole in found.poles}
    if not text.isascii():
        poles |= {(axis, pole): part for part, axis, pole in PARTS if part in low}
    return poles


def _opposites(mine: Slots, said: str, own: Slots, text: str) -> Iterator[Difference]:
    """Yield comparison words for which the unit has the opposite only, unless one of the two is denied."""
    stated, found = _poles(mine, said), _poles(own, text)
    for (axis, pole), word in stated.items():
        if (axis, pole) in found or (axis, -pole) in stated or (axis, -pole) not in found:
            continue
        if bool(_denying(mine, said, said)) == bool(_denying(own, text, said)):
            yield Difference("comparison", word, found[axis, -pole])


def _denials(mine: Slots, said: str, own: Slots, text: str, asked: str) -> Iterator[Difference]:
    ours, theirs = _denying(mine, said, said), _denying(own, text, said)
    if bool(ours) == bool(theirs) or (not ours and denies(asked, asked)):
        return
    stated, found = _poles(mine, said), _poles(own, text)
    if any((axis, -pole) in found for axis, pole in stated):
        return  # "not allowed" and "forbidden" say the same
    yield Difference("negation", ours or "no negation", theirs or "no negation")


def _denying(found: Slots, text: str, about: str) -> str:
    """Return a word of a text that denies something that another text is about; empty if there is none."""
    about_stems = {prefix(each) for each in words(about).distinct}
    for place in found.negations:
        if (
            found.tokens[place].low in UNABLE
            and found.tokens[place + 1 : place + 2]
            and found.tokens[place + 1].low != "to"
        ):
            continue  # "failed calls" are not denied
        after = [each.stem for each in found.tokens[place + 1 : place + 4] if each.low not in FUNCTION_WORDS]
        before = [each.stem for each in found.tokens[max(0, place - 1) : place] if each.low not in FUNCTION_WORDS]
        near = after if found.tokens[place].text.isascii() or after else before
        if any(prefix(each) in about_stems for each in near) or not near:
            return found.tokens[place].text
    if not _UNSPACED.search(text):
        return ""
    for part in DENIALS:
        for at in (each.start() for each in re.finditer(part, text)):
            behind = at + len(part)
            scope = text[behind : behind + _SCOPE] if part in _BEFORE else text[max(0, at - _SCOPE) : at]
            if any(scope[step : step + 2] in about for step in range(len(scope) - 1)):
                return part
    return ""


def _names(mine: Slots, question: Slots, own: Slots, near: Slots, table: Mapping[str, float]) -> Iterator[Difference]:
    is_german = any(each.low in _GERMAN for each in mine.tokens)
    for place, token in enumerate(mine.tokens):
        opens = place in mine.initials
        named = place in mine.names or (opens and (place + 1 in mine.names or token.stem not in table))
        if not named or is_german or _has(token.stem, question) or _has(token.stem, own) or _has(token.stem, near):
            continue
        other = next((own.tokens[at].text for at in sorted(own.names) if not _has(own.tokens[at].stem, mine)), "")
        yield Difference("name", token.text, other)


_GERMAN: Final = frozenset("der die das und ist nicht ein eine im wird wurde mit von auf den dem am um".split())


def _has(stem: str, found: Slots) -> bool:
    return stem in found.stems or (len(stem) > 3 and any(prefix(stem) == prefix(each) for each in found.stems))


def _missing_words(
    mine: Slots, said: str, asked: str, place: Place, table: Mapping[str, float]
) -> Iterator[Difference]:
    """Yield the words that a statement adds to its question, if a unit lacks most of them or what a number counts."""
    known, unit = words(asked), words(place.text if asked else f"{place.text} {place.near}")
    numbers = len(mine.numbers) + len(mine.dates) + len(mine.clocks)
    content = [
        (each, stem, at) for at, each in enumerate(mine.tokens) if at not in mine.used for stem in _content(each)
    ]
    new = [each for each in content if not _is_in(each[1], known)]
    chosen = {stem: (token, at) for token, stem, at in new or ([] if numbers else content)}
    missing = {stem: each for stem, each in chosen.items() if not _is_in(stem, unit)}
    counted = next((token for token, at in missing.values() if at - 1 in mine.used and _counts(token, mine, at)), None)
    weights = {stem: max(0.05, weight(stem, table)) for stem in chosen}
    lost = math.fsum(weights[each] for each in missing) / ((math.fsum(weights.values()) + numbers) or 1.0)
    most = 1 - _MIN_WORDS if _UNSPACED.search(said) else 1 - _MIN_WORDS - _STRICT
    if counted is not None or lost > most:
        text = " ".join(dict.fromkeys(token.text for token, _ in missing.values()))
        yield Difference("word", text if counted is None else counted.text, "")


def _content(token: Token) -> Iterator[str]:
    """Yield the stems of a token, without contracted and final parts that say nothing ("l'", "です")."""
    for part in re.split("['’]", _FINAL.sub("", token.low)):
        if part and part[0].isalpha() and part not in FUNCTION_WORDS and part not in _CONTRACTED:
            yield from stems_of(part)


def _counts(token: Token, mine: Slots, at: int) -> bool:
    """Return True if a word after a number says what is counted: "400 rooms", and not "5 km away"."""
    between = mine.tokens[at].start - mine.tokens[at - 1].end
    return between <= 1 and token.low not in _MEASURED and not _UNSPACED.search(token.low)


def _is_in(stem: str, found: Words) -> bool:
    return stem in found.members or (len(stem) > 3 and prefix(stem) in found.prefixes)
