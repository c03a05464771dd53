"""Scores in the files that other tools write: traces, logs, results, and the records of TruLens."""

from __future__ import annotations

import json
from array import array
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.exports import export_of
from merilo.commands.imports.rows import Rows, Scores
from merilo.commands.imports.tables import table_rows
from merilo.data import check
from merilo.data.cells import CellError, list_in_cell
from merilo.data.lines import ForeignRecords, RawRecord
from merilo.data.load import MAX_LINE_BYTES, load
from merilo.data.source import RecordFile, data_name, format_of
from merilo.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    Record = Mapping[str, Any]  # Any: cells

_LOWER: Final = ("Hallucination", "Bias", "Toxicity", "Misuse")
"""Names with which metrics of DeepEval begin that pass at or below their threshold."""
_TRULENS: Final = frozenset({"record_id", "input", "output"})
"""Columns of the table of `get_records_and_feedback` of TruLens, saved as CSV, JSON or JSON Lines."""
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
    in_order: bool = False,
) -> Rows:
    """Return the rows of another tool's export, of TruLens records, of a ragas result or of a table.

    Raises DataError and UsageError as `table_rows` does.
    """
    path = Path(source)
    return (
        _export_rows(path, id, scores, is_table=id is not None or bool(mapping))
        or (_trulens_rows(path, id, scores) if not mapping else None)
        or table_rows(source, id=id, scores=scores, mapping=mapping, in_order=in_order)
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
        first = next(file.records(), None)
    except (DataError, UsageError):
        return None  # the reader of tables reports the problem
    if first is None or first.value is None or not first.value.keys() >= _TRULENS:
        return None
    if not any(f"{name}{_CALLS}" in first.value for name in first.value):
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
        return (RawRecord(raw.place, _trulens_record(raw.value or {}, id, offered)) for raw in records)

    dataset = load(ForeignRecords(data_name(path), path.name, file.unit, samples))
    return Rows(dataset, f"TruLens, {path.name}", offered, scores)


def _trulens_record(record: Record, id: str | None, feedback: Sequence[str]) -> dict[str, object]:
    """Return a record of TruLens as a merilo record, without contexts if no feedback function was given any."""
    apps = {name: record[name] for name in ("app_name", "app_version", "app_id") if record.get(name)}
    found = {
        "id": record.get("record_id" if id is None else id),
        "user_input": _text(record.get("input")),
        "response": _text(record.get("output")),
        "retrieved_contexts": _contexts(record, feedback) or None,
        "metadata": apps or None,
    }
    return {name: value for name, value in found.items() if value is not None}


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
    for argument in _CONTEXTS:
        found: dict[str, None] = {}
        for call in calls:
            arguments = call.get("args")
            given = arguments.get(argument) if check.is_record(arguments) else None
            found.update(dict.fromkeys(_texts(given)))
        if found:
            return list(found)
    return []


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
