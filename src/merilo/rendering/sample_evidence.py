"""The evidence for one metric's score of one sample, as lines on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.rendering.evidence_summary import evidence_groups
from merilo.rendering.page import cut

if TYPE_CHECKING:
    from merilo.rendering.page import Page
    from merilo.results.sample_detail import SampleDetail

_QUOTED: Final = 200
_SHOWN_PIECES: Final = 6


def add_evidence(page: Page, case: SampleDetail, metric: str, *, indent: int = 4) -> None:
    """Add the verdicts behind the value, each with the sentences that it names; at most six."""
    pieces = evidence_groups(case, metric)
    for piece in pieces[:_SHOWN_PIECES]:
        about = f"{piece.about}: " if piece.about else ""
        page.text(f"{about}{piece.said}", indent=indent)
        for quote in (*((piece.text,) if piece.text else ()), *piece.quotes):
            page.entry(">", cut(quote, _QUOTED), column=indent + 5, indent=indent + 2)
    if len(pieces) > _SHOWN_PIECES:
        page.text(f"... and {len(pieces) - _SHOWN_PIECES:,} more", indent=indent)
