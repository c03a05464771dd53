"""The aggregates of a finished run with other clusters, another level or another treatment of undefined samples."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import fsum, isfinite
from typing import TYPE_CHECKING, TypedDict

from merilo.errors import UsageError
from merilo.metrics.base import is_composite
from merilo.metrics.registry import parse_metric
from merilo.results.early_stopping import after_stopping
from merilo.results.scores import read_scores
from merilo.results.shares import ends, share, shares_in
from merilo.results.summary import combined, composite_seed
from merilo.runs.run import ByMetric
from merilo.stats.bootstrap import percentile_interval
from merilo.stats.column import bounds
from merilo.stats.compare import Policy
from merilo.stats.intervals import LEVEL
from merilo.stats.means import mean_interval, ratio_interval
from merilo.stats.sums import coded

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from merilo.results.scores import RunScores
    from merilo.runs.manifest import Aggregate, Share
    from merilo.runs.run import Run
    from merilo.stats.column import Column
    from merilo.stats.intervals import Interval


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
    summary = _Summary(scores, level, Policy(undefined))
    found = {
        text: summary.composite(stored) if stored.parts else summary.metric(stored)
        for text, stored in scores.run.metrics.items()
    }
    if scores.run.manifest.until is not None:
        found = {text: summary.after_stopping(each) for text, each in found.items()}
    return ByMetric(found)


class _Summary:
    """Computes the aggregates of one run."""

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
        found, interval = int(column.scored.sum()), estimate.interval
        missing = {"failed": stored.failed, "undefined": 0 if self._filled else stored.undefined}
        mean = estimate.value if self._filled else stored.mean
        limits = bounds(mean, column.span, scored=found, **missing)
        remarks = [interval.remark]
        if self._filled and stored.undefined:
            remarks.append(f"{stored.undefined:,} undefined counted as the worst score, {column.worst:g}")
        return replace(
            stored,
            mean=mean,
            scored=found,
            undefined=missing["undefined"],
            level=self._level,
            bounds=limits.failed,
            bounds_with_undefined=limits.undefined,
            clusters=estimate.clusters,
            shares=self._shares(counts),
            **_fields(replace(interval, remark="; ".join(filter(None, remarks)))),
        )

    def after_stopping(self, aggregate: Aggregate) -> Aggregate:
        """Return the aggregate of a run with early stopping. Raises UsageError for clusters, which it cannot have."""
        if self._scores.clusters is not None:
            raise UsageError(
                f"{self._scores.run.path} could stop early, and early stopping does not support clusters. Leave "
                "--cluster out."
            )
        if aggregate.parts:
            return after_stopping(aggregate)
        column = self._columns[aggregate.metric]
        return after_stopping(aggregate, column.values[column.scored], column.span)

    def composite(self, stored: Aggregate) -> Aggregate:
        """Return one composite's aggregate."""
        columns = [self._columns[part] for part in stored.parts]
        if not all(column.scored.all() for column in columns):
            return stored
        combine = _combined(stored.metric)
        values = [column.values.tolist() for column in columns]
        mean = combine([fsum(each) / len(each) for each in values]) if self._filled else stored.mean
        if mean is None:
            return stored
        clusters = self._scores.clusters
        codes = None if clusters is None else coded(clusters).tolist()
        seed = composite_seed(self._scores.run.manifest.fingerprint, stored.metric)
        interval = percentile_interval(values, combine, seed=seed, clusters=codes, level=self._level)
        return replace(
            stored,
            mean=mean,
            scored=len(self._scores.ids),
            undefined=0,
            level=self._level,
            bounds=(mean, mean),
            bounds_with_undefined=(mean, mean),
            clusters=None if clusters is None else len(set(clusters)),
            **_fields(interval),
        )

    def _shares(self, counts: Mapping[str, NDArray[np.float64]]) -> dict[str, Share]:
        found: dict[str, Share] = {}
        for part, whole in shares_in(counts):
            tops, bottoms = counts[part], counts[whole]
            if (tops <= bottoms).all() and (tops >= 0).all() and bottoms.any():
                clusters = self._scores.clusters
                estimate = ratio_interval(tops, bottoms, (0.0, 1.0), clusters=clusters, level=self._level)
                if estimate.value is not None:
                    found[f"{part}/{whole}"] = share(estimate.value, estimate.interval)
        return found


class _IntervalFields(TypedDict):
    """The fields of an interval in an aggregate."""

    interval: tuple[float, float] | None
    note: str
    remark: str
    method: str | None
    seed: int | None


def _fields(interval: Interval) -> _IntervalFields:
    return {
        "interval": ends(interval),
        "note": interval.note,
        "remark": interval.remark,
        "method": interval.method,
        "seed": interval.seed,
    }


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
    composite = parse_metric(text)
    if not is_composite(composite):
        raise UsageError(f"{text} is not a composite in this version; use the version of merilo that made the run.")
    return partial(combined, composite)
