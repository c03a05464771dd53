"""The summary of an export: as one JSON object, and as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.rendering.page import Page
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from merilo.commands.export.run import Export


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
