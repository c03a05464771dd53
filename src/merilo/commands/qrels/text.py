"""The summary of pooled labels: as one JSON object, and as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.rendering.page import Page
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from merilo.commands.qrels.run import PooledQrels


def qrels_record(found: PooledQrels) -> dict[str, Any]:  # Any: JSON
    """Return what was written as a JSON-able object."""
    return {
        "file": str(found.path),
        "trec": None if found.trec is None else str(found.trec),
        "spans": found.spans,
        "samples": found.samples,
        "documents": found.documents,
        "by": dict(found.by),
        "missing": found.missing,
        "contexts_in_no_document": found.lost,
    }


def qrels_page(found: PooledQrels, width: int) -> Page:
    """Return what was written, by whom it was judged, and what is not judged."""
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
    if found.trec is not None:
        page.line(f"TREC qrels, saved in {found.trec}")
    if found.lost:
        page.text(f"In no document: {count(found.lost, 'retrieved context')}. Add the documents that they come from.")
    return page
