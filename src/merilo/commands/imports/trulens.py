"""Scores from the records of TruLens: the table of `get_records_and_feedback`, saved as CSV, JSON or JSON Lines."""

from __future__ import annotations

import ast
import json
from array import array
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.imports.tables import Rows, number_of
from merilo.data import check
from merilo.data.load import MAX_LINE_BYTES, load
from merilo.data.sample import BadRecord, Dataset
from merilo.data.source import RecordFile, data_name, format_of
from merilo.errors import DataError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.data.sample import Sample

    Record = Mapping[str, Any]  # Any: cells

_COLUMNS: Final = frozenset({"record_id", "input", "output"})
_CALLS: Final = "_calls"
"""The end of the name of the column with the calls of a feedback function, next to the column of its scores."""
_CONTEXTS: Final = ("context", "contexts", "source")
"""Arguments of feedback functions that hold retrieved text, the likeliest to hold one context each first."""
_MAX_CELL: Final = 2_000_000


def trulens_rows(source: str | PathLike[str], *, id: str | None, scores: Mapping[str, object]) -> Rows | None:
    """Return the records of a TruLens table as rows; None for any other file.

    A record's contexts are those that its feedback functions were given. Raises DataError for invalid records,
    UsageError for a score that the table does not have.
    """
    path = Path(source)
    found = _records(path)
    if found is None:
        return None
    offered = tuple(_feedback_columns(found))
    unknown = [name for name in scores if name not in offered]
    if unknown or not offered:
        there = f"it has {', '.join(offered)}" if offered else "its records were not evaluated by feedback functions"
        raise UsageError(
            f"No feedback {unknown[0]!r} in {path.name}; {there}." if unknown else f"{path.name}: {there}."
        )
    chosen = tuple(scores) or offered
    values = {name: array("d") for name in chosen}
    problems: list[Problem] = []
    for place, record in enumerate(found, start=1):
        for name in chosen:
            value = number_of(record.get(name))
            if value is None:
                got = check.shown(record.get(name))
                problems.append(Problem("a number or nothing", got, name, path.name, place))
            values[name].append(nan if value is None else value)
    loaded = load([_sample_record(record, id, offered) for record in found])

    def outside(name: str, span: tuple[float, float]) -> Problem:
        place, value = next(
            (place, value)
            for place, value in enumerate(values[name], start=1)
            if not isnan(value) and not span[0] <= value <= span[1]
        )
        return Problem(f"a number from {span[0]:g} to {span[1]:g}", f"{value:g}", name, path.name, place)

    return Rows(
        dataset=Dataset(data_name(path), lambda: _placed(iter(loaded), path), loaded.columns),
        origin=f"TruLens, {path.name}",
        offered=offered,
        scores=lambda: values,
        problems=problems,
        outside=outside,
        package="trulens",
    )


def _records(path: Path) -> list[Record] | None:
    """Return the records of a table of TruLens; None for another file, which the table reader reports."""
    try:
        file = RecordFile(path, format_of(path), MAX_LINE_BYTES)
        file.check_head()
        records = file.records()
        first = next(records, None)
    except (DataError, UsageError):
        return None
    if first is None or first.value is None or not first.value.keys() >= _COLUMNS:
        return None
    if not any(f"{name}{_CALLS}" in first.value for name in first.value):
        return None
    found: list[Record] = [first.value]
    for record in records:
        if record.value is None or record.problems:
            raise DataError.of(*(replace(each, source=path.name, line=record.place) for each in record.problems))
        found.append(record.value)
    return found


def _feedback_columns(records: Sequence[Record]) -> dict[str, None]:
    """Return the columns of scores, in order: those with a column of calls."""
    names = {name: None for record in records for name in record}
    return {name: None for name in names if f"{name}{_CALLS}" in names}


def _sample_record(record: Record, id: str | None, feedback: Sequence[str]) -> dict[str, object]:
    """Return a record of TruLens as a merilo record, without contexts if no feedback function was given any."""
    kept: dict[str, object] = {
        "id": record.get("record_id" if id is None else id),
        "user_input": _text(record.get("input")),
        "response": _text(record.get("output")),
    }
    contexts = _contexts(record, feedback)
    if contexts:
        kept["retrieved_contexts"] = contexts
    apps = {name: record[name] for name in ("app_name", "app_version", "app_id") if record.get(name)}
    return {**kept, "metadata": apps} if apps else kept


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
    found = _parsed(cell) if isinstance(cell, str) and len(cell) <= _MAX_CELL else cell
    return [call for call in found if check.is_record(call)] if check.is_list(found) else []


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _placed(samples: Iterator[Sample | BadRecord], path: Path) -> Iterator[Sample | BadRecord]:
    """Yield the samples; problems of bad records name the file."""
    for sample in samples:
        if isinstance(sample, BadRecord):
            yield BadRecord(tuple(replace(each, source=path.name) for each in sample.problems))
        else:
            yield sample
