"""The table of slices for terminals, notebooks and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.rendering.page import GAP, Page, Span, Tone, cells_of, columns, cut_id
from merilo.rendering.wording import NONE, count, number, span
from merilo.results.faults import CANNOT_TELL, FAULTS, PLACES
from merilo.results.slices import MIN_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.results.slices import Slice, Slices

_WIDTH: Final = 100
_WIDEST: Final = 24
_MOST_FAULTS: Final = 4


def slices_text(found: Slices) -> str:
    """Return the table, at most 100 columns wide."""
    page = Page(_WIDTH)
    add_slices(page, found)
    return str(page)


def add_slices(page: Page, found: Slices) -> None:
    """Add the table; metrics that do not fit the width are left out."""
    rows = slice_rows(found)
    rows = [[cut_id(row[0], _WIDEST), *row[1:]] for row in rows]
    shown = len(rows[0])
    while shown > 2 and cells_of(columns([row[:shown] for row in rows], left=frozenset({0}))[0]) > page.width:
        shown -= 1
    for place, line in enumerate(columns([row[:shown] for row in rows], left=frozenset({0}))):
        page.line(Span(line, Tone.PLAIN if place else Tone.STRONG))
    for note in slice_notes(found):
        page.text(note, tone=Tone.QUIET)
    if shown < len(rows[0]):
        page.text(f"{' ' * GAP}Some metrics do not fit: use a wider terminal.", tone=Tone.QUIET)


def slice_rows(found: Slices) -> list[list[str]]:
    """Return the head and one row for each slice: value, samples, the most frequent faults, means."""
    faults, metrics = shown_faults(found), shown_metrics(found)
    head = [found.field, "n", *(FAULTS[PLACES[key]].name for key in faults), *metrics]
    return [head, *([each.value, f"{len(each):,}", *_cells(each, faults, metrics)] for each in found.values())]


def shown_metrics(found: Slices) -> list[str]:
    """Return the metrics, those first in which a slice differs from the rest, since a narrow page cuts the last."""
    starred = {metric for each in found.values() for metric in each.differs}
    return sorted(next(iter(found.values())).means, key=lambda metric: metric not in starred)


def shown_faults(found: Slices) -> list[str]:
    """Return the faults with a column: the most frequent of the run, without "cannot tell"."""
    totals: dict[str, int] = {}
    for each in found.values():
        for key, amount in each.faults.counts.items():
            totals[key] = totals.get(key, 0) + amount
    told = [key for key in sorted(totals, key=lambda key: -totals[key]) if key != CANNOT_TELL]
    return sorted(told[:_MOST_FAULTS], key=lambda key: -PLACES[key])


def _cells(each: Slice, faults: Sequence[str], metrics: Sequence[str]) -> list[str]:
    return [*(f"{each.faults[key]:,}" for key in faults), *(mean_cell(each, metric) for metric in metrics)]


def mean_cell(each: Slice, metric: str) -> str:
    """Return a mean with its interval, and a star if it differs from the rest."""
    mean = each.means[metric]
    interval = f" ({span(mean.interval.ends)})" if mean.interval.ends is not None else ""
    return f"{number(mean.value)}{interval}{' *' * (metric in each.differs)}" if mean.value is not None else NONE


def slice_notes(found: Slices) -> list[str]:
    """Return what stars and missing intervals mean, and which means labels correct."""
    notes: list[str] = []
    if any(each.differs for each in found.values()):
        notes.append(f"* differs from all other samples (95 %, corrected for {len(found)} values).")
    if any(mean.units < MIN_SAMPLES for each in found.values() for mean in each.means.values()):
        notes.append(f"Fewer than {MIN_SAMPLES} scored samples: no interval.")
    corrected = {value: max(each.labelled.values()) for value, each in found.items() if each.labelled}
    if corrected:
        named = ", ".join(f"{value} ({count(amount, 'label')})" for value, amount in corrected.items())
        notes.append(f"Corrected by human labels: {named}.")
    return notes
