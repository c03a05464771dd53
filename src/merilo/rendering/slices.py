"""The slices of a run by one field: as a table, with its notes, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from merilo.numbers import measured
from merilo.rendering.markup import printed_html
from merilo.rendering.page import Page, Tone, cells_of, columns, cut_id
from merilo.results.faults import CANNOT_TELL, FAULTS, PLACES
from merilo.results.records import picked
from merilo.results.slices import Slice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.results.estimate import Estimate
    from merilo.runs.run import Run

_WIDTH: Final = 100
_WIDEST: Final = 24
_MOST_FAULTS: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Slices(Mapping[str, Slice]):
    """The slices of a run by one field, the largest first."""

    run: Run = field(repr=False)
    field: str
    slices: Mapping[str, Slice]

    def __getitem__(self, value: str) -> Slice:
        return self.slices[value]

    def __iter__(self) -> Iterator[str]:
        return iter(self.slices)

    def __len__(self) -> int:
        return len(self.slices)

    def __str__(self) -> str:
        page = Page(_WIDTH)
        add_slices(page, self)
        return str(page)

    def _repr_html_(self) -> str:
        """Return the printed text for notebooks."""
        return printed_html(self)

    def record(self) -> dict[str, Any]:  # Any: JSON
        """Return the slices as a JSON-able object."""
        return {
            value: {
                "samples": len(each),
                "faults": each.faults.counts,
                "metrics": {metric: _record(mean) for metric, mean in each.means.items()},
            }
            for value, each in self.slices.items()
        }


def _record(mean: Estimate) -> dict[str, Any]:  # Any: JSON
    labelled = mean.caveat("labelled")
    facts: Mapping[str, Any] = {} if labelled is None else labelled.facts
    return {**picked(mean, "mean=value interval scored=samples"), "differs": starred(mean), "labelled": 0, **facts}


def add_slices(page: Page, found: Slices) -> None:
    """Add the table; metrics that do not fit the width are left out."""
    faults = shown_faults(found)
    differ = {metric for each in found.values() for metric in each.differs}
    metrics = sorted(next(iter(found.values())).means, key=lambda metric: metric not in differ)
    rows = [[found.field, "n", *(FAULTS[PLACES[key]].name for key in faults), *metrics]]
    for each in found.values():
        amounts = (f"{each.faults[key]:,}" for key in faults)
        means = (mean_cell(each, metric) for metric in metrics)
        rows.append([cut_id(each.value, _WIDEST), f"{len(each):,}", *amounts, *means])
    shown = len(rows[0])
    while shown > 2 and cells_of(columns([row[:shown] for row in rows], left=frozenset({0}))[0]) > page.width:
        shown -= 1
    page.table([row[:shown] for row in rows], [Tone.STRONG, *[Tone.PLAIN] * len(found)])
    for note in (*slice_notes(found), *["Some metrics do not fit: use a wider terminal."] * (shown < len(rows[0]))):
        page.text(note, tone=Tone.QUIET)


def shown_faults(found: Slices, most: int = _MOST_FAULTS) -> list[str]:
    """Return the faults with a column: the `most` most frequent ones of the run, without "cannot tell"."""
    totals: Counter[str] = Counter()
    for each in found.values():
        totals.update(each.faults.counts)
    known = [key for key, _ in totals.most_common() if key != CANNOT_TELL]
    return sorted(known[:most], key=lambda key: -PLACES[key])


def starred(mean: Estimate) -> bool:
    """Return True if a mean differs from that of all other samples."""
    return mean.caveat("differs") is not None


def mean_cell(each: Slice, metric: str) -> str:
    """Return a mean with its interval, and a star if it differs from the rest."""
    mean = each.means[metric]
    return f"{measured(mean.value, mean.interval)}{' *' * starred(mean)}"


def slice_notes(found: Slices) -> list[str]:
    """Return what stars and missing intervals mean, and which means labels correct."""
    caveats = [(each.value, own) for each in found.values() for mean in each.means.values() for own in mean.caveats]
    said = dict.fromkeys(own.full for _, own in caveats if own.code != "labelled")
    if labelled := {value: own.sentence for value, own in caveats if own.code == "labelled"}:
        named = ", ".join(f"{value} ({labels})" for value, labels in labelled.items())
        said[f"Corrected by human labels: {named}."] = None
    return [*said]
