"""Reads the samples that compared runs share."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING

from merilo.commands.calibrate.faults import faults_of
from merilo.commands.report.details import Passages
from merilo.commands.report.result import FAILED, MOST, WORST
from merilo.commands.report.run import entries_of, rows_of
from merilo.results.contents import has_order
from merilo.runs.scales import recorded_scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.commands.compare.result import RunComparison
    from merilo.commands.report.result import Entry, Row, Value
    from merilo.runs.run import Run
    from merilo.runs.scales import Scale


@dataclass(frozen=True)
class ComparedSamples:
    """The samples that all runs have, those that changed most first, and their contexts."""

    metrics: tuple[str, ...]
    scales: tuple[Scale, ...]
    """One per metric."""
    entries: tuple[tuple[Entry, ...], ...]
    """By run, the samples in one order."""
    passages: tuple[tuple[str, Sequence[str]], ...]


def compared_samples(found: RunComparison, *, most: int = MOST) -> ComparedSamples:
    """Return the common samples; with more than `most`, the `WORST` that changed most. Raises RunError.

    Of more than two runs, all samples are returned up to a smaller number, so that the file stays as small.
    """
    metrics = tuple(dict.fromkeys(row.metric for row in found.rows))
    scales = tuple(recorded_scale(found.sides[0].run.manifest, metric) for metric in metrics)
    by = metrics.index(found.moved_by) if found.moved_by in metrics else 0

    def change(rows: Sequence[Row]) -> tuple[float, float]:
        changes = _changes(rows, scales)
        return -changes[by], -max(changes)

    fitting = most * 2 // len(found.sides)
    wanted = len(found.ids) if len(found.ids) <= fitting else min(WORST, fitting)
    together = zip(*(_rows_in_order(side.run, metrics, found.ids) for side in found.sides), strict=True)
    shown = heapq.nsmallest(wanted, together, key=change)  # equal changes stay in the order of the data
    passages = Passages()
    entries = tuple(
        entries_of(side.run, [rows[at] for rows in shown], passages, replies=False)
        for at, side in enumerate(found.sides)
    )
    return ComparedSamples(metrics, scales, entries, passages.listed())


def _rows_in_order(run: Run, metrics: Sequence[str], ids: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of these samples, in this order.

    Rows are held in memory only if the run has these samples in another order, which is rare.
    """
    faults = faults_of(run, judge_only=True)
    if has_order((sample for sample, _ in groupby(each["sample"] for each in run.brief_records(metrics[:1]))), ids):
        wanted = iter(ids)
        following = next(wanted, None)
        for row in rows_of(run, metrics, faults):
            if row.id == following:
                yield row
                following = next(wanted, None)
    else:
        known = frozenset(ids)
        found = {row.id: row for row in rows_of(run, metrics, faults) if row.id in known}
        yield from (found[sample] for sample in ids)


def _changes(rows: Sequence[Row], scales: Sequence[Scale]) -> list[float]:
    """Return the largest distance from the first run, by metric, as a part of its range; 0 if it is not known."""
    return [
        max(_distance(rows[0].values[at], other.values[at], scale) for other in rows[1:])
        for at, scale in enumerate(scales)
    ]


def _distance(first: Value, second: Value, scale: Scale) -> float:
    low, high = scale.span
    if first is None or first is FAILED or second is None or second is FAILED:
        return 0.0
    width = high - low
    return abs(first - second) / (width if isfinite(width) and width > 0 else 1.0)
