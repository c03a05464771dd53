"""A measure of items with its interval, by clusters of items.

Items that share a document or a question are not independent, so whole clusters are resampled or left out. Fewer than
MANY clusters: a bootstrap. Intervals are BCa: bias-corrected and accelerated, the acceleration from leaving out one
cluster at a time (Efron, "Better bootstrap confidence intervals", JASA 82 (1987), sections 2-6; clusters as units:
Field & Welsh, JRSS B 69 (2007), section 3). For few clusters Student's t replaces the normal quantile (Hesterberg,
"What teachers should know about the bootstrap", The American Statistician 69 (2015), section 3.3). From MANY clusters
on: the jackknife, which samples nothing at random and is linear in the number of clusters (Efron & Tibshirani, "An
Introduction to the Bootstrap" (1993), 11.5). Measured coverage: design/statistics.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, isnan, log, sqrt
from typing import TYPE_CHECKING, Final

from merilo.stats.agreement import ratio
from merilo.stats.distributions import normal_cdfs, normal_quantile
from merilo.stats.intervals import (
    LEVEL,
    SEED,
    Interval,
    Method,
    few_clusters,
    t_quantile,
    too_few_clusters,
    wilson_ends,
)
from merilo.stats.sums import Sums, coded, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from merilo.stats.agreement import Floats, Places

    Statistic = Callable[[Floats], Floats]
    """Sums over clusters, shape (resamples, columns), to one number for each resample; NaN if it is undefined."""

    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 2_000
MIN_CLUSTERS: Final = 6
FEW_CLUSTERS: Final = 20
MIN_OFF: Final = 10
"""Minimum clusters off the more common side of a rate for a bootstrap; with fewer its interval is too narrow."""
MIN_UNITS_FOR_T: Final = 1_000
"""Number of clusters from which the jackknife replaces the bootstrap."""
_MAX_UNDEFINED: Final = 0.05
_NO_WIDTH: Final = 1e-12
_AMOUNTS: Final = ((1, 100), (200, RESAMPLES))
"""The least and the most resamples of medians, at once and in all."""
_BLOCK: Final = 4_000_000
"""Numbers in memory at once while resampling; it never changes a result."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measure with its interval."""

    value: float | None
    interval: Interval


@dataclass(frozen=True, slots=True)
class Resampling:
    """The parameters of intervals; part of every result."""

    seed: int = SEED
    """From 0 to 2^64 - 1."""
    resamples: int = RESAMPLES
    level: float = LEVEL


@dataclass(frozen=True, slots=True)
class Measure:
    """A statistic of items in clusters, in the two forms that intervals need; NaN if it is undefined."""

    at: Callable[[Floats], Floats]
    """One number for each resample, given the weights of the clusters, shape (resamples, clusters)."""
    without: Callable[[], Floats]
    """One number for each cluster: the statistic without that cluster."""


def of_sums(parts: Floats, statistic: Statistic) -> Measure:
    """Return a function of sums over items. `parts`: the sums of each cluster, shape (clusters, columns)."""
    return Measure(lambda weights: statistic(weights @ parts), lambda: statistic(parts.sum(axis=0) - parts))


