"""Values of a statement that a table row, or a list of fields, does not have below the header that the statement names.

A value belongs to the header named last before it; to the one named next if the first value precedes every header;
and in order, if as many headers as values are named before all of them ("revenue and profit were 14 and 3").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.judges.lexical_text import prefix
from merilo.judges.lexical_units import CELLS, is_field, units_of
from merilo.judges.slot_types import Date, Difference, Number
from merilo.judges.slot_words import FUNCTION_WORDS
from merilo.judges.slots import dates_differ, slots
from merilo.judges.support_candidates import has_date, has_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.judges.slot_types import Slots

Cells = tuple[tuple[str, str], ...]
"""Headers and values of a row."""
_TIMES: Final = frozenset("year date jahr datum année fecha año год дата سنة वर्ष 年 年份 日期 연도".split())
"""Headers of points in time, which a statement gives without naming them."""


class _Value(NamedTuple):
    start: int
    kind: str
    slot: Number | Date
    at: frozenset[int]
    """The cells that contain it."""


def cells_of(row: str) -> Cells:
    """Return the headers and values of a row as it is read; a value without a header has an empty one."""
    parts = (each.rpartition(": ") for each in row.split(CELLS))
    return tuple((header, value) for header, _, value in parts)


def rows_of(sentences: Sequence[str]) -> Cells:
    """Return the first cell of each table row in the sentences of a context as read, with the values of the row."""
    rows = [cells_of(unit) for each in sentences for unit in units_of(each) if CELLS in unit and is_field(unit)]
    return tuple((row[0][1], CELLS.join(value for _, value in row[1:])) for row in rows)


def cell_differences(said: str, asked: str, cells: Cells, *, keyed: bool = False) -> Iterator[Difference]:
    """Yield the values of a statement that are not below the header that it, or its question, names.

    `keyed`: the first cell names the row, so its header ("Town") is in no statement about a value.
    """
    text = f"{asked} {said}".lstrip()
    stated, values = slots(text), [slots(value) for _, value in cells]
    named = _named(text, stated, ["" if keyed and not at else header for at, (header, _) in enumerate(cells)])
    titles = slots("; ".join(header for header, _ in cells))
    found = [each for each in _values(stated, values, len(text) - len(said)) if not _is_stated(each.slot, titles)]
    found.sort(key=lambda each: each.start)
    if keyed:
        found = [each for each in found if each.at != frozenset({0})] or found
    filled = [at for at, own in enumerate(values) if at and (own.numbers or own.dates)]
    only = filled[0] if len(filled) == 1 else None
    for each, stated_header in zip(found, _headers(found, named), strict=True):
        header = only if stated_header is None and not each.at else stated_header
        if header is None or any(cells[at][0] == cells[header][0] or cells[at][0].lower() in _TIMES for at in each.at):
            continue
        own = values[header]
        if isinstance(each.slot, Date):
            others = [one.text for one in own.dates if dates_differ(each.slot, one)]
        else:
            others = [one.text for one in own.numbers if not one.weak]
        if others or each.at:
            yield Difference(each.kind, each.slot.text, others[0] if others else cells[header][1])


def _values(stated: Slots, values: Sequence[Slots], start: int) -> Iterator[_Value]:
    """Yield the numbers and dates of a statement, which begins at `start` of the text."""
    for number in stated.numbers:
        at = stated.tokens[number.place].start
        if at >= start and not number.weak:
            cells = frozenset(place for place, own in enumerate(values) if has_number(number, own))
            yield _Value(at, "number", number, cells)
    for date in stated.dates:
        at = stated.tokens[date.place].start
        if at >= start:
            yield _Value(at, "date", date, frozenset(p for p, own in enumerate(values) if has_date(date, own)))


def _is_stated(slot: Number | Date, source: Slots) -> bool:
    return has_number(slot, source) if isinstance(slot, Number) else has_date(slot, source)


def _headers(found: Sequence[_Value], named: dict[int, int]) -> Iterator[int | None]:
    """Yield the header of each value; None if the statement names none."""
    order = sorted(named, key=named.__getitem__)
    if len(order) == len(found) and order and named[order[-1]] < found[0].start:
        yield from order
        return
    first = next((each.start for each in found if each.at), None)
    follows = first is not None and bool(order) and first < named[order[0]]
    for each in found:
        before = [header for header in order if named[header] < each.start]
        behind = [header for header in order if named[header] > each.start]
        chosen = behind[:1] or before[-1:] if follows else before[-1:]
        yield chosen[0] if chosen else None


def _named(text: str, stated: Slots, headers: Sequence[str]) -> dict[int, int]:
    """Return where a text names each header; a header is left out if another one has more of its words."""
    low = text.lower()
    stems = [{each.stem for each in slots(header).tokens if each.low not in FUNCTION_WORDS} for header in headers]
    shared: dict[int, frozenset[str]] = {}
    where: dict[int, int] = {}
    for place, (header, own) in enumerate(zip(headers, stems, strict=True)):
        hits = [
            each
            for each in stated.tokens
            if each.stem in own or (len(each.stem) > 3 and prefix(each.stem) in map(prefix, own))
        ]
        if header and not header.isascii() and header.lower() in low:
            where[place], shared[place] = low.index(header.lower()), frozenset({header})
        elif hits:
            where[place], shared[place] = hits[-1].start, frozenset(prefix(each.stem) for each in hits)
    return {
        place: start
        for place, start in where.items()
        if not any(
            shared[place] < other or (shared[place] == other and len(stems[at]) < len(stems[place]) and at != place)
            for at, other in shared.items()
        )
    }
