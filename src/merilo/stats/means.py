"""Means and ratios of sums over samples, each with the interval that its data allows (design/statistics.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, Protocol

from merilo.stats.bootstrap import bca_ends
from merilo.stats.intervals import (
    LEVEL,
    SEED,
    Interval,
    Method,
    check_level,
    few_clusters,
    t_quantile,
    too_few_clusters,
    wilson_ends,
)
from merilo.stats.sums import Spread, Sums, coded, numbers, same_length

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

MIN_UNITS_FOR_T = 200
"""Number of units from which Student's t replaces the bootstrap."""
MIN_UNITS_OFF_END = 10
"""Minimum units off the more common end of the range; with fewer, neither t nor the bootstrap is reliable."""
MAX_IN_ONE = 0.9
"""Largest fraction of samples in one cluster: above it, Student's t no longer covers (design/statistics.md)."""
_NEAR = 1e-12


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean or a ratio of sums, with its interval."""

    value: float | None
    """The mean or ratio; None if there are no values."""
    interval: Interval
    """The interval covers sampling of questions, not judge error."""
    units: int
    """The number of samples that count."""
    clusters: int | None = None
    """The number of their clusters; None if samples are not clustered."""
    error: float | None = None
    """The standard error, bias-reduced for clusters or unequal weights; None for fewer than 2 units, or equal ones."""
    freedom: float | None = None
    """The degrees of freedom of the error; None without it."""


class EndCounts(NamedTuple):
    """The distribution of units in the range."""

    off: int
    """Units that differ from the more common end; all of them in a range without a finite end."""
    at: int
    """Units at the more common end."""
    between: int
    """Units at neither end."""

    @property
    def total(self) -> int:
        """The number of all units."""
        return self.off + self.at


def mean_interval(
    values: Sequence[float] | NDArray[np.float64],
    span: tuple[float, float],
    *,
    clusters: Sequence[Hashable] | None = None,
    weights: Sequence[float] | NDArray[np.float64] | None = None,
    level: float = LEVEL,
    seed: int = SEED,
) -> MeanEstimate:
    """Return the mean of one number for each sample, and its confidence interval within `span`.

    `values`: finite, in `span`, whose ends may be infinite. `clusters`: the name of each sample's cluster (document,
    conversation ...); clusters are then the independent units. `weights`: 0 or positive, e.g. the inverse of each
    sample's sampling probability. `seed`: for the resamples, which are not used from 200 units on.

    Assumes that units are an independent random sample with equal probabilities. design/statistics.md explains the
    choice of interval. There is none for fewer than 2 units or 6 clusters, and for equal numbers in an infinite
    range. Raises ValueError for numbers that are not finite or are outside the span.
    """
    import numpy as np

    return ratio_interval(
        values, np.ones(len(values)), span, clusters=clusters, weights=weights, level=level, seed=seed
    )


def ratio_interval(
    tops: Sequence[float] | NDArray[np.float64],
    bottoms: Sequence[float] | NDArray[np.float64],
    span: tuple[float, float],
    *,
    clusters: Sequence[Hashable] | None = None,
    weights: Sequence[float] | NDArray[np.float64] | None = None,
    level: float = LEVEL,
    seed: int = SEED,
) -> MeanEstimate:
    """Return the ratio sum(tops) / sum(bottoms) over samples, and its confidence interval; as `mean_interval`.

    For rates of contexts or statements: `tops` counts those with the property in each sample, `bottoms` all of them.
    Contexts of one sample are not independent and are never resampled separately: the sample is the unit. Samples
    without any (bottom 0) do not count. Each sample's own ratio must be in `span`.
    """
    check_level(level)
    data = _data(tops, bottoms, clusters, weights, span)
    rows, units = data.rows, data.units
    many = None if data.codes is None else units.count
    if rows.count < 2:
        note = f"cannot tell from {rows.count} scored sample{'s' * (rows.count != 1)}"
        value = rows.value if rows.count else None
        return MeanEstimate(value, Interval(None, note, level=level), rows.count, many)
    error = freedom = None
    if units.count > 1 and not _equal(units):
        spread = units.spread
        error, freedom = (spread.error, spread.freedom) if data.grouped else (units.error, units.count - 1)
    if data.grouped:
        clustered = data.codes is not None
        inner = _ends(rows, span)
        interval = grouped_interval(units, inner, span, clustered=clustered, weighted=data.weighted, level=level)
    else:
        interval = _plain(units, span, level, seed)
    return MeanEstimate(rows.value, interval, rows.count, many, error, freedom)


@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    """Sums by sample and by unit."""

    rows: Sums
    units: Sums
    codes: NDArray[np.int64] | None
    weighted: bool

    @property
    def grouped(self) -> bool:
        return self.weighted or self.codes is not None


def _data(
    tops: Sequence[float] | NDArray[np.float64],
    bottoms: Sequence[float] | NDArray[np.float64],
    clusters: Sequence[Hashable] | None,
    weights: Sequence[float] | NDArray[np.float64] | None,
    span: tuple[float, float],
) -> _Data:
    """Return the input, checked, without samples of weight 0."""
    import numpy as np

    above, below = numbers(tops, "numbers"), numbers(bottoms, "denominators")
    same_length(len(above), len(below), "denominators")
    heavy = None if weights is None else numbers(weights, "weights")
    if heavy is not None:
        same_length(len(above), len(heavy), "weights")
        if (heavy < 0).any():
            raise ValueError("Weights must not be negative.")
        above, below = above * heavy, below * heavy
    if (below < 0).any():
        raise ValueError("Denominators must not be negative.")
    codes = None if clusters is None else coded(clusters)
    if codes is not None:
        same_length(len(above), len(codes), "clusters")
    # Samples without contexts or statements (denominator 0) say nothing about the ratio.
    if not (counting := below > 0).all():
        above, below = above[counting], below[counting]
        codes = None if codes is None else np.unique(codes[counting], return_inverse=True)[1]
    rows = Sums(above, below)
    _check_span(rows, span)
    weighted = heavy is not None and bool(np.ptp(heavy[counting])) if rows.count else False
    return _Data(rows, Sums.of(above, below, codes), codes, weighted)


def _check_span(rows: Sums, span: tuple[float, float]) -> None:
    low, high = span
    if not low < high:
        raise ValueError(f"A range needs a lower and a higher end, got {low} and {high}.")
    # Scores are sums of floats and may exceed the range in the last bits.
    slack = 1e-9 * max(abs(end) for end in (low, high, 1.0) if isfinite(end))
    ratios = rows.tops / rows.bottoms
    if rows.count and (ratios.min() < low - slack or ratios.max() > high + slack):
        raise ValueError(
            f"Scores must be in the metric's range, {low} to {high}; got {ratios.min()} to {ratios.max()}."
        )


def _ends(sums: Sums, span: tuple[float, float]) -> EndCounts:
    ratios = sums.tops / sums.bottoms
    at = [int((abs(ratios - end) <= _NEAR * max(1.0, abs(end))).sum()) if isfinite(end) else 0 for end in span]
    return EndCounts(off=sums.count - max(at), at=max(at), between=sums.count - sum(at))


def _equal(sums: Sums) -> bool:
    ratios = sums.tops / sums.bottoms
    return float(ratios.max() - ratios.min()) <= _NEAR * max(1.0, float(abs(ratios).max()))


def _all_equal(units: SummedUnits, span: tuple[float, float], level: float, what: str) -> Interval:
    """Return Wilson's interval for equal units, which has a width anyway; none in an infinite range."""
    if not all(map(isfinite, span)):
        return Interval(None, f"cannot tell: all {units.count} {what} are equal", level=level)
    ends = wilson_ends(units.value, units.effective, span, level=level)
    return Interval(ends, remark=f"all {units.count} {what} are equal", method=Method.WILSON, level=level)


