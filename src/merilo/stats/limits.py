"""Limits of a mean: on each side the farther one of Student's t and of an exact limit (design/statistics.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import exp, isfinite, log, pi, sqrt
from typing import TYPE_CHECKING

from merilo.stats.distributions import normal_quantile, t_cdf
from merilo.stats.intervals import t_quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from merilo.stats.sums import Points

    Numbers = NDArray[np.float64]
    from merilo.stats.sums import Spread

# Exact confidence limits of a mean whose range is known: they hold for few, skewed and equal values.

_NODES = 16
"""Nodes per piece of the path of integration, along which the exponent changes by about `_FALL`."""
_FALL = 6.0
_NEGLIGIBLE = -30.0
"""Exponent, relative to the peak, below which nothing is added to a probability."""
_NEAR = 1e-9
_ROUNDS = 200


def exact_limits(points: Points, span: tuple[float, float], worth: float, level: float) -> tuple[float, float]:
    """Return the lower and the upper limit of a mean, each right with probability `level`.

    `span`: the range, with finite ends. `worth`: the number of independent values that the points count as.

    The lower limit is the (1 - level) quantile of the mean of the values and of one more value at the lower end of the
    range, under weights from Dirichlet(1, ..., 1); the upper one is its mirror image. For two values, that end and
    another, they are the limits of Clopper & Pearson. No distribution is known for which a limit is wrong with a
    probability above 1 - level; beyond two values that is a conjecture, which searches have not refuted. Nothing is
    drawn at random, and the order of the values does not matter.

    Source: Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
    variable", Mathematical Methods of Statistics 14 (2005); Learned-Miller & Thomas, arXiv:1905.06208 (2019).
    """
    low, high = span
    counts = points.weights * (worth / points.weights.sum())
    lower = low + _lower(points.values - low, counts, level)
    return lower, high - _lower(high - points.values, counts, level)


def exact_p(points: Points, span: tuple[float, float], worth: float) -> float:
    """Return the p-value of a mean of 0 or beyond, against the mean on its side of 0; `span` contains 0.

    It is at most 1 - level if, and only if, the limit of `exact_limits` on that side of 0 is beyond 0 at that level.
    """
    import numpy as np

    values, (low, high) = points.values, span
    mean = float(points.weights @ values / points.weights.sum())
    if mean == 0:
        return 1.0
    raised, end = (values - low, -low) if mean > 0 else (high - values, high)
    counts = points.weights * (worth / points.weights.sum())
    return _below(np.append(np.maximum(raised, 0.0), 0.0), np.append(counts, 1.0), end)


def _lower(values: Numbers, counts: Numbers, level: float) -> float:
    """Return the lower limit of the mean of values that are at least 0."""
    import numpy as np

    values = np.maximum(values, 0.0)
    scale = float(values.max())
    if scale == 0:
        return 0.0
    points, counts = np.append(values / scale, 0.0), np.append(counts, 1.0)
    mean = float(counts @ points / counts.sum())
    spread = sqrt(float(counts @ (points - mean) ** 2) / counts.sum() / (counts.sum() + 1))
    target = normal_quantile(1 - level)
    low, high, at = 0.0, 1.0, min(max(mean + target * spread, mean / 10), (1 + mean) / 2)
    before: tuple[float, float] | None = None
    # Secant steps on the normal score, which is nearly linear; halving if a step leaves the bracket.
    for _ in range(_ROUNDS):
        score = normal_quantile(_below(points, counts, at))
        if abs(score - target) <= _NEAR:
            break
        low, high = (at, high) if score < target else (low, at)
        slope = 1 / spread if before is None or before[1] == score else (score - before[1]) / (at - before[0])
        before, step = (at, score), at + (target - score) / slope
        at = step if low < step < high else (low + high) / 2
        if high - low <= _NEAR * high or abs(at - before[0]) <= _NEAR * at:
            break
    return scale * at


def _below(points: Numbers, counts: Numbers, at: float) -> float:
    """Return the probability that the Dirichlet(counts) mean of the points is at most `at`, a number between them.

    The mean is at most `at` if the sum of Gamma(counts) · (points - at) is at most 0. That probability is the integral
    of E[exp(s · sum)] / -s over any path from the real axis, between the lowest pole and 0, to infinity. Here it is the
    path of steepest descent from the saddle point, in straight pieces, along which the integrand falls without
    oscillating: some 100 nodes give 10 digits for 2 values and for 1,000,000.
    """
    import numpy as np

    nodes, weights = _legendre()
    steps = points - at
    start = _saddle(steps, counts)
    scale = 1 - start * steps
    place, direction, found = complex(start), 1j, 0.0
    for _ in range(_ROUNDS):
        tilted = steps / (1 - place * steps)
        slope, bend = complex(counts @ tilted) - 1 / place, complex(counts @ tilted**2) + place**-2
        if place.imag > 0:
            direction = -slope.conjugate() / abs(slope)
        piece = direction * _FALL / (abs(slope) + sqrt(2 * abs(bend)))
        path = place + piece * nodes
        exponent = -(np.log((1 - path[:, None] * steps) / scale) @ counts) - np.log(path / start)
        found += (piece * complex(weights @ np.exp(exponent))).imag
        place += piece
        if exponent[-1].real < _NEGLIGIBLE:
            break
    peak = -float(counts @ np.log(scale)) - log(-start)
    return min(max(exp(peak) * found / pi, 1e-300), 1 - 1e-16)


@cache
def _legendre() -> tuple[Numbers, Numbers]:
    """Return the nodes and weights of Gauss and Legendre on [0, 1]."""
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2


def _saddle(steps: Numbers, counts: Numbers) -> float:
    """Return the negative number at which E[exp(s · sum)] / -s is smallest: Newton's method within a bracket."""
    low, high = 1 / float(steps.min()), 0.0
    at = low / 2
    for _ in range(_ROUNDS):
        tilted = steps / (1 - at * steps)
        slope = float(counts @ tilted) - 1 / at
        low, high = (low, at) if slope > 0 else (at, high)
        step = at - slope / (float(counts @ tilted**2) + at**-2)
        after = step if low < step < high else (low + high) / 2
        if abs(after - at) <= 1e-9 * abs(after):
            return after
        at = after
    return at


