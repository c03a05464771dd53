"""The aggregates of a finished run, computed again from its scores with other clusters, levels or policies."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING

from merilo.errors import UsageError
from merilo.metrics.base import is_composite
from merilo.metrics.registry import known_definition
from merilo.results.early_stopping import EarlyStop, after_stopping, check_own_clusters, stop_of
from merilo.results.scores import read_scores
from merilo.results.summary import column_shares, combined, composite_seed, with_composite, with_estimate
from merilo.runs.run import ByMetric
from merilo.stats.compare import Policy
from merilo.stats.intervals import LEVEL
from merilo.stats.means import mean_interval
from merilo.stats.sums import coded

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from merilo.results.scores import RunScores
    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run
    from merilo.stats.column import Column
    from merilo.stats.intervals import Interval


class Recomputed:
    """Computes the aggregates of a finished run from the columns of its scores."""

    def __init__(self, scores: RunScores, level: float, undefined: Policy) -> None:
        self._scores = scores
        self._level = level
        self._columns = dict(scores.columns)
        self._filled = undefined is Policy.WORST
        if self._filled:
            self._columns = {text: _worst(text, column) for text, column in self._columns.items()}

    def metric(self, stored: Aggregate) -> Aggregate:
        """Return one metric's aggregate; reasons, flags and counts are those stored with the run."""
        column, counts = self._columns[stored.metric], self._scores.counts[stored.metric]
        clusters = _at(self._scores.clusters, column.scored)
        estimate = mean_interval(column.values[column.scored], column.span, clusters=clusters, level=self._level)
        if self._filled:
            estimate = replace(estimate, interval=_with_remark(estimate.interval, stored.undefined, column))
            stored = replace(stored, undefined=0)
        else:
            estimate = replace(estimate, value=stored.mean)
        shares = column_shares(counts, self._scores.clusters, self._level)
        return with_estimate(stored, estimate, column.span, shares=shares, level=self._level)

    def after_stopping(self, aggregate: Aggregate, stop: EarlyStop) -> Aggregate:
        """Return the aggregate of a run with early stopping. Raises UsageError for other clusters than its own."""
        check_own_clusters(self._scores, stop)
        column = None if aggregate.parts else self._columns[aggregate.metric]
        return after_stopping(aggregate, column, stop, self._scores.clusters)

    def composite(self, stored: Aggregate) -> Aggregate:
        """Return one composite's aggregate."""
        columns = [self._columns[part] for part in stored.parts]
        if not all(column.scored.all() for column in columns):
            return stored
        clusters = self._scores.clusters
        return with_composite(
            stored,
            [column.values.tolist() for column in columns],
            _combined(stored.metric),
            seed=composite_seed(self._scores.run.manifest.fingerprint, stored.metric),
            clusters=None if clusters is None else coded(clusters).tolist(),
            level=self._level,
        )


def _with_remark(interval: Interval, filled: int, column: Column) -> Interval:
    """Return the interval with a remark on the undefined samples that count as the worst score."""
    if not filled:
        return interval
    remark = f"{filled:,} undefined counted as the worst score, {column.worst:g}"
    return replace(interval, remark="; ".join(filter(None, (interval.remark, remark))))


def _worst(text: str, column: Column) -> Column:
    """Return the column with undefined samples at the worst end of the range. Raises UsageError if that is infinite."""
    if not column.undefined.any():
        return column
    if not isfinite(column.worst):
        raise UsageError(
            f"{text} has no worst value, since its range is {column.span[0]:g} to {column.span[1]:g}. Use --undefined "
            "drop."
        )
    return column.filled(column.worst, column.undefined)


def _at(clusters: Sequence[Hashable] | None, places: NDArray[np.bool_]) -> list[Hashable] | None:
    return None if clusters is None else [each for each, here in zip(clusters, places.tolist(), strict=True) if here]


def _combined(text: str) -> Callable[[Sequence[float]], float | None]:
    """Return the function that combines the means of a composite's parts. Raises UsageError if it is unknown."""
    composite = known_definition(text)
    if composite is None or not is_composite(composite):
        raise UsageError(f"{text} is not a composite in this version; use the version of merilo that made the run.")
    return partial(combined, composite)


def summarise(
    run: Run | str | Path, *, cluster: str | None = None, level: float = LEVEL, undefined: Policy | str = Policy.DROP
) -> ByMetric[Aggregate]:
    """Return the aggregates of a run computed from its outcomes; by default equal to `Run.metrics`, up to rounding.

    `cluster`: as in `read_scores`. `undefined`: leave undefined samples out, or count them as the worst value.
    Raises UsageError for a level outside (0, 1), and for "worst" if a metric's range has no worst value.
    """
    if not 0 < level < 1:
        raise UsageError(f"The confidence level must be between 0 and 1, got {level}; write 0.95 for 95 %.")
    if undefined not in set(Policy):
        raise UsageError(f"undefined must be drop (left out) or worst (counted as worst), got {undefined!r}.")
    scores = read_scores(run, cluster=cluster, with_counts=True)
    recomputed = Recomputed(scores, level, Policy(undefined))
    found = {
        text: recomputed.composite(stored) if stored.parts else recomputed.metric(stored)
        for text, stored in scores.run.metrics.items()
    }
    if (stop := stop_of(scores.run.manifest)) is not None:
        found = {text: recomputed.after_stopping(each, stop) for text, each in found.items()}
    return ByMetric(found)
