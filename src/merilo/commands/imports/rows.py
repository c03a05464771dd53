"""What every reader of a file of scores returns: samples, and their scores by column."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from math import isinf, isnan, nan
from typing import TYPE_CHECKING, Final

from merilo.data import check
from merilo.data.problem_report import grouped_messages
from merilo.errors import DataError, Problem
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from merilo.data.sample import Dataset

_MISSING: Final = frozenset({"", "nan", "none", "null", "na", "n/a", "<na>"})
_TRUTH: Final = {"true": 1.0, "false": 0.0}
_PROBLEMS_SHOWN: Final = 20
_VALUES_SHOWN: Final = 3


@dataclass(slots=True)
class Scores:
    """The scores of a file by column, one for each sample in order, NaN for none."""

    file: str
    unit: str
    """What a place counts in messages."""
    values: dict[str, array[float]] = field(default_factory=dict[str, "array[float]"])
    places: array[int] = field(default_factory=lambda: array("q"))
    problems: list[Problem] = field(default_factory=list[Problem])
    """Cells that are not numbers."""

    def begin(self, columns: Iterable[str]) -> None:
        """Forget all scores, and read these columns."""
        self.values = {column: array("d") for column in columns}
        self.places = array("q")
        self.problems.clear()

    def keep(self, columns: Iterable[str]) -> None:
        """Forget the scores of all other columns."""
        self.values = {column: self.values[column] for column in columns}

    def add(self, place: int, cells: Mapping[str, object]) -> None:
        """Add the scores of the next sample."""
        self.places.append(place)
        for column, values in self.values.items():
            value = number_of(cells.get(column))
            if value is None:
                finite = "" if read_cell(cells.get(column)) is None else "finite "
                expected, got = f"a {finite}number or nothing", check.shown(cells.get(column))
                self.problems.append(Problem(expected, got, column, self.file, place, self.unit))
            values.append(nan if value is None else value)

    def outside(self, column: str, span: tuple[float, float]) -> Problem:
        """Return the problem of the first value of a column that is outside a range."""
        place, value = next(
            (place, value)
            for place, value in zip(self.places, self.values[column], strict=True)
            if not isnan(value) and not span[0] <= value <= span[1]
        )
        expected = f"a number from {span[0]:g} to {span[1]:g}"
        return Problem(expected, f"{value:g}", column, self.file, place, self.unit)


@dataclass(slots=True)
class Rows:
    """Samples with their scores; the scores are available once the samples were read."""

    dataset: Dataset
    origin: str
    offered: tuple[str, ...]
    """The columns of scores."""
    scores: Scores
    lower_is_better: frozenset[str] = frozenset()
    left_out: dict[str, str] = field(default_factory=dict[str, str])


def number_of(value: object) -> float | None:
    """Return the finite number in a cell, NaN for an empty cell, None for anything else."""
    found = read_cell(value)
    return None if found is None or isinf(found) else found


def read_cell(value: object) -> float | None:
    """Return the number in a cell, also an infinite one, NaN for an empty cell, None for anything else."""
    if value is None:
        return nan
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    if not isinstance(value, str):
        return None
    text = value.strip().lower()
    if text in _MISSING:
        return nan
    if text in _TRUTH:
        return _TRUTH[text]
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def refused(problems: Sequence[Problem], *, name: str, records: int) -> DataError:
    """Return the error that nothing was imported; each problem is listed once, with the values found and first places.

    `records`: number of records that were read, good and bad.
    """
    if len(problems) == 1:
        return DataError.of(*problems)
    lines = grouped_messages(_merged(problems), records=records)
    places = {each.line for each in problems if each.line is not None}
    which = f"{count(len(places), 'invalid record')} of {records:,}" if places else count(len(problems), "problem")
    first = f"{name}: nothing was imported ({which})."
    more = [f"... and {len(lines) - _PROBLEMS_SHOWN} more."] if len(lines) > _PROBLEMS_SHOWN else []
    return DataError("\n".join([first, *lines[:_PROBLEMS_SHOWN], *more]), problems=tuple(problems))


def _merged(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems; those that differ only in line and found value get one text of all found values."""
    found: dict[Problem, dict[str, None]] = {}
    for each in problems:
        found.setdefault(_without_value(each), {})[each.got] = None
    return [replace(each, got=_listed([*found[_without_value(each)]])) for each in problems]


def _without_value(problem: Problem) -> Problem:
    return replace(problem, line=None, got="")


def _listed(values: Sequence[str]) -> str:
    more = len(values) - _VALUES_SHOWN
    return ", ".join(values[:_VALUES_SHOWN]) + (f" and {more:,} others" if more > 0 else "")