_FEWEST_VARIED = 3


@dataclass(frozen=True, slots=True, eq=False)
class Summarised:
    """Numbers in a range, reduced to what the limits of their mean need."""

    points: Points
    span: tuple[float, float]
    rows: float
    """The effective number of samples, by their weights (Kish)."""
    units: float
    """The effective number of independent units: samples, or clusters."""
    spread: Spread | None
    """The mean with its standard error; None if all units are equal."""
    varied: int | None = None
    """The number of clusters off their most common mean; None if samples are not clustered."""
    ends: tuple[float, float] | None = None
    """The places of the one more value of exact limits; by default the ends of the range."""

    @property
    def finite(self) -> bool:
        """True if both ends of the range are finite, as exact limits need."""
        return all(map(isfinite, self.span))

    def limits(self, level: float, exact_level: float | None = None) -> tuple[float, float]:
        """Return the limits at a two-sided level; in an infinite range those of t alone, which need a spread.

        The exact limits are each right with probability `exact_level`; by default `level`. So no side is wrong more
        often than 1 - level, whatever the numbers are, and many numbers without a long tail have the interval of t.
        """
        low, high = self.span
        ends: list[tuple[float, float]] = []
        if self.finite:
            ends.append(exact_limits(self.points, self.ends or self.span, self._worth(level), exact_level or level))
        if self.spread is not None:
            half = t_quantile(self.spread.freedom, level) * self.spread.error
            ends.append((self.spread.value - half, self.spread.value + half))
        return max(low, min(end for end, _ in ends)), min(high, max(end for _, end in ends))

    def p(self, level: float) -> float:
        """Return the p-value of a mean of 0: at most 1 - level if, and only if, 0 is outside the limits."""
        found = exact_p(self.points, self.ends or self.span, self._worth(level)) if self.finite else 0.0
        if self.spread is None:
            return found
        return max(found, 2 * t_cdf(self.spread.freedom, -abs(self.spread.value) / self.spread.error))

    def _worth(self, level: float) -> float:
        """Return the number of independent values that the samples are worth, from their variance and the error.

        With few degrees of freedom, or few clusters that differ, the error is uncertain, so fewer count. Source: Korn &
        Graubard, Survey Methodology 24 (1998); the clusters that differ are our own.
        """
        if self.spread is None:
            return self.units
        variance = self.points.variance * self.rows / (self.rows - 1)
        freedom = self.spread.freedom
        if self.varied is not None:
            freedom = min(freedom, max(self.varied, _FEWEST_VARIED))
        fewer = t_quantile(self.rows - 1, level) / t_quantile(freedom, level)
        return min(self.rows, variance / self.spread.error**2) * min(1.0, fewer**2)
