"""The fault table of a run with the metric `answering`: each category with its share and the probable culprit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.commands.report.faults import CANNOT_TELL, CATEGORIES, FAULTS
from merilo.metrics.answering import RESPONSES, Answering
from merilo.rendering.markup import Markup, el
from merilo.rendering.wording import number, span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.commands.report.result import RunReport
    from merilo.runs.manifest import Share


def joint_table(found: RunReport) -> Markup:
    """Return the table; a click on a count filters the samples. "Cannot tell" is left out if no sample is in it."""
    shown = {category: at for category, at in CATEGORIES.items() if category != CANNOT_TELL or found.counts[at]}
    shares = dict(_shares(found))
    rows = [_row(at, found.counts[at], shares.get(f"{category}/{RESPONSES}")) for category, at in shown.items()]
    return el("table", el("tbody", rows), cls="faults joint")


def _shares(found: RunReport) -> Iterator[tuple[str, Share]]:
    for text, aggregate in found.run.metrics.items():
        if text.partition("(")[0] == Answering.name:
            yield from aggregate.shares.items()


def _row(at: int, amount: int, share: Share | None) -> Markup:
    fault, words = FAULTS[at], ""
    if share is not None:
        words = f"{number(share.value)} ({share.note if share.interval is None else span(share.interval)})"
    label = [el("b", f"{amount:,}"), el("span", f"{fault.glyph} {fault.name}")]
    cell = el("a", label, cls=f"cell {fault.tone}{' zero' * (not amount)}", href="#samples", data_fault=at)
    return el("tr", el("td", cell), el("td", fault.cause, " ", el("span", words, cls="soft")))
