"""The mean of paired differences: its interval and p-value, both from the same statistic."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, isfinite, sqrt
from typing import TYPE_CHECKING

from merilo.stats.distributions import normal_cdf, t_cdf
from merilo.stats.intervals import LEVEL, Interval, Method, check_level, t_quantile, wilson_ends
from merilo.stats.sums import Spread, Sums, coded, numbers, same_length

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

EXACT = 20
"""Maximum number of units for which every sign flip is enumerated: 2^20 flips."""
FEWEST_DIFFERENT = 6
"""Minimum number of nonzero differences. With 5, the 32 sign flips give p = 1/16 at best, so level 95 % is
impossible.
"""
_NEAR = 1e-12


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A test of a mean difference against 0."""

    difference: float | None
    """The mean difference; None without a pair."""
    interval: Interval
    p: float | None
    """Two-sided; at most 1 - level if, and only if, 0 is outside the interval. None if it cannot be computed."""
    error: float | None
    """The standard error, bias-reduced for clusters; None for fewer than two units, or equal ones."""
    units: int
    """The number of pairs, or of their clusters."""
    freedom: float | None = None
    """The degrees of freedom of the error; None without it."""


def paired_test(
    differences: Sequence[float] | NDArray[np.float64],
    span: tuple[float, float],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = LEVEL,
) -> PairedTest:
    """Test whether the mean of paired differences is 0; nothing is sampled at random.

    `differences`: one for each sample, in `span` (the range of a difference, which contains 0; ends may be infinite).
    `clusters`: the name of each sample's cluster; a cluster is flipped as a whole. With fewer than 6 nonzero
    differences (or clusters whose differences do not cancel) the result is "cannot tell".

    Up to 20 units: all sign flips. The statistic is the sum of e = d - m · difference over units (m: the unit's
    samples), studentised by sqrt(sum(e²)), which no flip changes. So the test is exact if, under the null, a unit is
    equally likely to be off in either direction. Its inversion is closed: the ends are order statistics of the ratios
    of sums of all subsets of units. Source: Hartigan, "Using subsample values as typical values", JASA 64 (1969).

    More units: (difference - 0) / standard error, by t. For pairs it is the paired t test with units - 1 degrees of
    freedom; for clusters the error and the degrees of freedom are those of `Sums.spread`. This assumes that the mean
    is approximately normal; benchmarks/coverage.py measures the coverage for skewed differences.

    All differences equal, and not 0: the score test on `span`, whose inversion is Wilson's interval.
    """
    check_level(level)
    found = numbers(differences, "differences")
    codes = None if clusters is None else coded(clusters)
    if codes is not None:
        same_length(len(found), len(codes), "clusters")
    return paired_of(found, codes, span, level)


def paired_of(
    differences: NDArray[np.float64], codes: NDArray[np.int64] | None, span: tuple[float, float], level: float
) -> PairedTest:
    """Test as `paired_test` does, from arrays that are known to be valid."""
    import numpy as np

    if not len(differences):
        return PairedTest(None, Interval(None, "cannot tell: there is no pair of scores", level=level), None, None, 0)
    if codes is not None:
        codes = np.unique(codes, return_inverse=True)[1]
    sums = Sums.of(differences, np.ones(len(differences)), codes)
    # Differences that cancel in a cluster may leave a rounding error, which is not a difference.
    slack = _NEAR * max(1.0, float(abs(sums.tops).max()))
    unlike = int((abs(sums.tops) > slack).sum())
    ratios = sums.tops / sums.bottoms
    same = float(ratios.max() - ratios.min()) <= slack
    spread = None if same or sums.count < 2 else sums.spread
    error, freedom = (None, None) if spread is None else (spread.error, spread.freedom)
    if unlike < FEWEST_DIFFERENT:
        what = "differences are not 0" if codes is None else "clusters have differences that do not cancel"
        note = f"cannot tell: {unlike} of {sums.count} {what}, at least {FEWEST_DIFFERENT} needed"
        return PairedTest(sums.value, Interval(None, note, level=level), None, error, sums.count, freedom)
    if spread is None:
        interval, p = _score(sums, span, level)
    elif sums.count <= EXACT:
        interval, p = _flips(sums, span, level)
    else:
        interval, p = _student(spread, span, level)
    return PairedTest(sums.value, interval, p, error, sums.count, freedom)


def _student(spread: Spread, span: tuple[float, float], level: float) -> tuple[Interval, float]:
    half = t_quantile(spread.freedom, level) * spread.error
    p = 2 * t_cdf(spread.freedom, -abs(spread.value) / spread.error)
    ends = _clipped(spread.value - half, spread.value + half, span)
    return Interval(ends, method=Method.LINEARISED, level=level), p


def _flips(sums: Sums, span: tuple[float, float], level: float) -> tuple[Interval, float]:
    import numpy as np

    tops, bottoms = _subsets(sums.tops), _subsets(sums.bottoms)
    # A sum that is 0 up to rounding must count on both sides.
    tops[abs(tops) <= _NEAR * max(1.0, float(abs(sums.tops).sum()))] = 0.0
    # The empty subset (no flip) has the sum 0 and counts on both sides, so p is never 0.
    p = min(1.0, 2 * float(min((tops <= 0).sum(), (tops >= 0).sum())) / len(tops))
    reach = floor((1 - level) / 2 * len(tops) + 1e-9)  # number of flips that may be beyond an end
    if reach < 1:
        note = f"cannot tell: {sums.count} pairs are too few for a level of {level}"
        return Interval(None, note, level=level), p
    ratios = tops[1:] / bottoms[1:]
    last = len(ratios) - reach
    # Only two order statistics of a million ratios are needed, so they are not sorted.
    ratios.partition((reach - 1, last) if reach - 1 < last else (last, reach - 1))
    low, high = float(np.min(ratios[reach - 1])), float(np.max(ratios[last]))
    return Interval(_clipped(low, high, span), method=Method.FLIPS, level=level), p


def _subsets(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of every subset of the parts; the empty subset comes first."""
    import numpy as np

    found = np.zeros(1)
    for part in parts:
        found = np.concatenate((found, found + part))
    return found


def _score(sums: Sums, span: tuple[float, float], level: float) -> tuple[Interval, float | None]:
    low, high = span
    if not (isfinite(low) and isfinite(high)):
        return Interval(None, f"cannot tell: all {sums.count} differences are equal", level=level), None
    count, share, none = sums.effective, (sums.value - low) / (high - low), -low / (high - low)
    remark = f"all {sums.count} differences are equal"
    ends = wilson_ends(sums.value, count, span, level=level)
    p = 2 * normal_cdf(-abs(share - none) / sqrt(none * (1 - none) / count))
    return Interval(ends, remark=remark, method=Method.SCORE, level=level), p


def _clipped(low: float, high: float, span: tuple[float, float]) -> tuple[float, float]:
    return (max(low, span[0]), min(high, span[1]))