@dataclass(frozen=True, slots=True)
class Clusters:
    """Items in clusters, with the parameters for resampling them."""

    of_item: Places
    """The number of each item's cluster, in order of first appearance."""
    count: int
    resampling: Resampling

    @classmethod
    def of(cls, clusters: Sequence[Hashable], resampling: Resampling) -> Clusters:
        """Return clusters from one key for each item: items with equal keys share a cluster."""
        of_item = coded(clusters)
        return cls(of_item, int(of_item.max()) + 1 if len(of_item) else 0, resampling)

    def sums(self, rows: Floats) -> Floats:
        """Return the sums of rows of numbers, one row for each item, within each cluster."""
        import numpy as np

        found = np.zeros((self.count, rows.shape[1]))
        np.add.at(found, self.of_item, rows)
        return found

    def crossed(self, labels: Sequence[Hashable], first: Sequence[Hashable], second: Sequence[Hashable]) -> Floats:
        """Return two labels of each item as one square table for each cluster, flattened: first in rows, then
        columns.
        """
        import numpy as np

        size = len(labels)
        place = {label: index for index, label in enumerate(labels)}
        pairs = [size * place[one] + place[other] for one, other in zip(first, second, strict=True)]
        return self.sums(np.eye(size * size)[pairs].reshape(-1, size * size))

    def share(self, hits: Floats, cases: Floats) -> Measurement:
        """Return a fraction of items; with Wilson's interval over clusters if too few are off the more common side."""
        import numpy as np

        total = float(cases.sum())
        if not total:
            return Measurement(None, Interval(None, "cannot tell: there is no such item"))
        share = float(hits.sum()) / total
        off = int(((cases - hits if share >= 0.5 else hits) > 0).sum())
        units = int((cases > 0).sum())
        # Few clusters off the common side: many resamples have none of them, and a bootstrap interval is too narrow.
        if units >= MIN_CLUSTERS and off < MIN_OFF:
            level = self.resampling.level
            ends = wilson_ends(share, units, (0.0, 1.0), level=level)
            return Measurement(share, Interval(ends, remark=_few(units), method=Method.WILSON, level=level))
        both = of_sums(np.stack([hits, cases], axis=1), lambda sums: ratio(sums[:, 0], sums[:, 1]))
        return self.measured(both, "", units=units)

    def tabled(
        self,
        totals: Floats,
        size: int,
        statistic: Callable[[Floats], Floats],
        nothing: str,
        *,
        units: int | None = None,
    ) -> Measurement:
        """Return a function of square tables of this size, from the clusters' tables as rows."""
        return self.measured(
            of_sums(totals, lambda sums: statistic(sums.reshape(-1, size, size))), nothing, units=units
        )

    def measured(
        self,
        measure: Measure,
        nothing: str,
        *,
        units: int | None = None,
    ) -> Measurement:
        """Return a measure with its interval; `nothing`: the reason if it is known beforehand to be undefined.

        `units`: the number of clusters that the statistic depends on, if fewer than all.
        """
        import numpy as np

        if nothing:
            return Measurement(None, Interval(None, nothing))
        value = float(measure.at(np.ones((1, self.count)))[0]) if self.count else float("nan")
        if isnan(value):
            return Measurement(None, Interval(None, "cannot tell: the data gives no value"))
        units = self.count if units is None else units
        if units < MIN_CLUSTERS:
            reason = f"cannot tell from {units} cluster{'s' * (units != 1)}; at least {MIN_CLUSTERS} needed"
            return Measurement(value, Interval(None, reason))
        if self.count >= MIN_UNITS_FOR_T:
            return Measurement(value, self._jackknifed(value, measure.without(), units))
        found = np.concatenate([measure.at(weights) for weights in self._draws()])
        defined = np.sort(found[~np.isnan(found)])
        # Leaving out many undefined resamples would bias the interval towards data that define the measure.
        if len(defined) < (1 - _MAX_UNDEFINED) * len(found):
            return Measurement(value, Interval(None, "cannot tell: too many resamples of the data give no value"))
        if defined[-1] - defined[0] < _NO_WIDTH:
            return Measurement(value, Interval(None, "cannot tell: all resamples of the data give one value"))
        level = self.resampling.level
        # Student's, corrected for the bootstrap's smaller spread
        quantile = t_quantile(units - 1, level) * sqrt(units / (units - 1))
        ends = _ends(value, defined, measure.without(), quantile)
        interval = Interval(ends, remark=_few(units), method=Method.BCA, level=level, seed=self.resampling.seed)
        return Measurement(value, interval)

    def _jackknifed(self, value: float, left_out: Floats, units: int) -> Interval:
        """Return Student's interval from the spread of the measure without one cluster at a time."""
        import numpy as np

        level = self.resampling.level
        off = left_out[~np.isnan(left_out)]
        error = sqrt((self.count - 1) / self.count * float(((off - off.mean()) ** 2).sum()))
        if error < _NO_WIDTH:
            return Interval(None, "cannot tell: the data without any one cluster gives the same value", level=level)
        reach = t_quantile(units - 1, level) * error
        # Symmetric on the scale log(1 - measure), so the upper end stays below 1.
        ends = (1 - exp(log(1 - value) + reach / (1 - value)), 1 - exp(log(1 - value) - reach / (1 - value)))
        return Interval(ends, remark=_few(units), method=Method.JACKKNIFE, level=level)

    def _draws(self) -> Iterator[Floats]:
        """Yield blocks of the number of times that each cluster is in each resample."""
        import numpy as np

        bits = np.random.PCG64(self.resampling.seed)
        left, size = self.resampling.resamples, self.count
        while left:
            # Blocks bound the memory; the stream of random numbers does not depend on their size.
            block = min(left, max(1, _BLOCK // max(len(self.of_item), size)))
            drawn = _places(bits, block * size, size).reshape(block, size)
            flat = (drawn + size * np.arange(block)[:, None]).ravel()
            yield np.bincount(flat, minlength=block * size).reshape(block, size).astype(np.float64)
            left -= block


def _ends(value: float, found: Floats, left_out: Floats, quantile: float) -> tuple[float, float]:
    """Return the ends of a BCa interval.

    `quantile`: their distance in standard deviations; `left_out`: the values without one cluster at a time.
    """
    import numpy as np

    # Resamples equal to the value count half, because discrete measures have many of them.
    below = (np.searchsorted(found, value - _NO_WIDTH) + np.searchsorted(found, value + _NO_WIDTH, "right")) / 2
    bias = normal_quantile(min(max(below, 0.5), len(found) - 0.5) / len(found))
    off = np.nanmean(left_out) - left_out[~np.isnan(left_out)]
    spread = float((off**2).sum())
    skew = float((off**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    shifted = bias + np.asarray([-quantile, quantile])
    tails = normal_cdfs(bias + shifted / (1 - skew * shifted))
    low, high = np.quantile(found, tails)
    return float(low), float(high)


def _few(clusters: int) -> str:
    return f"only {clusters} clusters: rough" if clusters < FEW_CLUSTERS else ""


# Intervals of functions of several means, by resampling.


def percentile_interval(
    columns: Sequence[Sequence[float]],
    combine: Callable[[Sequence[float]], float | None],
    *,
    seed: int,
    clusters: Sequence[int] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the percentile bootstrap interval of a function of the means of several columns, over the samples.

    `columns`: one for each part, each with one finite value for each sample, in the same order. A resample selects
    samples, so the values of one sample stay together. `combine`: the function of the means; None if it is undefined.
    `seed`: from 0 to 2^64 - 1; equal input gives equal ends with every numpy version. `clusters`: the number of each
    sample's cluster, from 0; whole clusters are then resampled. After Efron & Tibshirani, "An Introduction to the
    Bootstrap" (1993), ch. 13.

    There is no interval for fewer than two samples or six clusters, for samples with equal scores, or if a resample
    is undefined or all resamples are equal.
    """
    size = len(columns[0]) if columns else 0
    if size < 2:
        return Interval(None, f"cannot tell from {size} scored sample{'s' * (size != 1)}")
    import numpy as np

    table = np.asarray(columns, dtype=np.float64)
    if not np.ptp(table, axis=1).any():
        return Interval(None, f"cannot tell: all {size} samples have equal scores")
    sizes, remark = np.ones(size), ""
    if clusters is not None:
        codes = np.unique(np.asarray(clusters), return_inverse=True)[1]
        sizes = np.bincount(codes).astype(np.float64)
        if (note := too_few_clusters(len(sizes))) is not None:
            return Interval(None, note, level=level)
        table = np.array([summed(codes, column) for column in table])
        remark = few_clusters(len(sizes), Sums(sizes, sizes).spread.freedom + 1)
    bits = np.random.PCG64(seed)
    found: list[float] = []
    for _ in range(resamples):
        places = _places(bits, len(sizes), len(sizes))
        # A resample is a count per unit, so one product with the table gives all its sums.
        drawn = np.bincount(places, minlength=len(sizes))
        value = combine([float(mean) for mean in table @ drawn / (sizes @ drawn)])
        if value is None:
            return Interval(None, "cannot tell: some resamples of the data give no value")
        found.append(value)
    low, high = np.percentile(found, [50 * (1 - level), 50 * (1 + level)])
    if low == high:
        return Interval(None, "cannot tell: all resamples of the data give one value")
    return Interval((float(low), float(high)), remark=remark, method=Method.PERCENTILE, level=level, seed=seed)


def median_ratio(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    *,
    clusters: Sequence[Hashable] | None = None,
) -> tuple[float, Interval] | None:
    """Return the ratio of the medians of two columns of the same samples, and its percentile bootstrap interval.

    A resample selects samples or their clusters. None without samples, and if a median is not above 0. There is no
    interval for fewer than six samples or clusters.
    """
    import numpy as np

    if not len(first) or np.median(first) <= 0 or np.median(second) <= 0:
        return None
    value = float(np.median(first) / np.median(second))
    codes = np.arange(len(first)) if clusters is None else coded(clusters)
    units = int(codes.max()) + 1
    if note := too_few_clusters(units):
        return value, Interval(None, note, level=LEVEL)
    orders = [(column[order], codes[order]) for column in (first, second) for order in [np.argsort(column)]]
    # Fewer resamples of many samples, whose medians vary less from one to the next.
    rows, resamples = (min(max(_BLOCK // len(first), least), most) for least, most in _AMOUNTS)
    random, starts = np.random.default_rng(SEED), np.arange(rows)[:, None] * units
    found: list[NDArray[np.float64]] = []
    for _ in range(resamples // rows):
        places = random.integers(units, size=(rows, units)) + starts
        drawn = np.bincount(places.ravel(), minlength=rows * units).reshape(rows, units)
        one, two = (
            column[(2 * (passed := drawn[:, own].cumsum(axis=1)) >= passed[:, -1:]).argmax(axis=1)]
            for column, own in orders
        )
        found.append(one / np.where(two > 0, two, 1e-300))
    low, high = np.percentile(found, [50 * (1 - LEVEL), 50 * (1 + LEVEL)], method="nearest")
    return value, Interval((float(low), float(high)), method=Method.PERCENTILE, level=LEVEL, seed=SEED)


def _places(bits: np.random.PCG64, count: int, size: int) -> NDArray[np.int64]:
    """Return `count` indices below `size` from the raw stream, which is the same in every numpy version."""
    import numpy as np

    # random_raw(1) returns a scalar. The upper 32 bits times the size, shifted back, are uniform indices below it.
    raw = np.atleast_1d(bits.random_raw(count)) >> np.uint64(32)
    return (raw * np.uint64(size) >> np.uint64(32)).astype(np.int64)
