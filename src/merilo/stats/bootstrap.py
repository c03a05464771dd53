"""Intervals by resampling: of a mean or a ratio of sums over few units, and of functions of several means."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING

from merilo.stats.distributions import normal_cdfs, normal_quantile
from merilo.stats.intervals import LEVEL, SEED, Interval, Method, few_clusters, t_quantile, too_few_clusters
from merilo.stats.sums import Sums, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 2_000
BCA_RESAMPLES = 9_999


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
        remark = few_clusters(len(sizes), Sums(sizes, sizes).spread.effective)
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


def bca_ends(
    tops: NDArray[np.float64],
    bottoms: NDArray[np.float64],
    *,
    level: float = LEVEL,
    seed: int = SEED,
    resamples: int = BCA_RESAMPLES,
    quantile: float | None = None,
) -> tuple[float, float] | None:
    """Return the ends of a bias-corrected and accelerated bootstrap interval of sum(tops) / sum(bottoms), over the
    units.

    `tops`, `bottoms`: one each for every unit, bottoms above 0 (all 1 for a mean); at least 3 units, not all with the
    same ratio. A resample selects whole units. The order of the units does not matter. None if the correction leaves
    (0, 1), which happens only at extreme levels. Memory: 80 kB for each unit.

    Source: Efron & Tibshirani, "An Introduction to the Bootstrap" (1993), 14.3, acceleration by the jackknife, ties
    counted half. One difference: t(n - 1) · sqrt(n / (n - 1)) replaces the normal quantile, because resamples spread
    too little (Hesterberg, The American Statistician 69 (2015), section 5.3: "expanded percentile"). `quantile` sets
    another.
    """
    import numpy as np

    size = len(tops)
    # Sorted first, so that the same units in another order give the same resamples and ends.
    order = np.lexsort((bottoms, tops))
    tops, bottoms = tops[order], bottoms[order]
    found = resampled_ratios(tops, bottoms, seed=seed, resamples=resamples)
    value = tops.sum() / bottoms.sum()
    slack = 1e-12 * max(1.0, abs(value))  # a resample equal to the data may differ in the last bit
    below = float((found < value - slack).mean() + (found <= value + slack).mean()) / 2
    bias = normal_quantile(below)
    without = (tops.sum() - tops) / (bottoms.sum() - bottoms)
    steps = without.mean() - without
    acceleration = float((steps**3).sum() / (6 * (steps**2).sum() ** 1.5))
    if quantile is None:
        quantile = t_quantile(size - 1, level) * sqrt(size / (size - 1))
    shifts = np.array([bias - quantile, bias + quantile])
    room = 1 - acceleration * shifts
    # An infinite bias: all resamples are on one side of the value.
    if not np.isfinite(bias) or (room <= 0).any():
        return None
    low, high = np.quantile(found, normal_cdfs(bias + shifts / room))
    return (float(low), float(high))


def resampled_ratios(
    tops: NDArray[np.float64], bottoms: NDArray[np.float64], *, seed: int, resamples: int = BCA_RESAMPLES
) -> NDArray[np.float64]:
    """Return sum(tops) / sum(bottoms) in each of the resamples of the units; bottoms above 0."""
    drawn = _drawn(len(tops), seed, resamples)
    return (drawn @ tops) / (drawn @ bottoms)


@lru_cache(maxsize=2)
def _drawn(size: int, seed: int, resamples: int) -> NDArray[np.float64]:
    """Return how often each resample has each unit: resamples × size, the same for all metrics with this number of
    units.
    """
    import numpy as np

    places = _places(np.random.PCG64(seed), resamples * size, size).reshape(resamples, size)
    places += np.arange(0, resamples * size, size)[:, None]
    drawn = np.bincount(places.ravel(), minlength=resamples * size).reshape(resamples, size).astype(np.float64)
    drawn.setflags(write=False)
    return drawn


def _places(bits: np.random.PCG64, count: int, size: int) -> NDArray[np.int64]:
    """Return `count` indices below `size` from the raw stream, which is the same in every numpy version."""
    import numpy as np

    raw = np.atleast_1d(bits.random_raw(count)) >> np.uint64(32)
    return (raw * np.uint64(size) >> np.uint64(32)).astype(np.int64)
