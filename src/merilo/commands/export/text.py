"""The summary of an export or of pooled labels: as one JSON object, and as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.rendering.page import Page
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from merilo.commands.export.qrels import PooledQrels
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


def qrels_record(found: PooledQrels) -> dict[str, Any]:  # Any: JSON
    """Return the pooled labels as a JSON-able object."""
    return {
        "file": str(found.path),
        "spans": found.spans,
        "samples": found.samples,
        "documents": found.documents,
        "by": dict(found.by),
        "missing": found.missing,
        "contexts_in_no_document": found.lost,
    }


def qrels_page(found: PooledQrels, width: int) -> Page:
    """Return a page on the pooled labels: their number, their authors, and what has no label."""
    page = Page(width)
    judged = f"{count(found.spans, 'span')} of {count(found.samples, 'sample')} in {count(found.documents, 'document')}"
    sentences = count(found.missing, "retrieved sentence")
    if found.listed:
        page.line(f"{sentences} to judge, saved in {found.path}")
        page.text(f"Judged: {judged}.")
    else:
        page.line(f"{judged}, saved in {found.path}")
        for author, spans in found.by.items():
            page.text(f"by {author}: {spans:,}", indent=2)
        if found.missing:
            page.text(f"Not judged: {sentences}. List them with --missing.")
    if found.lost:
        page.text(f"In no document: {count(found.lost, 'retrieved context')}. Add the documents that they come from.")
    return page
