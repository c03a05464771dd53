"""Scores in the columns of a table (CSV, TSV, JSON Lines or JSON), such as a result file of ragas."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import islice
from math import isinf, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.commands.imports.problems import refused
from merilo.commands.imports.ragas import order_unknown, unscored_at_the_front
from merilo.data import check
from merilo.data.aliases import Planner
from merilo.data.load import MAX_LINE_BYTES, load
from merilo.data.sample import BadRecord, Columns, Dataset, Sample
from merilo.data.source import RecordFile, data_name, format_of
from merilo.errors import DataError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.data.lines import RawRecord

_MISSING: Final = frozenset({"", "nan", "none", "null", "na", "n/a", "<na>"})
_TRUTH: Final = {"true": 1.0, "false": 0.0}
_RAGAS: Final = (
    frozenset({"user_input", "response"}),
    frozenset({"user_input", "retrieved_contexts"}),
    frozenset({"user_input", "reference"}),
    frozenset({"question", "answer"}),
    frozenset({"question", "contexts"}),
)
"""Columns of which a ragas result has at least one set: three sets from 0.2 on, two before."""
_RAGAS_LOWER: Final = ("noise_sensitivity",)
_INDEX: Final = frozenset({"", "Unnamed: 0", "index", "level_0"})
"""Names that pandas gives to the column of row numbers."""
_SCANNED: Final = 1_000
"""Number of records that are scanned for columns."""
_SHOWN: Final = 8


@dataclass(slots=True)
class Rows:
    """Samples with their scores; the scores are available once the samples were read."""

    dataset: Dataset
    origin: str
    offered: tuple[str, ...]
    """The columns of scores."""
    scores: Callable[[], Mapping[str, array[float]]]
    """Return the scores by column, one per sample in order, NaN for none."""
    problems: list[Problem]
    """Cells that are not numbers; filled while the samples are read."""
    outside: Callable[[str, tuple[float, float]], Problem]
    """Return the first value of a column outside a range, with its line."""
    lower_is_better: frozenset[str] = frozenset()
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    note: str = ""
    """A caveat on the file's scores; empty if there is none."""
    columns: tuple[str, ...] = ()
    """All columns of a table; empty for the files that name their package."""
    package: str = ""
    """The package that wrote the file, if its layout shows that: `deepeval` or `trulens`."""
    judges: dict[str, str] = field(default_factory=dict[str, str])
    """Column of scores → the model that judged, if the file names it."""


def table_rows(
    source: str | PathLike[str],
    *,
    id: str | None,
    scores: Mapping[str, object],
    mapping: Mapping[str, str] | None = None,
    in_order: bool = False,
) -> Rows:
    """Return the rows of a table. If no columns of scores are named, it must be a ragas result, which shows its scores.

    Raises DataError if the file cannot be read, or if it is a ragas result whose scores may be in the wrong rows
    (unless `in_order`). Raises UsageError for a column that no row has.
    """
    path = Path(source)
    file = RecordFile(path, format_of(path), MAX_LINE_BYTES)
    file.check_head()
    scanned = _columns(file)
    names, numeric = scanned.names, scanned.numeric
    if not names:
        raise _unreadable(file)
    of_ragas = any(marks <= names.keys() for marks in _RAGAS)
    for column in (*scores, *((id,) if id is not None else ()), *(mapping or ())):
        if column not in names:
            raise _no_column(column, names, file)
    found = _found(names, numeric, mapping)
    offered = tuple(scores) or (found if of_ragas else ())
    unscored = unscored_at_the_front(tuple(names), found, scanned.first, found=of_ragas and not scores)
    if unscored is not None and not in_order:
        raise DataError(order_unknown(file.name, unscored))
    if not offered:
        raise UsageError(
            f"{path.name} has the columns {', '.join(list(names)[:_SHOWN])}{' ...' * (len(names) > _SHOWN)}; "
            "name the columns of scores (--score COL, optionally with a range: COL=0..1)."
        )
    renamed = {**(mapping or {}), **({id: "id"} if id is not None else {})}
    table = _Table(path, file, offered, renamed, [name for name in names if name not in offered])
    return Rows(
        dataset=table.dataset(data_name(path)),
        origin=f"ragas, {path.name}" if of_ragas and not scores else path.name,
        offered=offered,
        scores=lambda: table.values,
        problems=table.problems,
        outside=table.outside,
        lower_is_better=frozenset(each for each in offered if of_ragas and each.startswith(_RAGAS_LOWER)),
        columns=tuple(names),
        note="" if unscored is None else f"The first row has no score in {unscored}; the order of the rows is trusted.",
    )


def number_of(value: object) -> float | None:
    """Return the finite number in a cell, NaN for an empty cell, None for anything else."""
    found = _read(value)
    return None if found is None or isinf(found) else found


def _read(value: object) -> float | None:
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


@dataclass(slots=True)
class _Scanned:
    """The columns that occur in the first records of a table."""

    names: dict[str, None] = field(default_factory=dict[str, None])
    """The columns in order."""
    numeric: dict[str, bool] = field(default_factory=dict[str, bool])
    """For each column with values: True if all of them are numbers."""
    first: dict[str, float] = field(default_factory=dict[str, float])
    """The values of the first row as numbers; NaN for anything else."""


