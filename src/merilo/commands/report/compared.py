"""Reads the samples that compared runs share, and the means of each run over its first contexts."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.faults import faults_of
from merilo.commands.report.details import Passages
from merilo.commands.report.result import FAILED, MOST, WORST
from merilo.commands.report.run import entries_of, rows_of
from merilo.metrics.base import Score
from merilo.results.contents import has_order
from merilo.results.first_contexts import scores_at_depths
from merilo.runs.scales import recorded_scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.commands.compare.result import RunComparison
    from merilo.commands.report.result import Entry, Row, Value
    from merilo.metrics.base import Undefined
    from merilo.runs.run import Run
    from merilo.runs.scales import Scale

    Outcomes = Mapping[str, Mapping[str, Sequence[Score | Undefined]]]

DEPTHS: Final = (1, 2, 3, 4, 5, 10, 20)
"""Numbers of first contexts that the runs are cut to."""
_CUT: Final = 1_000
"""Number of samples that are cut; of more samples, evenly spaced ones are taken."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The means of one metric over the first contexts of each run."""

    metric: str
    depths: tuple[int, ...]
    means: tuple[tuple[float, ...], ...]
    """By run, one mean for each depth."""
    samples: int
    """Number of samples scored in all runs at every depth."""


@dataclass(frozen=True)
class ComparedSamples:
    """The samples that all runs have, those that changed most first, and their contexts."""

    metrics: tuple[str, ...]
    scales: tuple[Scale, ...]
    """One per metric."""
    entries: tuple[tuple[Entry, ...], ...]
    """By run, the samples in one order."""
    passages: tuple[tuple[str, Sequence[str]], ...]
    curves: tuple[Curve, ...]
    """Empty if all runs retrieved the same numbers of contexts."""


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
    return ComparedSamples(metrics, scales, entries, passages.listed(), _curves(found, metrics))


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


def _curves(found: RunComparison, metrics: Sequence[str]) -> tuple[Curve, ...]:
    """Return the curve of each metric that judges each context alone, if the numbers of contexts differ."""
    if not found.contexts:
        return ()
    longest = max(max(each.first, each.second) for each in found.contexts)
    depths = tuple(each for each in DEPTHS if each <= max(longest + 0.5, 2))
    ids = found.ids[:: -(-len(found.ids) // _CUT)]
    cut = [scores_at_depths(side.run, metrics, dict.fromkeys(ids, depths)) for side in found.sides]
    return tuple(_curve_of(cut, metrics, depths))


def _curve_of(cut: Sequence[Outcomes], metrics: Sequence[str], depths: tuple[int, ...]) -> Iterator[Curve]:
    for metric in metrics:
        if any(metric not in own for own in cut):
            continue
        scored = [_scored(own[metric]) for own in cut]
        common = [sample for sample in scored[0] if all(sample in each for each in scored[1:])]
        if common:
            means = tuple(
                tuple(sum(own[sample][at] for sample in common) / len(common) for at in range(len(depths)))
                for own in scored
            )
            yield Curve(metric, depths, means, len(common))


def _scored(own: Mapping[str, Sequence[Score | Undefined]]) -> dict[str, list[float]]:
    """Return the samples that have a score at every depth."""
    found: dict[str, list[float]] = {}
    for sample, outcomes in own.items():
        values = [each.value for each in outcomes if isinstance(each, Score)]
        if len(values) == len(outcomes):
            found[sample] = values
    return found
