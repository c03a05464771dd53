"""Write the samples of a run with their outcomes to a file for other tools; the name's ending chooses the format."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from merilo.adapters.spans import conventions
from merilo.commands.calibrate.slices import shown_run
from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.compare.record import ranking_latex, ranking_rows
from merilo.commands.compare.run import compare_runs
from merilo.commands.diagnose.page import diagnosis_in
from merilo.data.source import escaped
from merilo.errors import UsageError
from merilo.lazy import optional_module
from merilo.numbers import count
from merilo.rendering.frames import Kind, SampleTable, cell_text
from merilo.rendering.page import Page
from merilo.runs.files import staged, writing
from merilo.runs.run import Run, opened
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.runs.outcomes import OutcomeRecord


@dataclass(slots=True)
class Export:
    """A written file, and the amounts that its writer counts."""

    path: Path
    columns: int
    complete: bool
    """False if the run was stopped before its last sample."""
    samples: int = 0
    runs: int = 0
    """Number of runs, of which each is a row; 0 for the samples of one run."""
    events: int = 0
    """Number of events that were written instead of a table."""


def export_run(run: Run | str | PathLike[str], out: str | PathLike[str]) -> Export:
    """Write the run's samples to `out` and return what was written. An existing file is replaced at the end.

    Raises UsageError for another ending, if a package is missing, or if a sample without trace ids is exported as an
    event. Raises RunError if the run cannot be read or the file cannot be written.
    """
    path = Path(out)
    endings = sorted(FORMATS, key=len, reverse=True)  # .otlp.jsonl before .jsonl
    writer = next((FORMATS[ending] for ending in endings if path.name.lower().endswith(ending)), None)
    if writer is None:
        raise UsageError(f"Cannot tell the format of {path}. End the name in one of {', '.join(FORMATS)}.")
    found = opened(run)
    diagnosis = diagnosis_in(found)
    table = SampleTable.of(shown_run(found), diagnosis.named if diagnosis else {})
    written = Export(path, len(table.columns), found.complete)
    with writing(path), staged(path) as file:
        writer(table, file, written)
    return written


def export_runs(runs: Sequence[Run | str | PathLike[str]], out: str | PathLike[str]) -> Export:
    """Write one row per run, of three runs or more, as .csv with all numbers or as .tex with those to print.

    Raises UsageError for another ending and for two runs, and the errors of `compare_runs`.
    """
    path, found = Path(out), compare_runs(runs, ComparisonRequest(samples=0))
    if not found.rankings or path.suffix not in {".csv", ".tex"}:
        raise UsageError(f"A table of runs needs three runs or more, and a .csv or .tex file; got {len(runs)}, {path}.")
    rows = ranking_rows(found)
    text, names = io.StringIO(newline=""), list(dict.fromkeys(name for row in rows for name in row))
    table = csv.writer(text, lineterminator="\r\n")
    for row in (dict(zip(names, names, strict=True)), *rows):
        table.writerow([escaped(cell) if isinstance(cell := row.get(name), str) else cell for name in names])
    tex = ranking_latex(found)
    with writing(path), staged(path) as file:
        file.write((text.getvalue() if path.suffix == ".csv" else tex).encode())
    columns = len(names) if path.suffix == ".csv" else tex.split(r"\\")[0].count(" & ") + 1
    return Export(path, columns, complete=all(side.complete for side in found.sides), runs=len(rows))


def write_csv(table: SampleTable, file: IO[bytes], written: Export) -> None:
    """Write the table as CSV: UTF-8, a line of names first, texts defused for spreadsheets."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
    # with \r\n, \r alone is quoted too: Python before 3.13 quotes only the characters of the line end
    rows = csv.writer(text, lineterminator="\r\n")
    kinds = [column.kind for column in table.columns]
    rows.writerow([escaped(column.name) for column in table.columns])
    for row in table.rows():
        cells = (cell_text(cell, kind) for cell, kind in zip(row, kinds, strict=True))
        rows.writerow(
            ["" if each is None else escaped(each) if isinstance(each, str) else repr(each) for each in cells]
        )
        written.samples += 1
    text.detach()  # the caller flushes and closes the file


def write_jsonl(table: SampleTable, file: IO[bytes], written: Export) -> None:
    """Write one JSON object per sample, with all columns; a missing value is null, lists and objects stay as they are.

    Nothing is defused: a JSON file is not opened as a spreadsheet.
    """
    names = [column.name for column in table.columns]
    for row in table.rows():
        line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, separators=(",", ":"))
        file.write(line.encode("utf-8", "backslashreplace") + b"\n")
        written.samples += 1


