"""Scores in a file, by column: of a table (CSV, TSV, JSON Lines or JSON) such as a result of ragas, or of an export."""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import islice
from math import isinf, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.exports import export_of
from merilo.data import check
from merilo.data.aliases import Planner
from merilo.data.content import CellError, list_in_cell
from merilo.data.lines import ForeignRecords, RawRecord
from merilo.data.load import MAX_LINE_BYTES, load
from merilo.data.problem_report import grouped_messages
from merilo.data.sample import BadRecord, Columns, Dataset, Sample
from merilo.data.source import RecordFile, data_name, format_of
from merilo.errors import DataError, Problem, UsageError
from merilo.metrics.registry import also_called, known_definition
from merilo.numbers import count

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    Record = Mapping[str, Any]  # Any: cells

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
            value = read_cell(cells.get(column))
            if value is None or isinf(value):
                expected = f"a {'' if value is None else 'finite '}number or nothing"
                got = check.shown(cells.get(column))
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
        found.setdefault(replace(each, line=None, got=""), {})[each.got] = None
    listed: dict[Problem, str] = {}
    for each, values in found.items():
        more = len(values) - _VALUES_SHOWN
        listed[each] = ", ".join([*values][:_VALUES_SHOWN]) + (f" and {more:,} others" if more > 0 else "")
    return [replace(each, got=listed[replace(each, line=None, got="")]) for each in problems]


# -- columns of a table -------------------------------------------------------------------------------

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
    ordered: bool = False,
    measures: Collection[str] = (),
) -> Rows:
    """Return the rows of a table. If no columns of scores are named, it must be a ragas result, which shows its scores.

    `measures`: columns that are not scores unless named. Raises DataError if the file cannot be read, or if it is a
    ragas result whose scores may be in the wrong rows (unless `ordered`). Raises UsageError for a column that no row
    has.
    """
    path = Path(source)
    file = RecordFile(path, format_of(path), MAX_LINE_BYTES).by_content()
    names, first = _columns(file)
    if not names:
        records = [*file.records()]
        problems = [each for record in records for each in file.placed(record)]
        nothing = Problem("a record with columns", "empty ones" if records else "none", source=file.name)
        raise refused(problems or [nothing], name=file.name, records=len(records))
    of_ragas = any(marks <= names.keys() for marks in _RAGAS)
    for column in (*scores, *((id,) if id is not None else ()), *(mapping or ())):
        if column not in names:
            raise _no_column(column, names, file)
    planned = Planner(dict(mapping or {}), Columns()).plan({name: 1.0 if names[name] else None for name in names})
    # The scores of a ragas result are numeric columns that are not sample fields.
    found = tuple(name for name in planned.kept if names.get(name) and name not in {*_INDEX, *measures})
    offered = tuple(scores) or (found if of_ragas else ())
    if not ordered:
        unscored = _unscored_at_the_front(tuple(names), found, first, found=of_ragas and not scores)
        if unscored is not None:
            raise DataError(
                f"{file.name}: the first row has no score in {unscored!r}. ragas 0.1.0 to 0.1.9 moves the scores that "
                "failed to the front, so the other scores may be in the wrong rows. Run ragas again with "
                "raise_exceptions=True, or with ragas 0.1.10 or later. If ragas 0.1.10 or later wrote this file, name "
                "its release: --source ragas-0.4.3."
            )
    scores_of = [each for each in names if also_called(each) or known_definition(f"ragas:{each}") is not None]
    if not offered and (empty := [name for name in scores_of if names[name] is None]):
        raise UsageError(
            f"All {len(empty)} score columns of {path.name} are empty. To evaluate the rows: merilo run {path.name}"
        )
    if not offered:
        raise UsageError(
            f"{path.name} has the columns {', '.join(list(names)[:_SHOWN])}{' ...' * (len(names) > _SHOWN)}; "
            "name the columns of scores (--score COL, optionally with a range: COL=0..1)."
        )
    renamed = {**(mapping or {}), **({id: "id"} if id is not None else {})}
    read = Scores(file.name, file.unit)
    return Rows(
        dataset=_dataset(path, file, offered, renamed, read, others=[name for name in names if name not in offered]),
        origin=f"ragas, {path.name}" if of_ragas and not scores else path.name,
        offered=offered,
        scores=read,
        lower_is_better=frozenset(each for each in offered if of_ragas and each.startswith(_RAGAS_LOWER)),
    )


