"""The first samples of a comparison as plain HTML with both runs side by side, for readers without scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.report.faults import FAULTS
from merilo.commands.report.page import chip, heading, text
from merilo.commands.report.plain import context_of, remark, statements_of, value_text
from merilo.rendering.markup import Markup, el
from merilo.rendering.sanitize import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.compare.result import RunComparison
    from merilo.commands.report.compared import ComparedSamples
    from merilo.commands.report.result import Entry

_IN_FULL: Final = 100
"""Number of samples in the plain copy."""


def plain_pairs(found: RunComparison, shown: ComparedSamples) -> Markup:
    """Return the first samples, each as a line that opens to all runs side by side."""
    pairs = list(zip(*shown.entries, strict=True))[:_IN_FULL]
    title = heading("Samples", f"the first {len(pairs):,} of {found.common:,}, those that changed most first")
    return el(
        "section",
        title,
        [_sample(found, shown, each) for each in pairs],
        cls="wrap plain",
        id="plain",
        aria_label="All samples",
    )


def _sample(found: RunComparison, shown: ComparedSamples, entries: Sequence[Entry]) -> Markup:
    first, reference = entries[0], entries[0].detail["ref"]
    by = shown.metrics.index(found.moved_by) if found.moved_by in shown.metrics else 0
    values = " and ".join(value_text(each.row.values[by]) for each in entries)
    summary = el("summary", text(first.question or first.row.id), el("span", values, cls="soft"))
    panes = [
        _pane(shown, name, each, [other for other in entries if other is not each])
        for name, each in zip(found.names, entries, strict=True)
    ]
    body = el(
        "div",
        text(first.row.id, tag="p", cls="soft small"),
        el("p", el("b", "Reference: "), text(reference)) if reference is not None else None,
        el("div", panes, cls="two"),
    )
    return el("details", summary, body, cls="move", id=f"sample={visible(first.row.id)}")


def _pane(shown: ComparedSamples, name: str, entry: Entry, others: Sequence[Entry]) -> Markup:
    fault, detail = FAULTS[entry.row.fault], entry.detail
    scores = [
        el("div", el("dt", metric), el("dd", value_text(value)))
        for metric, value in zip(shown.metrics, entry.row.values, strict=True)
    ]
    return el(
        "div",
        el("h3", text(name)),
        el("p", chip(fault.tone, fault.glyph, fault.name)),
        text(detail["r"], tag="p") if detail["r"] is not None else None,
        [statements_of(each) for each in detail["st"]],
        [remark(each) for each in detail["whole"]],
        el("ol", [context_of(shown.passages, each, _rank(at, each, others)) for at, each in enumerate(detail["cx"])]),
        el("dl", scores, cls="scores"),
        cls="pane",
    )


def _rank(at: int, context: Mapping[str, Any], others: Sequence[Entry]) -> Markup | None:  # Any: JSON
    """Return where the other run has this context; None with more than two runs."""
    if len(others) != 1:
        return None
    places = [place for place, each in enumerate(others[0].detail["cx"]) if each["p"] == context["p"]]
    if not places:
        return el("span", "only here", cls="chip warn")
    return el("span", "same rank" if places[0] == at else f"there: {places[0] + 1}", cls="chip")
