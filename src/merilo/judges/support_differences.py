"""The slots in which a statement differs from a unit: numbers, dates, table cells, names, negations, comparisons."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from merilo.judges.lexical_units import CELLS
from merilo.judges.slot_neighbours import (
    near_stems,
    next_content,
    similar,
    similar_any,
    stems_after,
    stems_before,
    text_of,
)
from merilo.judges.slot_types import Difference
from merilo.judges.slot_words import FUNCTION_WORDS, UNITS
from merilo.judges.slots import dates_differ, equal_dates, equal_numbers, slots
from merilo.judges.support_candidates import has_date, has_number
from merilo.judges.table_cells import cell_differences, cells_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.judges.slot_types import Number, Slots
    from merilo.judges.support_candidates import Candidate, Statement

_MIN_OTHER: Final = 0.6
"""Fraction of a statement's words outside of its slots that a sentence contains at least to differ from it."""
_MIN_OTHER_WORDS: Final = 0.75
"""The same for negations and comparison words, whose scope is not known."""
_MIN_OTHER_NAMES: Final = 0.75
_MIN_CELLS: Final = 0.4
"""The same for a table row, which has no verbs."""
_MIN_ROWS: Final = 0.2
"""The same for a value in another row than the one that the statement names."""
_RIVAL: Final = 0.8
"""Fraction of the best candidate's share from which another sentence may be meant as well."""
_COMPLETE: Final = 0.95
_MIN_IN_ORDER: Final = 0.5
_LIMITING: Final = frozenset("only either both or some most any nur oder einige только или некоторые".split())
"""Words that change what the others say, and that a complete sentence must contain."""
_CONDITIONS: Final = frozenset("if unless wenn falls если".split())
_PRONOUNS: Final = frozenset("it he she they its his her their es er sie он она оно они его её их".split())
_MAX_REPLACED: Final = 4
_ADJECTIVE_ENDINGS: Final = ("e", "en", "er", "es", "em")


def differences(candidates: Sequence[Candidate]) -> tuple[Difference, ...]:
    """Return the differences from the best candidate, unless another one that could be meant does not differ."""
    if not candidates:
        return ()
    best = max(candidates, key=lambda each: (each.other, each.share))
    if CELLS in best.text and best.other >= _MIN_ROWS:
        moved = tuple(cell_differences(best.statement.text, "", rows_of(best.sentences)))
        if moved:
            return moved  # the statement names the row, so no other row can be meant
    found = _all_differences(best, candidates)
    if not found:
        return ()
    kinds = {each.kind for each in found}
    for each in candidates:
        if each is best or each.other < _RIVAL * best.other:
            continue
        if not _all_differences(each, candidates) and _covers(each, kinds, best):
            return ()
    return found


def _all_differences(candidate: Candidate, candidates: Sequence[Candidate]) -> tuple[Difference, ...]:
    found = [*_slot_differences(candidate, candidates)]
    if CELLS in candidate.text:
        found += _row_differences(candidate, candidates)
    elif not candidate.is_flat:
        found += [*_name_differences(candidate), *_period_differences(candidate)]
        found += _subject_differences(candidate, candidates)
    return tuple(dict.fromkeys(found))


def _slot_differences(candidate: Candidate, candidates: Sequence[Candidate]) -> Iterator[Difference]:
    if candidate.is_flat:
        return
    if CELLS in candidate.text:
        if candidate.other >= _MIN_CELLS:
            yield from cell_differences(candidate.statement.text, "", cells_of(candidate.text), keyed=True)
    else:
        yield from _number_differences(candidate, candidates)
        yield from _date_differences(candidate, candidates)
    yield from _negation_differences(candidate)
    yield from _pole_differences(candidate)