def _columns(file: RecordFile) -> tuple[dict[str, bool | None], dict[str, float]]:
    """Return the columns of the first records in order, and the numbers of the first row, NaN for anything else.

    A column is True if all its values are numbers, None if it has none.
    """
    numeric: dict[str, bool | None] = {}
    first: dict[str, float] = {}
    for record in islice(file.records(), _SCANNED):
        is_first = not numeric
        for column, value in (record.value or {}).items():
            found = read_cell(value)  # also infinity, so that a column with it is refused with its row, not overlooked
            if is_first:
                first[column] = nan if found is None else found
            numeric.setdefault(column, None)
            if found is None or not isnan(found):
                numeric[column] = numeric[column] is not False and found is not None
    return numeric, first


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


def _no_column(column: str, names: Mapping[str, object], file: RecordFile) -> UsageError:
    """Return the error for a column that no scanned record has; it names the first unreadable record, if any."""
    bad = [problem for record in islice(file.records(), _SCANNED) for problem in file.placed(record)]
    near = get_close_matches(column, names, n=3)
    shown = list(names)[:_SHOWN]
    advice = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(shown)}."
    also = f" {bad[0].message}" if bad else ""
    return UsageError(f"No column {column!r} in {file.name}; {advice}{also}")


def _dataset(
    path: Path,
    file: RecordFile,
    offered: Sequence[str],
    mapping: Mapping[str, str],
    scores: Scores,
    *,
    others: Sequence[str],
) -> Dataset:
    """Return the samples; iterating over them fills `scores`. `others`: the columns without scores."""
    loaded = None
    if Planner(dict(mapping), Columns()).plan(dict.fromkeys(others)).knows_a_field:
        loaded = load(path, mapping=mapping, ignore=(*offered, *_INDEX - mapping.keys()))

    def samples() -> Iterator[Sample | BadRecord]:
        """Read the file twice in parallel: for its samples, and for the scores and their lines."""
        scores.begin(offered)
        number, of_fields = 0, None if loaded is None else iter(loaded)
        for number, record in enumerate(file.records(), start=1):
            scores.add(record.place, record.value or {})
            yield _without_fields(file, record, number, offered, mapping) if of_fields is None else next(of_fields)
        if not number:
            raise DataError.of(Problem("at least one record", "none", source=file.name))

    return Dataset(data_name(path), samples, Columns() if loaded is None else loaded.columns)


def _without_fields(
    file: RecordFile, record: RawRecord, number: int, scores: Collection[str], mapping: Mapping[str, str]
) -> Sample | BadRecord:
    """Return the sample of a row whose table has no field of a sample; its other columns are metadata."""
    if record.value is None or record.problems:
        return BadRecord(tuple(file.placed(record)))
    named = next((column for column, field_name in mapping.items() if field_name == "id"), "id")
    present = {name: value for name, value in record.value.items() if not check.is_missing(value)}
    rest = {name: value for name, value in present.items() if name not in {named, *scores, *_INDEX}}
    try:
        return Sample.from_record({"id": present.get(named, str(number)), "metadata": rest})
    except DataError as error:
        return BadRecord(tuple(file.placed(record, error.problems)))


# -- files of other tools -----------------------------------------------------------------------------

_LOWER: Final = ("Hallucination", "Bias", "Toxicity", "Misuse")
"""Names with which metrics of DeepEval begin that pass at or below their threshold."""
_TRULENS: Final = frozenset({"record_id", "input", "output"})
"""Columns of the table of `get_records_and_feedback` of TruLens, saved as CSV, JSON or JSON Lines."""
_APP: Final = ("app_name", "app_version", "app_id")
_CALLS: Final = "_calls"
"""The end of the name of the column with the calls of a feedback function, next to the column of its scores."""
_CONTEXTS: Final = ("context", "contexts", "source")
"""Arguments of feedback functions that hold retrieved text, the likeliest to hold one context each first."""
_MAX_CELL: Final = 2_000_000


def score_rows(
    source: str | PathLike[str],
    *,
    id: str | None = None,
    scores: Mapping[str, object],
    mapping: Mapping[str, str] | None = None,
    ordered: bool = False,
    measures: Collection[str] = (),
) -> Rows:
    """Return the rows of another tool's export, of TruLens records, of a ragas result or of a table.

    Raises DataError and UsageError as `table_rows` does.
    """
    path = Path(source)
    return (
        _export_rows(path, id, scores, is_table=id is not None or bool(mapping))
        or (_trulens_rows(path, id, scores) if not mapping else None)
        or table_rows(source, id=id, scores=scores, mapping=mapping, ordered=ordered, measures=measures)
    )