def _linearised(spread: Spread, span: tuple[float, float], level: float, remark: str) -> Interval:
    ends = _within(span, spread.value, t_quantile(spread.freedom, level) * spread.error)
    return Interval(ends, remark=remark, method=Method.LINEARISED, level=level)


def _within(span: tuple[float, float], value: float, margin: float) -> tuple[float, float]:
    return (max(span[0], value - margin), min(span[1], value + margin))


class SummedUnits(Protocol):
    """Independent units, reduced to what an interval without resamples needs: from columns, or while they stream."""

    @property
    def count(self) -> int:
        """The number of units."""
        ...

    @property
    def value(self) -> float:
        """Their mean or ratio."""
        ...

    @property
    def effective(self) -> float:
        """Kish's effective number of units."""
        ...

    def margin(self, quantile: float) -> float:
        """Return the standard error of the value, times this quantile."""
        ...


def without_resamples(
    units: SummedUnits, inner: EndCounts, span: tuple[float, float], *, equal: bool, level: float
) -> Interval | None:
    """Return the interval for units without clusters and with equal weights; None if it needs a bootstrap.

    `inner`: the units' distribution in the range. `equal`: True if all have one ratio.
    """
    if equal:
        return _all_equal(units, span, level, "scores")
    # Few scores off the common end: t and the bootstrap are unreliable near an end of the range.
    if inner.off < MIN_UNITS_OFF_END and all(map(isfinite, span)):
        wilson = wilson_ends(units.value, units.effective, span, level=level)
        return Interval(wilson, method=Method.WILSON, level=level)
    if inner.off < MIN_UNITS_OFF_END and inner.at:
        note = f"cannot tell: only {inner.off} of {units.count} scores differ from the end of a range without another"
        return Interval(None, note, level=level)
    # Student's t for few units, where only an infinite range gets here, and for many, where a bootstrap takes too long.
    if units.count >= MIN_UNITS_FOR_T or units.count < MIN_UNITS_OFF_END:
        margin = units.margin(t_quantile(units.count - 1, level))
        return Interval(_within(span, units.value, margin), method=Method.STUDENT, level=level)
    return None


