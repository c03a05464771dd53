"""Intervals by resampling, for numbers that are made of several means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.stats.intervals import LEVEL, Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESAMPLES = 2_000


def percentile_interval(
    columns: Sequence[Sequence[float]],
    combine: Callable[[Sequence[float]], float | None],
    *,
    seed: int,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Interval:
    """Percentile bootstrap interval of a number made of the means of several columns, over the samples.

    `columns`: one for each part, each with one finite value for each sample, in the same order: a resample draws
    samples, so what a sample has in all columns stays together. `combine`: the number from the means, None where
    they give none. `seed`: from 0 to 2^64 - 1; equal input gives equal ends with every numpy. After Efron &
    Tibshirani, "An Introduction to the Bootstrap" (1993), ch. 13. Cannot be told from fewer than two samples, from
    samples that are all alike, nor where a resample gives no number, or each the same.
    """
    size = len(columns[0]) if columns else 0
    if size < 2:
        return Interval(None, f"cannot tell from {size} scored sample{'s' * (size != 1)}")
    import numpy as np

    table = np.asarray(columns, dtype=np.float64)
    if not np.ptp(table, axis=1).any():
        return Interval(None, f"cannot tell: all {size} samples have equal scores")
    bits = np.random.PCG64(seed)  # its raw stream is fixed for ever; what a Generator makes of it is not
    found: list[float] = []
    for _ in range(resamples):
        raw = np.atleast_1d(bits.random_raw(size)) >> np.uint64(32)
        places = (raw * np.uint64(size) >> np.uint64(32)).astype(np.int64)
        drawn = np.bincount(places, minlength=size)
        value = combine([float(mean) for mean in table @ drawn / size])
        if value is None:
            return Interval(None, "cannot tell: some resamples of the data give no value")
        found.append(value)
    low, high = np.percentile(found, [50 * (1 - level), 50 * (1 + level)])
    if low == high:
        return Interval(None, "cannot tell: all resamples of the data give one value")
    return Interval((float(low), float(high)))
