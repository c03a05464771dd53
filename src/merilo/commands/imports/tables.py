"""Scores in the columns of a table (CSV, TSV, JSON Lines or JSON), such as a result file of ragas."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.commands.imports.rows import Rows, Scores, read_cell, refused
from merilo.data import check
from merilo.data.aliases import Planner
from merilo.data.load import MAX_LINE_BYTES, load
from merilo.data.sample import BadRecord, Columns, Dataset, Sample
from merilo.data.source import RecordFile, data_name, format_of
from merilo.errors import DataError, Problem, UsageError
from merilo.metrics.registry import also_called, known_definition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.data.lines import RawRecord

_RAGAS: Final = (
    frozenset({"user_input", "response"}),
    frozenset({"user_input", "retrieved_contexts"}),
    frozenset({"user_input", "reference"}),
    frozenset({"question", "answer"}),
    frozenset({"question", "contexts"}),
)
"""Columns of which a ragas result has at least one set: three sets from 0.2 on, two before."""
_RAGAS_FIELDS: Final = frozenset({"question", "contexts", "answer", "ground_truth"})
"""The names that ragas before 0.2 gives to fields; a result has at least two of them."""
_RAGAS_METRICS: Final = (
    *("faithfulness", "answer_relevancy", "context_precision", "context_utilization", "context_recall"),
    *("context_relevancy", "context_entity_recall", "answer_similarity", "answer_correctness"),
    *("harmfulness", "maliciousness", "coherence", "correctness", "conciseness"),
)
"""The names that the affected versions give to metrics; users name their own critiques."""
_RAGAS_LOWER: Final = ("noise_sensitivity",)
_INDEX: Final = frozenset({"", "Unnamed: 0", "index", "level_0"})
"""Names that pandas gives to the column of row numbers."""
_SCANNED: Final = 1_000
"""Number of records that are scanned for columns."""
_SHOWN: Final = 8


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
    file = RecordFile(path, format_of(path), MAX_LINE_BYTES).by_content()
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
    unscored = _unscored_at_the_front(tuple(names), found, scanned.first, found=of_ragas and not scores)
    if unscored is not None and not in_order:
        raise DataError(_order_unknown(file.name, unscored))
    if not offered and (empty := [name for name in names if name not in numeric and _is_score(name)]):
        raise UsageError(
            f"All {len(empty)} score columns of {path.name} are empty. To evaluate the rows: merilo run {path.name}"
        )
    if not offered:
        raise UsageError(
            f"{path.name} has the columns {', '.join(list(names)[:_SHOWN])}{' ...' * (len(names) > _SHOWN)}; "
            "name the columns of scores (--score COL, optionally with a range: COL=0..1)."
        )
    renamed = {**(mapping or {}), **({id: "id"} if id is not None else {})}
    table = _Table(path, file, offered, renamed, Scores(file.name, file.unit))
    return Rows(
        dataset=table.dataset(data_name(path), [name for name in names if name not in offered]),
        origin=f"ragas, {path.name}" if of_ragas and not scores else path.name,
        offered=offered,
        scores=table.scores,
        lower_is_better=frozenset(each for each in offered if of_ragas and each.startswith(_RAGAS_LOWER)),
        note="" if unscored is None else f"The first row has no score in {unscored}; the order of the rows is trusted.",
    )


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
            found = read_cell(value)  # also infinity, so that a column with it is refused with its row, not overlooked
            if column not in scanned.names:
                scanned.names[column] = None
                if is_first:
                    scanned.first[column] = nan if found is None else found
            if found is None or not isnan(found):
                scanned.numeric[column] = scanned.numeric.get(column, True) and found is not None
    return scanned


def _is_score(name: str) -> bool:
    """Return True if a column has the name of a metric of merilo or of another tool."""
    return bool(also_called(name)) or known_definition(f"ragas:{name}") is not None


def _found(
    names: Mapping[str, None], numeric: Mapping[str, bool], mapping: Mapping[str, str] | None
) -> tuple[str, ...]:
    """Return the columns of scores in a ragas result: numeric columns that are not sample fields."""
    columns = Columns()
    planned = Planner(dict(mapping or {}), columns).plan({name: 1.0 if numeric.get(name) else None for name in names})
    return tuple(name for name in planned.kept if numeric.get(name) and name not in _INDEX)


def _unscored_at_the_front(
    columns: Sequence[str], numeric: Sequence[str], first: Mapping[str, float], *, found: bool
) -> str | None:
    """Return the column of scores that shows that scores may be in the wrong rows, or None if they are in order.

    ragas 0.1.0 to 0.1.9 runs one job for each row and metric, row by row, and sorts the results by the number of the
    job. A job that raises an exception gets the number -1 (if `raise_exceptions=False`), so its NaN moves to the front
    and the scores before it move back by one job: to the next metric, and from the last metric to the first one of the
    next row. 0.1.10 keeps the order. The file does not say which version wrote it.

    If any job failed, the first result of all is NaN: that of the first row and the first metric. The columns of the
    data come first, then the metrics in their order, so the first metric is at or before the first known name. If the
    first row lacks a metric's column altogether, someone dropped missing values, and that metric may be the first.

    Args:
        columns: all columns in their order.
        numeric: those of them, in order, that may hold scores.
        first: the numbers in the first row, by column; NaN for a value that is not a number.
        found: True if the table is known to be a result of ragas; otherwise a column must have the name of a metric.
    """
    known = [place for place, name in enumerate(numeric) if name in _RAGAS_METRICS]
    if len(_RAGAS_FIELDS.intersection(columns)) < 2 or not (known or found):
        return None
    candidates = numeric[: known[0] + 1] if known else numeric
    dropped = (name for name in numeric if name in _RAGAS_METRICS and name not in first)
    return next((name for name in candidates if isnan(first.get(name, nan))), None) or next(dropped, None)


def _order_unknown(file: str, column: str) -> str:
    """Return the message that refuses a result whose scores may be in the wrong rows."""
    return (
        f"{file}: the first row has no score in {column!r}. ragas 0.1.0 to 0.1.9 moves the scores that failed to the "
        "front, so the other scores may be in the wrong rows. Run ragas again with raise_exceptions=True, or with "
        "ragas 0.1.10 or later. If ragas 0.1.10 or later wrote this file, add --in-order."
    )


def _unreadable(file: RecordFile) -> DataError:
    """Return the error for a file without columns in the scanned records, with the problems of all records."""
    problems, records = list[Problem](), 0
    for record in file.records():
        problems += file.placed(record)
        records += 1
    if not problems:
        problems = [Problem("a record with columns", "none" if not records else "empty ones", source=file.name)]
    return refused(problems, name=file.name, records=records)


def _no_column(column: str, names: Mapping[str, None], file: RecordFile) -> UsageError:
    """Return the error for a column that no scanned record has; it names the first unreadable record, if any."""
    bad = [problem for record in islice(file.records(), _SCANNED) for problem in file.placed(record)]
    near = get_close_matches(column, names, n=3)
    shown = list(names)[:_SHOWN]
    advice = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(shown)}."
    also = f" {bad[0].message}" if bad else ""
    return UsageError(f"No column {column!r} in {file.name}; {advice}{also}")


@dataclass(frozen=True, slots=True)
class _Table:
    """A file that is read twice in parallel: for its samples, and for the scores and their lines."""

    path: Path
    file: RecordFile
    offered: Sequence[str]
    mapping: Mapping[str, str]
    scores: Scores

    def dataset(self, name: str, others: Sequence[str]) -> Dataset:
        """Return the samples; iterating over them fills `scores`. `others`: the columns without scores."""
        planned = Planner(dict(self.mapping), Columns()).plan(dict.fromkeys(others))
        if planned.knows_a_field:
            loaded = load(self.path, mapping=self.mapping, ignore=(*self.offered, *_INDEX - self.mapping.keys()))
            return Dataset(name, lambda: self._with_scores(iter(loaded)), loaded.columns)
        return Dataset(name, lambda: self._with_scores(None), Columns())

    def _with_scores(self, samples: Iterator[Sample | BadRecord] | None) -> Iterator[Sample | BadRecord]:
        self.scores.begin(self.offered)
        number = 0
        for number, record in enumerate(self.file.records(), start=1):
            self.scores.add(record.place, record.value or {})
            yield self._alone(record, number) if samples is None else next(samples)
        if not number:
            raise DataError.of(Problem("at least one record", "none", source=self.file.name))

    def _alone(self, record: RawRecord, number: int) -> Sample | BadRecord:
        if record.value is None or record.problems:
            return BadRecord(tuple(self.file.placed(record)))
        named = next((column for column, field_name in self.mapping.items() if field_name == "id"), "id")
        known = {named, *self.offered, *_INDEX}
        present = {name: value for name, value in record.value.items() if not check.is_missing(value)}
        rest = {name: value for name, value in present.items() if name not in known}
        try:
            return Sample.from_record({"id": present.get(named, str(number)), "metadata": rest})
        except DataError as error:
            return BadRecord(tuple(self.file.placed(record, error.problems)))