_GROUP_ROWS: Final = 10_000


def write_parquet(table: SampleTable, file: IO[bytes], written: Export) -> None:
    """Write the table as Parquet: texts as strings, contexts as 64-bit integers, scores as doubles."""
    arrow, writers = (
        optional_module(name, wanted_by="A .parquet file", install="merilo[parquet]")
        for name in ("pyarrow", "pyarrow.parquet")
    )
    types: dict[Kind, Any] = {Kind.COUNT: arrow.int64(), Kind.SCORE: arrow.float64()}  # Any: types of pyarrow
    schema = arrow.schema([(column.name, types.get(column.kind, arrow.string())) for column in table.columns])
    rows = table.rows()
    with writers.ParquetWriter(file, schema) as writer:
        while group := [*islice(rows, _GROUP_ROWS)]:
            arrays = [
                arrow.array([cell_text(row[at], column.kind) for row in group], type=schema.field(at).type)
                for at, column in enumerate(table.columns)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            written.samples += len(group)


_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")
_SPAN_ID: Final = re.compile(r"[0-9a-f]{16}")


def write_evaluations(table: SampleTable, file: IO[bytes], written: Export) -> None:
    """Write one line per sample: a request of OTLP logs whose records carry trace id and span id.

    Raises UsageError if a sample does not come from a trace with OpenTelemetry's ids.
    """
    metrics = tuple(table.run.manifest.metrics)
    scope = {"name": "merilo", "version": version()}
    for result in table.run.read_samples():
        metadata = result.sample.metadata
        link = {name: each for name in metadata if isinstance(each := metadata[name], str)}
        if not _TRACE_ID.fullmatch(link.get("trace_id", "")) or not _SPAN_ID.fullmatch(link.get("span_id", "")):
            raise UsageError(
                f"Sample {result.sample.id!r} has no OpenTelemetry trace id and span id in its metadata, so its scores "
                "cannot be linked to its spans. Evaluate the trace file itself (merilo run traces.jsonl), or export "
                "another format."
            )
        records = [_event(metric, result.records[metric], link) for metric in metrics if metric in result.records]
        logs = {"scope": scope, "logRecords": records}
        line: dict[str, Any] = {"resourceLogs": [{"resource": {}, "scopeLogs": [logs]}]}
        file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace"))
        file.write(b"\n")
        written.samples += 1
        written.events += len(records)


def _event(metric: str, record: OutcomeRecord, link: Mapping[str, str]) -> dict[str, Any]:  # Any: JSON
    names = conventions().evaluation
    attributes: dict[str, dict[str, object]] = {names["name"]: {"stringValue": metric}}
    if record["outcome"] == "score":
        attributes[names["value"]] = {"doubleValue": record.get("value")}
    else:
        attributes[names["label"]] = {"stringValue": record["outcome"]}
    if reason := record.get("reason") or record.get("error", {}).get("message"):
        attributes[names["explanation"]] = {"stringValue": reason}
    if record["outcome"] == "failed":
        attributes[names["error"]] = {"stringValue": record.get("error", {}).get("kind", "failed")}
    if response := link.get("response_id"):
        attributes[names["response_id"]] = {"stringValue": response}
    time = link.get("span_end_unix_nano", "0")  # not the time of the run: the same run gives the same bytes
    return {
        "timeUnixNano": time,
        "observedTimeUnixNano": time,
        "severityNumber": 9,
        "eventName": names["event"],
        "traceId": link["trace_id"],
        "spanId": link["span_id"],
        "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
    }


FORMATS: Final = {
    ".csv": write_csv,
    ".jsonl": write_jsonl,
    ".parquet": write_parquet,
    ".otlp.jsonl": write_evaluations,
}
"""Ending of the file name → function that writes the table to a binary file."""


def export_page(found: Export, width: int) -> Page:
    """Return a line on what was written, and a note for each thing that is missing in it."""
    page = Page(width)
    parts = f"{count(found.events, 'event')}" if found.events else f"{count(found.columns, 'column')}"
    things = count(found.runs, "run") if found.runs else count(found.samples, "sample")
    page.line(f"{things} and {parts}, saved in {found.path}")
    if not found.complete:
        page.text("The run was stopped before its last sample; samples without outcomes are not in the file.")
    return page