def _columns(file: RecordFile) -> _Scanned:
    scanned = _Scanned()
    for record in islice(file.records(), _SCANNED):
        is_first = not scanned.names
        for column, value in (record.value or {}).items():
            found = _read(value)  # also infinity, so that a column with it is refused with its row, not overlooked
            if column not in scanned.names:
                scanned.names[column] = None
                if is_first:
                    scanned.first[column] = nan if found is None else found
            if found is None or not isnan(found):
                scanned.numeric[column] = scanned.numeric.get(column, True) and found is not None
    return scanned


def _found(
    names: Mapping[str, None], numeric: Mapping[str, bool], mapping: Mapping[str, str] | None
) -> tuple[str, ...]:
    """Return the columns of scores in a ragas result: numeric columns that are not sample fields."""
    columns = Columns()
    planned = Planner(dict(mapping or {}), columns).plan({name: 1.0 if numeric.get(name) else None for name in names})
    return tuple(name for name in planned.kept if numeric.get(name) and name not in _INDEX)


def _unreadable(file: RecordFile) -> DataError:
    """Return the error for a file without columns in the scanned records, with the problems of all records."""
    problems, records = list[Problem](), 0
    for record in file.records():
        problems += _placed(record, file)
        records += 1
    if not problems:
        problems = [Problem("a record with columns", "none" if not records else "empty ones", source=file.name)]
    return refused(problems, name=file.name, records=records)


def _placed(record: RawRecord, file: RecordFile) -> list[Problem]:
    """Return the problems of a record, with file and line."""
    return [replace(each, source=file.name, line=record.place, unit=file.unit) for each in record.problems]


def _no_column(column: str, names: Mapping[str, None], file: RecordFile) -> UsageError:
    """Return the error for a column that no scanned record has; it names the first unreadable record, if any."""
    bad = [problem for record in islice(file.records(), _SCANNED) for problem in _placed(record, file)]
    near = get_close_matches(column, names, n=3)
    shown = list(names)[:_SHOWN]
    advice = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(shown)}."
    also = f" {bad[0].message}" if bad else ""
    return UsageError(f"No column {column!r} in {file.name}; {advice}{also}")


@dataclass(slots=True)
class _Table:
    """A file that is read twice in parallel: for its samples, and for the scores and their lines."""

    path: Path
    file: RecordFile
    offered: Sequence[str]
    mapping: Mapping[str, str]
    others: Sequence[str]
    """The columns without scores."""
    values: dict[str, array[float]] = field(default_factory=dict[str, "array[float]"])
    places: array[int] = field(default_factory=lambda: array("q"))
    problems: list[Problem] = field(default_factory=list[Problem])

    def dataset(self, name: str) -> Dataset:
        """Return the samples; iterating over them fills `values` and `places`."""
        columns = Columns()
        planned = Planner(dict(self.mapping), columns).plan(dict.fromkeys(self.others))
        if planned.knows_a_field:
            loaded = load(self.path, mapping=self.mapping, ignore=(*self.offered, *_INDEX - self.mapping.keys()))
            return Dataset(name, lambda: self._with_scores(iter(loaded)), loaded.columns)
        return Dataset(name, lambda: self._with_scores(None), Columns())

    def outside(self, column: str, span: tuple[float, float]) -> Problem:
        """See `Rows.outside`."""
        for value, place in zip(self.values[column], self.places, strict=True):
            if not isnan(value) and not span[0] <= value <= span[1]:
                return self._problem(f"a number from {span[0]:g} to {span[1]:g}", f"{value:g}", column, place)
        raise ValueError(f"all values of {column} are in the range")

    def _with_scores(self, samples: Iterator[Sample | BadRecord] | None) -> Iterator[Sample | BadRecord]:
        self.values = {column: array("d") for column in self.offered}
        self.places = array("q")
        self.problems.clear()
        number = 0
        for number, record in enumerate(self.file.records(), start=1):
            self._score(record)
            yield self._alone(record, number) if samples is None else next(samples)
        if not number:
            raise DataError.of(Problem("at least one record", "none", source=self.file.name))

    def _score(self, record: RawRecord) -> None:
        self.places.append(record.place)
        for column in self.offered:
            cell = (record.value or {}).get(column)
            value = number_of(cell)
            if value is None:
                expected = "a number or nothing" if _read(cell) is None else "a finite number or nothing"
                self.problems.append(self._problem(expected, check.shown(cell), column, record.place))
            self.values[column].append(nan if value is None else value)

    def _alone(self, record: RawRecord, number: int) -> Sample | BadRecord:
        """Return a sample with only an id, and the other columns as its metadata."""
        if record.value is None or record.problems:
            return self._bad(record)
        named = next((column for column, field_name in self.mapping.items() if field_name == "id"), "id")
        known = {named, *self.offered, *_INDEX}
        present = {name: value for name, value in record.value.items() if not check.is_missing(value)}
        rest = {name: value for name, value in present.items() if name not in known}
        try:
            return Sample.from_record({"id": present.get(named, str(number)), "metadata": rest})
        except DataError as error:
            return self._bad(record._replace(problems=error.problems))

    def _bad(self, record: RawRecord) -> BadRecord:
        return BadRecord(tuple(_placed(record, self.file)))

    def _problem(self, expected: str, got: str, column: str, place: int) -> Problem:
        return Problem(expected, got, column, self.file.name, place, self.file.unit)
