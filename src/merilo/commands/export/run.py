"""Write the samples of a run with their outcomes to a file for other tools; the name's ending chooses the format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from merilo.commands.export.evaluations import write_evaluations
from merilo.commands.export.formats import Written, write_csv, write_jsonl, write_parquet, write_xlsx
from merilo.errors import RunError, UsageError
from merilo.rendering.page import Page
from merilo.rendering.wording import count
from merilo.results.sample_table import SampleTable
from merilo.runs.publish import staged
from merilo.runs.run import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from merilo.runs.run import Run

FORMATS: Final[Mapping[str, Callable[[SampleTable, IO[bytes], Written], None]]] = {
    ".csv": write_csv,
    ".jsonl": write_jsonl,
    ".parquet": write_parquet,
    ".xlsx": write_xlsx,
    ".otlp.jsonl": write_evaluations,
}
"""Ending of the file name → function that writes the table to a binary file."""


@dataclass(frozen=True, slots=True)
class Export:
    """A written file."""

    path: Path
    samples: int
    columns: int
    truncated: int
    """Number of cells whose text was too long for the format and was truncated."""
    complete: bool
    """False if the run was stopped before its last sample."""
    events: int = 0
    """Number of events that were written instead of a table."""


def export_run(run: Run | str | PathLike[str], out: str | PathLike[str]) -> Export:
    """Write the run's samples to `out` and return what was written. An existing file is replaced at the end.

    Raises UsageError for another ending, if a package is missing, or if the run does not fit into the format. Raises
    RunError if the run cannot be read or the file cannot be written.
    """
    path = Path(out)
    endings = sorted(FORMATS, key=len, reverse=True)  # .otlp.jsonl before .jsonl
    writer = next((FORMATS[ending] for ending in endings if path.name.lower().endswith(ending)), None)
    if writer is None:
        raise UsageError(f"Cannot tell the format of {path}. End the name in one of {', '.join(FORMATS)}.")
    found = opened(run)
    table = SampleTable.of(found)
    written = Written()
    try:
        with staged(path) as file:
            writer(table, file, written)
    except OSError as error:
        raise RunError(f"Cannot write {path} ({error.strerror or error}); choose another file.") from error
    return Export(path, written.samples, len(table.columns), written.truncated, found.complete, written.events)


def export_record(found: Export) -> dict[str, Any]:  # Any: JSON
    """Return what was written as a JSON-able object."""
    return {
        "file": str(found.path),
        "samples": found.samples,
        "columns": found.columns,
        "truncated": found.truncated,
        "complete": found.complete,
    }


def export_page(found: Export, width: int) -> Page:
    """Return a line on what was written, and a note for each thing that is missing in it."""
    page = Page(width)
    parts = f"{count(found.events, 'event')}" if found.events else f"{count(found.columns, 'column')}"
    page.line(f"{count(found.samples, 'sample')} and {parts}, saved in {found.path}")
    if not found.complete:
        page.text("The run was stopped before its last sample; samples without outcomes are not in the file.")
    if found.truncated:
        page.text(
            f"{count(found.truncated, 'text')} longer than a cell of the sheet can hold: truncated. "
            "A .csv or .parquet file holds them whole."
        )
    return page
