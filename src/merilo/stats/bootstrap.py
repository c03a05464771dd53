"""Intervals of functions of several means, by resampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.stats.intervals import LEVEL, Interval, Method, few_clusters, too_few_clusters
from merilo.stats.sums import Sums, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 2_000


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


def _places(bits: np.random.PCG64, count: int, size: int) -> NDArray[np.int64]:
    """Return `count` indices below `size` from the raw stream, which is the same in every numpy version."""
    import numpy as np

    raw = np.atleast_1d(bits.random_raw(count)) >> np.uint64(32)
    return (raw * np.uint64(size) >> np.uint64(32)).astype(np.int64)
