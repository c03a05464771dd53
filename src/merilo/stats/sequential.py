"""Limits that hold at any time: a study may look at them after every sample, and stop when they decide.

Two formulas. A confidence sequence by betting, for the mean of samples in a finite range, is exact at every size. A
level for usual intervals, for means that human labels correct, holds for means that are nearly normal.
"""

from __future__ import annotations

from math import exp, isfinite, log, sqrt
from typing import TYPE_CHECKING

from merilo.stats.distributions import normal_cdf
from merilo.stats.intervals import LEVEL, Interval, Method, check_level
from merilo.stats.sums import numbers, summed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

_BETS = [0.95 / 2**power for power in range(8)]
"""Fractions of the capital that a sample at the end of the range can lose. Large ones decide clear cases soon, small
ones decide close cases at all."""
_SHARES = [1 / (power + 2) for power in range(8)]
"""The capital that each bet starts with, before division by the sum."""
_HALVINGS = 24
_NARROWEST_AT = 10.0
"""Parameter of `level_at`: limits are narrowest, compared with a fixed size, near 80 units."""


def confidence_sequence(
    values: Sequence[float] | Numbers, span: tuple[float, float], *, level: float = LEVEL
) -> Interval:
    """Return an interval of the mean that holds at every size: the intervals after 1, 2, 3, ... samples all together
    cover it with probability `level`.

    `values`: one per sample, in the random order of evaluation, in `span`. Assumes only that each has the same mean
    given those before it. Formula: `sequential_limits`. There is none in an infinite range. Raises ValueError for other
    values.
    """
    check_level(level)
    return sequence_of(numbers(values, "scores"), span, level=level)


def sequence_of(
    values: Numbers,
    span: tuple[float, float],
    *,
    codes: NDArray[np.int64] | None = None,
    largest: int = 1,
    level: float = LEVEL,
) -> Interval:
    """Return the interval of `confidence_sequence`; `codes`, `largest`: as in `sequential_limits`."""
    if not len(values):
        return Interval(None, "cannot tell from 0 scored samples", level=level)
    if not all(map(isfinite, span)):
        return Interval(None, "cannot tell for an infinite range in a run that could stop early", level=level)
    ends = sequential_limits(values, span, codes=codes, largest=largest, level=(1 + level) / 2)
    return Interval(ends, method=Method.BETTING, level=level)


def sequential_p(
    values: Numbers, span: tuple[float, float], *, codes: NDArray[np.int64] | None = None, largest: int = 1
) -> float:
    """Return a p-value of a mean of 0 that holds at any time: at most 1 - level if `sequence_of` excludes 0."""
    low, high = span
    scaled, sizes = _scaled(values, span, codes, largest)
    null = -low / (high - low)
    capital = max(_most(scaled / null - sizes), _most((sizes - scaled) / (1 - null) - sizes))
    return min(1.0, 2 * exp(-capital))


def sequential_limits(
    values: Numbers,
    span: tuple[float, float],
    *,
    codes: NDArray[np.int64] | None = None,
    largest: int = 1,
    level: float = LEVEL,
) -> tuple[float, float]:
    """Return the lower and the upper limit of a mean, each right at all sizes together with probability `level`.

    `values`: at least one. `codes`: the number of each value's cluster, whole clusters in random order. `largest`: the
    size that no cluster exceeds, known before the first value. Limits never widen as values are added. They are exact
    to 1e-7 of the range.

    Formula: for each possible mean m, a gambler who bets that the mean is higher has the capital
    Π (1 + b · (x / m - 1)) after the values x in [0, 1]. With clusters, x is the sum of a cluster, and its size
    replaces the inner 1; both are divided by `largest`. If m is the mean, the expected capital does not grow, so it
    ever reaches 1 / (1 - level) with probability 1 - level at most (Ville). The lower limit is the largest m at which
    it has; the upper limit is that of the mirrored values. The capital is spread over eight constant bets b. Source:
    Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86 (2024), theorem 1 and
    appendix B (diversified Kelly betting); the bets and their shares are our own.
    """
    scaled, sizes = _scaled(values, span, codes, largest)
    lower, upper = _lower(scaled, sizes, 1 - level), 1 - _lower(sizes - scaled, sizes, 1 - level)
    low, high = span
    return low + lower * (high - low), low + max(upper, lower) * (high - low)


def _scaled(
    values: Numbers, span: tuple[float, float], codes: NDArray[np.int64] | None, largest: int
) -> tuple[Numbers, Numbers]:
    """Return the values on the scale from 0 to 1 and their sizes; of clusters, the sums of both over `largest`."""
    import numpy as np

    low, high = span
    if not (isfinite(low) and isfinite(high) and low < high):
        raise ValueError(f"A confidence sequence needs a finite range, got {low} to {high}.")
    scaled = (values - low) / (high - low)
    if scaled.min() < -1e-9 or scaled.max() > 1 + 1e-9:
        raise ValueError(f"Scores must be in the metric's range, {low} to {high}.")
    scaled, sizes = np.clip(scaled, 0.0, 1.0), np.ones(len(values))
    if codes is None:
        return scaled, sizes
    groups = np.unique(codes, return_inverse=True)[1]
    return summed(groups, scaled) / largest, summed(groups, sizes) / largest


def level_at(units: int, level: float = LEVEL) -> float:
    """Return the level of a two-sided interval after `units` units with which the intervals of all sizes together have
    `level`.

    For estimates whose error is nearly normal. The interval reaches as many standard errors as the boundary that a
    normal random walk of variance 1 per unit ever crosses with probability 1 - level: sqrt((n + r) · (ln((n + r) / r)
    - 2 ln(1 - level)) / n), r = 10. Sources: Robbins, Annals of Mathematical Statistics 41 (1970); Waudby-Smith,
    Arbour, Sinha, Kennedy & Ramdas, "Time-uniform central limit theory and asymptotic confidence sequences", Annals of
    Statistics 52 (2024).
    """
    check_level(level)
    count, more = max(units, 1), max(units, 1) + _NARROWEST_AT
    reach = sqrt(more * (log(more / _NARROWEST_AT) - 2 * log(1 - level)) / count)
    return 1 - 2 * normal_cdf(-reach)


def _lower(totals: Numbers, sizes: Numbers, tail: float) -> float:
    """Return the largest mean that the capital has ever refuted; 0 if none."""
    low, high = 0.0, 1.0
    # The capital falls as the mean that it bets against rises, so the limit can be found by halving.
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _most(totals / middle - sizes) >= -log(tail) else (low, middle)
    return low


def _most(gains: Numbers) -> float:
    """Return the logarithm of the largest capital at any time; `gains`: those per unit of capital at risk, from -1."""
    import numpy as np

    capital = np.full(len(gains), -np.inf)
    for bet, share in zip(_BETS, _SHARES, strict=True):
        np.logaddexp(capital, np.cumsum(np.log1p(bet * gains)) + log(share / sum(_SHARES)), out=capital)
    return float(capital.max())