def _covers(candidate: Candidate, kinds: set[str], best: Candidate) -> bool:
    """Return True if a candidate states the slots in which the best one differs."""
    mine, own = candidate.statement.slots, candidate.slots
    if "number" in kinds and not all(has_number(each, own) for each in mine.numbers):
        return False
    if "date" in kinds and not all(has_date(each, own) for each in mine.dates):
        return False
    return kinds <= {"number", "date"} or candidate.other >= best.other


# -- numbers and dates ---------------------------------------------------------------------------------


def _number_differences(candidate: Candidate, candidates: Sequence[Candidate]) -> Iterator[Difference]:
    mine, own = candidate.statement.slots, candidate.slots
    if candidate.other < _MIN_OTHER:
        return
    free = [
        each for each in own.numbers if not each.weak and not any(equal_numbers(ours, each) for ours in mine.numbers)
    ]
    for number in mine.numbers:
        if number.weak or any(has_number(number, each) for each in (own, *candidate.continued)):
            continue
        if any(has_number(number, each.slots) and not _is_other_subject(each, candidate) for each in candidates):
            continue
        other = next((each for each in free if _comparable(number, each, candidate)), None)
        if other is not None:
            yield Difference("number", number.text, other.text)
            free.remove(other)
    clocks = {minutes for minutes, _ in own.clocks}
    for minutes, _ in mine.clocks:
        if (
            clocks
            and minutes not in clocks
            and not any(c == minutes for each in candidate.continued for c, _ in each.clocks)
        ):
            theirs = own.clocks[0][0]
            yield Difference("number", _clock_text(minutes), _clock_text(theirs))


def _clock_text(minutes: int) -> str:
    return f"{minutes // 60}:{minutes % 60:02}"


def _comparable(number: Number, other: Number, candidate: Candidate) -> bool:
    """Return True if a number of the unit fills the slot of the statement's number."""
    same_digits = any(each in other.raw for each in number.raw)
    if number.dimension != other.dimension:
        return (
            bool(number.dimension and other.dimension)
            and same_digits
            and "ordinal" not in {number.dimension, other.dimension}
        )
    mine, own = candidate.statement.slots, candidate.slots
    if number.dimension and number.dimension != "ordinal":
        return True
    ours = near_stems(mine, number.place, number.end)
    theirs = near_stems(own, other.place, other.end)
    if any(similar(one, another) for one in ours for another in theirs):
        return True
    alone = sum(not each.weak and not each.dimension for each in own.numbers) == 1
    return number.dimension == "" and candidate.other >= _MIN_OTHER_WORDS and alone


def _is_other_subject(other: Candidate, candidate: Candidate) -> bool:
    """Return True if another candidate has other words in place of words that the statement and the candidate share."""
    if other is candidate:
        return False
    for ours, theirs in _replaced(other):
        tokens, own = other.statement.slots.tokens, other.slots
        shared = any(
            tokens[place].low not in FUNCTION_WORDS
            and place not in other.statement.slots.used
            and candidate.has(tokens[place].stem)
            for place in ours
        )
        replaced = any(
            own.tokens[place].low not in FUNCTION_WORDS and own.tokens[place].text[0].isalpha() for place in theirs
        )
        if shared and replaced:
            return True
    return False


def _date_differences(candidate: Candidate, candidates: Sequence[Candidate]) -> Iterator[Difference]:
    mine, own = candidate.statement.slots, candidate.slots
    if candidate.other < _MIN_OTHER:
        return
    for date in mine.dates:
        sources = (own, *candidate.continued)
        if any(has_date(date, source) for source in sources):
            continue
        if any(has_date(date, each.slots) and not _is_other_subject(each, candidate) for each in candidates):
            continue
        free = [each for each in own.dates if not any(equal_dates(ours, each) for ours in mine.dates)]
        other = next((each for each in free if dates_differ(date, each)), None)
        if other is not None:
            yield Difference("date", date.text, other.text)


# -- names and subjects --------------------------------------------------------------------------------


