"""Confidence limits of a mean over strata of known size, from a few numbers between 0 and 1 in each.

A limit is the most extreme mean that the numbers do not contradict. Each stratum has a discrete distribution: on the
observed values and on the end of the range, if no observed value is there. Pearson's statistic compares it with the
observed counts, and the statistics of all strata add up to at most the squared quantile. One stratum of zeros and ones
gives Wilson's interval exactly; many numbers far from the ends give the normal interval
(design/labels-and-correction.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEPS = 50
"""Equal parts into which the squared quantile is divided among the strata."""
_HALVINGS = 33
_EXPONENTS = (-30.0, 12.0)
"""Range of the logarithm of the multiplier that is searched."""


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """A part of the population, with its observed values."""

    share: float
    """Fraction of the population, above 0."""
    mean: float
    """The estimated mean of the stratum, in [0, 1]."""
    values: Floats
    """Observed numbers; empty if there are none. Numbers outside [0, 1] are possible, as differences of two numbers."""
    count: float
    """Effective number of independent values."""

    @property
    def variance(self) -> float:
        """Variance of the estimated mean; 0 without values."""
        return float(self.values.var()) / self.count if len(self.values) else 0.0


def stratified_limits(strata: Sequence[Stratum], variance: float, quantile: float) -> tuple[float, float]:
    """Return the lower and upper limit of the sum of share · mean over the strata, in [0, 1].

    `variance`: of the estimate for all other reasons, such as the sampled sizes of the strata. `quantile`: two-sided,
    normal or Student's t. A stratum without values may have any mean from 0 to 1.
    """
    import numpy as np

    statistics = quantile * quantile * np.arange(1, STEPS + 1) / STEPS
    others = np.sqrt(variance * statistics)
    value = sum(each.share * each.mean for each in strata)
    below = _farthest([others, *(each.share * _reach(each, statistics, up=False) for each in strata)])
    above = _farthest([others, *(each.share * _reach(each, statistics, up=True) for each in strata)])
    return float(max(0.0, value - below)), float(min(1.0, value + above))


def _farthest(curves: Sequence[Floats]) -> float:
    """Return the largest sum of one point of each curve, if the curves share STEPS steps.

    The curves are concave, so each step goes to the curve that gains most by it.
    """
    import numpy as np

    # Each curve starts at 0, so its differences are the gains of its steps.
    gains = np.concatenate([np.diff(curve, prepend=0.0) for curve in curves])
    return float(np.sort(gains)[-STEPS:].sum())


def _reach(stratum: Stratum, statistics: Floats, *, up: bool) -> Floats:
    """Return the distance of the highest (or lowest) possible mean from the estimate, for each value of the
    statistic.
    """
    import numpy as np

    room = 1 - stratum.mean if up else stratum.mean
    if not len(stratum.values):
        return np.full(STEPS, room)
    sign = 1.0 if up else -1.0
    values, alike = np.unique((sign * stratum.values).round(12), return_counts=True)
    counts = alike * stratum.count / len(stratum.values)
    end = max(1.0 if up else 0.0, float(values[-1]))
    return np.minimum(_largest_means(values, counts, end, statistics) - sign * stratum.mean, room)


def _largest_means(values: Floats, counts: Floats, end: float, statistics: Floats) -> Floats:
    """Return the largest mean of a distribution on `values` and `end`, for each value of Pearson's statistic.

    `values`: ascending, at most `end`. By Lagrange multipliers the probabilities are proportional to count /
    sqrt(multiplier - value), with a multiplier above `end`. With the multiplier at `end` the rest of the probability
    goes to `end`, if no value is there.
    """
    import numpy as np

    total = float(counts.sum())

    def tilted(beyond: Floats) -> tuple[Floats, Floats]:
        """Return statistic and mean for multipliers that exceed the end by these numbers."""
        roots = np.sqrt(end - values + beyond[:, None])
        sums = (counts / roots).sum(axis=1)
        return sums * (counts * roots).sum(axis=1) / total - total, (counts * values / roots).sum(axis=1) / sums

    found = np.empty(len(statistics))
    limit, mean = inf, 0.0
    if end > values[-1]:
        limit, mean = (float(each[0]) for each in tilted(np.zeros(1)))
        # Probability of the end of the range, where nothing was observed.
        unseen = 1 - (total + limit) / (total + statistics)
        found = mean + unseen * (end - mean)
    inner = statistics <= limit
    low, high = (np.full(int(inner.sum()), exponent) for exponent in _EXPONENTS)
    for _ in range(_HALVINGS if len(low) else 0):
        middle = (low + high) / 2
        beyond = tilted(np.exp(middle))[0] > statistics[inner]
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    found[inner] = tilted(np.exp(high))[1]
    return found
