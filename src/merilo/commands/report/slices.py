"""The slices of a report: a table for each field, of which the page shows one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.calibrate.slices import slices_by
from merilo.commands.report.page import breakable, heading, table, text
from merilo.rendering.markup import Markup, el
from merilo.rendering.slices import mean_cell, shown_faults, slice_notes
from merilo.results.faults import FAULTS, PLACES, judged_metrics
from merilo.results.slices import values_by_field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.report.result import Entry
    from merilo.results.slices import Slice, Slices
    from merilo.runs.run import Run

_FIELDS: Final = 6
"""The number of fields that a report shows."""
_FAULTS, _COLUMNS = 3, 4
"""The number of faults with a column, and of columns for faults and means together."""


def report_slices(run: Run, by: str | None = None, *, judge_only: bool = False) -> tuple[Slices, ...]:
    """Return the slices of a run by each field that has 2 to 30 values. `by`: the field to show first.

    Raises UsageError if `by` cannot be used.
    """
    first = () if by is None else (by,)
    fields = list(dict.fromkeys((*first, *values_by_field(run))))[:_FIELDS]
    return slices_by(run, fields, judge_only=judge_only) if fields else ()


def slice_section(slices: Sequence[Slices], *, corrected: bool) -> Markup | None:
    """Return the tables of slices, of which the first one is in sight; None if the run has no slices.

    `corrected`: human labels correct other numbers of the page.
    """
    if not slices:
        return None
    note = "each value filters the samples"
    shown = [
        el("div", _table(each, at, corrected=corrected), data_by=at, hidden=at > 0) for at, each in enumerate(slices)
    ]
    return el("section", heading(f"By {slices[0].field}", note, anchor="by"), shown, cls="by", aria_labelledby="by")


def slice_columns(slices: Sequence[Slices], entries: Sequence[Entry]) -> list[Mapping[str, Any]]:  # Any: JSON
    """Return what the page knows of each field: its name, its values, and which of them each sample has."""
    found: list[Mapping[str, Any]] = []  # Any: JSON
    for each in slices:
        places = {sample: at for at, own in enumerate(each.values()) for sample in own.samples}
        found.append({"field": each.field, "values": [*each], "of": [places[entry.row.id] for entry in entries]})
    return found


def _table(found: Slices, at: int, *, corrected: bool) -> Markup:
    first, *others = shown_faults(found) or [""]
    faults = [each for each in (first, *others[1 - _FAULTS :]) if each]  # right answers are first, then the worst
    metrics = _metrics(found)[: _COLUMNS - len(faults)]
    head = [found.field, "n", *(FAULTS[PLACES[key]].name for key in faults)]
    rows = [_row(each, f"{at}/{place}", faults, metrics) for place, each in enumerate(found.values())]
    names = [el("th", breakable(each), scope="col") for each in metrics]
    whole = table([*head, *names], rows, cls="slices")
    notes = [*slice_notes(found), *(["Other numbers of this table are by the judge alone."] if corrected else [])]
    label = f"Slices by {found.field}"
    return el(
        "div",
        el("div", whole, cls="scroll", tabindex=0, role="group", aria_label=label),
        el("p", " ".join(notes), cls="small soft"),
    )


def _metrics(found: Slices) -> list[str]:
    """Return the metrics: first those in which a slice differs from the rest, then those of the fault table."""
    means = next(iter(found.values())).means
    starred = {metric for each in found.values() for metric in each.differs}
    return sorted(means, key=lambda metric: (metric not in starred, not judged_metrics([metric])))


def _row(each: Slice, key: str, faults: Sequence[str], metrics: Sequence[str]) -> Markup:
    named = el("a", text(each.value), href="#samples", data_slice=key)
    amounts = [each.faults[fault] for fault in faults]
    return el(
        "tr",
        el("th", named, scope="row"),
        el("td", f"{len(each):,}", cls="num"),
        [el("td", f"{amount:,}", cls=f"num{' soft' * (not amount)}") for amount in amounts],
        [el("td", mean_cell(each, metric), cls="num") for metric in metrics],
    )