def _plain(units: Sums, span: tuple[float, float], level: float, seed: int) -> Interval:
    """Return the interval for samples without clusters and with equal weights."""
    interval = without_resamples(units, _ends(units, span), span, equal=_equal(units), level=level)
    if interval is not None:
        return interval
    found = bca_ends(units.tops, units.bottoms, level=level, seed=seed)
    if found is None:
        return Interval(None, f"cannot tell: the scores are too skewed for a level of {level}", level=level, seed=seed)
    return Interval((max(span[0], found[0]), min(span[1], found[1])), method=Method.BCA, level=level, seed=seed)


def grouped_interval(
    units: Sums,
    inner: EndCounts,
    span: tuple[float, float],
    *,
    clustered: bool = True,
    weighted: bool = False,
    level: float = LEVEL,
) -> Interval:
    """Return the interval for samples in clusters or with unequal weights, by the bias-reduced standard error.

    `units`: the clusters, or the samples if there are no clusters. `inner`: the samples' distribution in the range.
    """
    remark, what = "", "scores"
    if clustered:
        what = "clusters' means"
        if (note := too_few_clusters(units.count)) is not None:
            return Interval(None, note, level=level)
        largest = float(units.bottoms.max() / units.bottoms.sum())
        if largest > MAX_IN_ONE:
            note = f"cannot tell: one cluster has {largest:.0%} of the samples, more than {MAX_IN_ONE:.0%}"
            return Interval(None, note, level=level)
        remark = few_clusters(units.count, units.spread.effective)
    if _equal(units):
        alike = _all_equal(units, span, level, what)
        return replace(alike, remark="; ".join(filter(None, (alike.remark, remark))))
    spread = units.spread
    if not all(map(isfinite, span)):
        return _linearised(spread, span, level, remark)
    outer = _ends(units, span)
    low, high = span
    share = (units.value - low) / (high - low)
    # The number of independent zeros and ones with the same standard error.
    count = share * (1 - share) / (spread.error / (high - low)) ** 2
    if outer.off < MIN_UNITS_OFF_END and 2 * outer.at >= units.count:
        count = min(count, units.effective) if weighted else units.effective
        return Interval(
            wilson_ends(units.value, count, span, level=level), remark=remark, method=Method.WILSON, level=level
        )
    if 2 * inner.at >= inner.total or not inner.between:
        found = wilson_ends(units.value, count, span, quantile=t_quantile(spread.freedom, level))
        return Interval(found, remark=remark, method=Method.EFFECTIVE, level=level)
    return _linearised(spread, span, level, remark)