def _export_rows(path: Path, id: str | None, wanted: Mapping[str, object], *, is_table: bool) -> Rows | None:
    """Return the samples and scores of a file that another system wrote; None if it is not one.

    `is_table`: the user names columns, which only a test run of DeepEval may have otherwise. Raises DataError if the
    file cannot be read, UsageError if it has no scores or not the ones that are named.
    """
    found = export_of(path)
    of_deepeval = found is not None and found.kind.name == "deepeval"
    if found is None or (is_table and not of_deepeval):
        return None
    scores = Scores(path.name, found.unit)
    for item in found.items():
        if item.record is None and not item.problems:
            continue  # a trace that is not a sample
        for name in item.scores:
            scores.values.setdefault(name, array("d", [nan]) * len(scores.places))
        scores.add(item.place, item.scores)
    offered = tuple(scores.values)
    if scores.places and not offered:
        raise UsageError(
            f"{path.name} ({found.kind.title}) has no scores to import. To list its samples, add --list. To evaluate "
            f"them: merilo run {path.name}. To write them: merilo import {path.name} --out samples.jsonl."
        )
    scores.keep(_chosen(wanted, offered, path))
    return Rows(
        dataset=load(found.records(id)),
        origin=f"{found.kind.title}, {path.name}",
        offered=offered,
        scores=scores,
        lower_is_better=frozenset(each for each in offered if of_deepeval and each.startswith(_LOWER)),
    )


def _chosen(wanted: Iterable[str], offered: Sequence[str], path: Path) -> tuple[str, ...]:
    """Return the columns of scores that the user names, otherwise all. Raises UsageError for an unknown one."""
    chosen = tuple(wanted) or tuple(offered)
    if unknown := [name for name in chosen if name not in offered]:
        raise UsageError(f"No scores {unknown[0]!r} in {path.name}; it has {', '.join(offered)}.")
    return chosen


def _trulens_rows(path: Path, id: str | None, wanted: Mapping[str, object]) -> Rows | None:
    """Return the records of a TruLens table as rows; None for any other file.

    A record's contexts are those that its feedback functions were given. Raises DataError for invalid records,
    UsageError for a score that the table does not have.
    """
    try:
        file = RecordFile(path, format_of(path), MAX_LINE_BYTES).by_content()
        first: Record = next((raw.value or {} for raw in file.records()), dict[str, Any]())
    except (DataError, UsageError):
        return None  # the reader of tables reports the problem
    if not first.keys() >= _TRULENS or not any(f"{name}{_CALLS}" in first for name in first):
        return None
    records = list(file.records())
    problems = [each for raw in records for each in file.placed(raw)]
    if problems:
        raise DataError.of(*problems)
    names = {name: None for raw in records for name in raw.value or ()}
    offered = tuple(name for name in names if f"{name}{_CALLS}" in names)
    scores = Scores(path.name, file.unit)
    scores.begin(_chosen(wanted, offered, path))
    for raw in records:
        scores.add(raw.place, raw.value or {})

    def samples() -> Iterable[RawRecord]:
        for raw in records:
            record = raw.value or {}
            fields = {
                "id": record.get("record_id" if id is None else id),
                "user_input": _text(record.get("input")),
                "response": _text(record.get("output")),
                "retrieved_contexts": _contexts(record, offered) or None,
                "metadata": {name: record[name] for name in _APP if record.get(name)} or None,
            }
            yield RawRecord(raw.place, {name: value for name, value in fields.items() if value is not None})

    dataset = load(ForeignRecords(data_name(path), path.name, file.unit, samples))
    return Rows(dataset, f"TruLens, {path.name}", offered, scores)


def _text(cell: object) -> object:
    """Return the text of a cell; a JSON string in it is read, as the database holds it."""
    if isinstance(cell, str) and cell[:1] == '"' and cell[-1:] == '"':
        try:
            return json.loads(cell)
        except ValueError:
            return cell
    return cell


def _contexts(record: Record, feedback: Sequence[str]) -> list[str]:
    """Return the contexts that the feedback functions were given, each once, in the order of the calls."""
    calls = [call for name in feedback for call in _calls(record.get(f"{name}{_CALLS}"))]
    given = [arguments for call in calls if check.is_record(arguments := call.get("args"))]
    found = ([*dict.fromkeys(text for each in given for text in _texts(each.get(name)))] for name in _CONTEXTS)
    return next(filter(None, found), list[str]())


def _texts(value: object) -> list[str]:
    """Return the texts in an argument: one text, or a list of texts, which may be nested."""
    if check.is_list(value):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) and value else []


def _calls(cell: object) -> list[Mapping[str, object]]:
    """Return the calls in a cell: a list, or its text as JSON or as Python prints it."""
    if isinstance(cell, str) and len(cell) <= _MAX_CELL:
        try:
            cell = list_in_cell(cell)
        except CellError:
            return []
    return [call for call in cell if check.is_record(call)] if check.is_list(cell) else []