def _name_differences(candidate: Candidate) -> Iterator[Difference]:
    if candidate.in_order < _MIN_IN_ORDER:
        return
    for ours, theirs in _replaced(candidate):
        mine, own = candidate.statement.slots, candidate.slots
        missing = [
            place
            for place in ours
            if _is_name(mine, place, candidate.statement)
            and not candidate.has(mine.tokens[place].stem)
            and not any(similar(mine.tokens[place].stem, each) for each in own.stems)
        ]
        others = [
            place
            for place in theirs
            if _is_name(own, place, candidate.statement) and not candidate.statement.has(own.tokens[place].stem)
        ]
        if not missing or not others or _is_acronym(mine, missing, own, others):
            continue
        rest = 1.0 - math.fsum(candidate.statement.weights.get(place, 0.0) for place in missing) / (
            math.fsum(candidate.statement.weights.values()) or 1.0
        )
        if rest > 0 and candidate.other >= _MIN_OTHER_NAMES * rest:
            yield Difference("name", text_of(mine, missing), text_of(own, others))


def _period_differences(candidate: Candidate) -> Iterator[Difference]:
    """Yield a period without a number that replaces another one: "per day", "per month"."""
    if candidate.other < _MIN_OTHER_WORDS:
        return
    for ours, theirs in _replaced(candidate):
        mine, own = candidate.statement.slots, candidate.slots
        stated = [place for place in ours if _is_period(mine, place)]
        found = [place for place in theirs if _is_period(own, place)]
        if stated and found and mine.tokens[stated[0]].stem != own.tokens[found[0]].stem:
            yield Difference("unit", text_of(mine, stated), text_of(own, found))


def _is_period(found: Slots, place: int) -> bool:
    low = found.tokens[place].low
    return place not in found.used and len(low) > 1 and UNITS.get(low, ("", 0.0))[0] in {"time", "months"}


