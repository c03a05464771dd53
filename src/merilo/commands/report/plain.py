"""Samples as a plain table for paper and for readers without scripts: of a run, and of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.commands.report.page import chip, heading, table, text
from merilo.rendering.markup import Markup, el
from merilo.rendering.sanitize import visible
from merilo.rendering.wording import count, number
from merilo.results.faults import FAULTS, has_faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.compare.result import RunComparison
    from merilo.commands.report.compared import ComparedSamples
    from merilo.commands.report.result import Entry, RunReport, Value

_IN_FULL: Final = 100
"""Number of samples whose responses are in the table."""


def plain_copy(found: RunReport) -> Markup:
    """Return the table of all samples that are shown, with their faults and scores."""
    shown = f"{count(len(found.entries), 'sample')}, the worst first"
    if len(found.entries) < found.samples:
        shown = f"the worst {len(found.entries):,} of {count(found.samples, 'sample')}"
    metrics = tuple(found.run.manifest.metrics)
    faults = has_faults(metrics)
    rows = [
        _row(
            each,
            [el("td", _fault(each))] * faults,
            [el("td", _value(one), cls="num") for one in each.row.values],
            response=at < _IN_FULL,
        )
        for at, each in enumerate(found.entries)
    ]
    return _plain(shown, (*["Fault"] * faults, "Sample", *metrics), rows)


def plain_pairs(found: RunComparison, shown: ComparedSamples) -> Markup:
    """Return the table of the first samples, with the fault, score and response of each run."""
    by = shown.metrics.index(found.moved_by) if found.moved_by in shown.metrics else 0
    faults = has_faults(shown.metrics)

    def cell(each: Entry) -> Markup:
        return el("td", el("b", _value(each.row.values[by])), " ", _fault(each) if faults else None, _response(each))

    rows = [
        _row(first, [], [cell(first), *map(cell, others)], response=False)
        for first, *others in list(zip(*shown.entries, strict=True))[:_IN_FULL]
    ]
    note = f"the first {len(rows):,} of {found.common:,}, those that changed most by {shown.metrics[by]}"
    return _plain(note, ("Sample", *found.names), rows)


def _plain(note: str, head: Sequence[str], rows: Sequence[Markup]) -> Markup:
    scores = table(head, rows, cls="plaintable")
    return el(
        "section",
        heading("Samples", note),
        el("p", "Contexts and verdicts of a sample: merilo show RUN --sample ID --full"),
        el("div", scores, cls="scroll", tabindex=0, role="group", aria_label="Scores of all samples"),
        cls="wrap plain",
        id="plain",
        aria_label="All samples",
    )


def _row(entry: Entry, before: Sequence[Markup], after: Sequence[Markup], *, response: bool) -> Markup:
    named = el(
        "td",
        el("b", text(entry.question)),
        " ",
        text(entry.row.id, cls="soft small"),
        _response(entry) if response else None,
    )
    return el("tr", before, named, after, id=f"sample={visible(entry.row.id)}")


def _fault(entry: Entry) -> Markup:
    fault = FAULTS[entry.row.fault]
    return chip(fault.tone, fault.glyph, fault.name)


def _response(entry: Entry) -> Markup | None:
    return None if entry.detail["r"] is None else text(entry.detail["r"], tag="p")


def _value(value: Value) -> str:
    """Return the value of a cell: a number, or why there is none."""
    return "undefined" if value is None else "failed" if value is False else number(value)