def _replaced(candidate: Candidate) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the tokens of the statement and of the unit that replace each other."""
    for kind, first, end, second, behind in candidate.operations:
        if kind == "replace" and end - first <= _MAX_REPLACED and behind - second <= _MAX_REPLACED:
            yield list(range(first, end)), list(range(second, behind))


def _subject_differences(candidate: Candidate, candidates: Sequence[Candidate]) -> Iterator[Difference]:
    """Yield words in whose place the unit has others, if another candidate is about the former and not the latter."""
    mine, own = candidate.statement.slots, candidate.slots
    for ours, theirs in _replaced(candidate):
        stated = [place for place in ours if place in candidate.statement.weights]
        found = [
            place
            for place in theirs
            if own.tokens[place].low not in FUNCTION_WORDS
            and own.tokens[place].text[0].isalpha()
            and place not in own.used
        ]
        if not stated or not found or any(candidate.has(mine.tokens[place].stem) for place in stated):
            continue
        if any(own.tokens[place].low in _PRONOUNS for place in theirs):
            continue
        if any(candidate.statement.has(own.tokens[place].stem) for place in found):
            continue
        for other in candidates:
            if other is candidate or other.other < _MIN_OTHER:
                continue
            theirs_too = any(other.has(own.tokens[place].stem) for place in found)
            if theirs_too or not all(other.has(mine.tokens[place].stem) for place in stated):
                continue
            if any(True for _ in (*_slot_differences(other, ()), *_name_differences(other))):
                yield Difference("subject", text_of(mine, stated), text_of(own, found))
                break


def _row_differences(candidate: Candidate, candidates: Sequence[Candidate]) -> Iterator[Difference]:
    """Yield the first cell of a row if the statement names another row of the table and not this one."""
    own = _first_cell(candidate.text)
    if not own or any(candidate.statement.has(stem) for stem in slots(own).stems):
        return
    for other in candidates:
        key = _first_cell(other.text) if CELLS in other.text else ""
        if other is not candidate and key and all(map(candidate.statement.has, slots(key).stems)):
            yield Difference("subject", key, own)
            return


def _first_cell(text: str) -> str:
    cell = text.split(CELLS, 1)[0]
    return cell.rpartition(": ")[2]


def _is_name(found: Slots, place: int, statement: Statement) -> bool:
    """Return True for a name. The first word of a sentence is one before another name, or if no text taught it."""
    if place in found.names:
        return not statement.is_german or _german_name(found, place)
    if place not in found.initials:
        return False
    return place + 1 in found.names or statement.is_unknown(found.tokens[place].stem)


def _german_name(found: Slots, place: int) -> bool:
    """Return False for a noun after an article or adjective: German capitalises all nouns."""
    if not place or place - 1 in found.names:
        return True
    before = found.tokens[place - 1].low
    if before in {"in", "von", "bei", "nach", "aus", "und", "mit", "durch", "für", "gegen"}:
        return True
    return before not in FUNCTION_WORDS and not before.endswith(_ADJECTIVE_ENDINGS)


def _is_acronym(mine: Slots, ours: Sequence[int], own: Slots, theirs: Sequence[int]) -> bool:
    """Return True if one name may be the initials of the other."""
    one = "".join(mine.tokens[place].text[0] for place in ours)
    other = "".join(own.tokens[place].text[0] for place in theirs)
    whole = {mine.tokens[place].text.replace(".", "") for place in ours} | {own.tokens[place].text for place in theirs}
    return (len(one) > 1 and one in whole) or (len(other) > 1 and other in whole)


# -- negations and comparison words --------------------------------------------------------------------


def _negation_differences(candidate: Candidate) -> Iterator[Difference]:
    if candidate.other < _MIN_OTHER_WORDS or not candidate.operations:
        return
    mine, own = candidate.statement.slots, candidate.slots
    if any(each.low in _LIMITING | _CONDITIONS for found in (mine, own) for each in found.tokens):
        return  # "only for this" says the same as "not for another"
    theirs_of = {second: first for first, second in candidate.partner.items()}
    ours = [place for place in mine.negations if next_content(mine, place) in candidate.partner]
    theirs = [
        place
        for place in own.negations
        if (after := next_content(own, place)) in theirs_of
        or (after is not None and candidate.exact >= _COMPLETE and candidate.statement.has(own.tokens[after].stem))
    ]
    if len(ours) % 2 == len(theirs) % 2 or len(mine.negations) % 2 == len(own.negations) % 2:
        return
    stated = mine.tokens[ours[0]].text if ours else "no negation"
    yield Difference("negation", stated, own.tokens[theirs[0]].text if theirs else "no negation")


def _pole_differences(candidate: Candidate) -> Iterator[Difference]:
    if candidate.other < _MIN_OTHER_WORDS:
        return
    mine, own = candidate.statement.slots, candidate.slots
    poles = own.poles
    stated = {(axis, pole) for _, axis, pole in mine.poles}
    if len(mine.negations) % 2 != len(own.negations) % 2:
        return  # "not more than" and "less than" say the same
    for place, axis, pole in mine.poles:
        if any((axis, pole) == each[1:] for each in poles):
            continue
        for at, theirs, opposite in own.poles:
            if theirs != axis or opposite != -pole or (axis, opposite) in stated:
                continue
            if _same_surroundings(mine, place, own, at):
                yield Difference("comparison", mine.tokens[place].text, own.tokens[at].text)
                return


def _same_surroundings(mine: Slots, place: int, own: Slots, at: int) -> bool:
    """Return True if the same words follow, or precede, a comparison word: swapped, both texts say the same."""
    after = similar_any(stems_after(mine, place), stems_after(own, at))
    before = similar_any(stems_before(mine, place), stems_before(own, at))
    crossed = similar_any(stems_after(mine, place), stems_before(own, at)) and similar_any(
        stems_before(mine, place), stems_after(own, at)
    )
    return (after or before) and not crossed
