"""One-sided confidence limits of a mean whose range is known; gates decide by them (design/statistics.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import exp, isfinite, log, pi, sqrt
from typing import TYPE_CHECKING

from merilo.stats.distributions import normal_quantile
from merilo.stats.intervals import LEVEL, too_few_clusters
from merilo.stats.means import mean_interval
from merilo.stats.sequential import sequential_limits
from merilo.stats.sums import Sums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

GRID = 128
"""Maximum distinct values; more are spread over a grid with this number of steps from the lowest to the highest."""
_NODES = 16
"""Nodes per piece of the path of integration, along which the exponent changes by about `_FALL`."""
_FALL = 6.0
_NEGLIGIBLE = -30.0
"""Exponent, relative to the peak, below which nothing is added to a probability."""
_NEAR = 1e-9
_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class OneSidedLimits:
    """A lower and an upper limit, each with its own confidence level."""

    lower: float | None
    upper: float | None
    note: str = ""
    """The reason why a limit is missing; otherwise empty."""


def mean_limits(
    values: Numbers,
    span: tuple[float, float],
    *,
    codes: NDArray[np.int64] | None = None,
    level: float = LEVEL,
    early: int = 0,
) -> OneSidedLimits:
    """Return the one-sided limits of the mean of values in `span`, whose ends may be infinite.

    `codes`: the number of each value's cluster. Samples without clusters: `lower_limit` and its mirror image. Clusters:
    `clustered_limits`. On the side of an infinite end no limit holds for every distribution; the end of `mean_interval`
    at level 2 · level - 1 is used there. `early`: as in `gate_minimum`.
    """
    import numpy as np

    if not len(values):
        return OneSidedLimits(None, None, "there are no scores")
    if early and not all(map(isfinite, span)):
        return OneSidedLimits(None, None, "no limit of an infinite range holds at any time")
    if early:
        return OneSidedLimits(*sequential_limits(values, span, codes=codes, largest=early, level=level))
    if codes is None and all(map(isfinite, span)):
        return OneSidedLimits(*_both(values, span, level))
    groups = None if codes is None else np.unique(codes, return_inverse=True)[1]
    found = mean_interval(values, span, clusters=None if groups is None else groups.tolist(), level=2 * level - 1)
    if groups is not None:
        return clustered_limits(values, span, groups, (found.interval.ends, found.error, found.interval.note), level)
    ends = found.interval.ends or (None, None)
    lower = lower_limit(values, span[0], level=level) if isfinite(span[0]) else ends[0]
    upper = -lower_limit(-values, -span[1], level=level) if isfinite(span[1]) else ends[1]
    return OneSidedLimits(lower, upper, found.interval.note)


def clustered_limits(
    values: Numbers,
    span: tuple[float, float],
    codes: NDArray[np.int64],
    symmetric: tuple[tuple[float, float] | None, float | None, str],
    level: float,
) -> OneSidedLimits:
    """Return the one-sided limits of the mean of values in clusters.

    `symmetric`: the ends of a clustered interval at level 2 · level - 1 (None if there are none), its standard error
    and the reason why there are no ends. A limit is the outer one of that end and of `lower_limit` for as many
    independent values as the clusters are worth (variance / error²; Korn & Graubard, Survey Methodology 24 (1998)).
    Each of the two is wrong too often in some data: the first near an end of the range, the second if few clusters
    differ. Without ends or an error, each cluster is worth one value.
    """
    import numpy as np

    ends, error, note = symmetric
    clusters = int(codes.max()) + 1
    low, high = ends or (None, None)
    if (few := too_few_clusters(clusters)) is not None or not all(map(isfinite, span)):
        return OneSidedLimits(low, high, few or note)
    count = len(values)
    worth = Sums.of(values, np.ones(count), codes).effective
    variance = float(values.var(ddof=1))
    if ends is not None and error and variance:
        worth = min(float(count), variance / error**2)
    lower, upper = _both(values, span, level, worth)
    return OneSidedLimits(lower if low is None else min(low, lower), upper if high is None else max(high, upper))


def lower_limit(values: Numbers, floor: float, *, level: float = LEVEL, worth: float | None = None) -> float:
    """Return the lower confidence limit of the mean of independent values that are at least `floor`.

    The limit is the (1 - level) quantile of the mean of the values and of one more value at `floor`, under weights
    from Dirichlet(1, ..., 1). For two values, `floor` and another, it is the limit of Clopper & Pearson. No
    distribution is known for which it is above the mean with a probability above 1 - level; beyond two values that is a
    conjecture, which searches have not refuted. Nothing is drawn at random, and the order of the values does not
    matter. `worth`: count the values as this many; None: each as one.

    Source: Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
    variable", Mathematical Methods of Statistics 14 (2005); Learned-Miller & Thomas, arXiv:1905.06208 (2019).
    """
    import numpy as np

    raised = np.maximum(values - floor, 0.0)
    scale = float(raised.max())
    if scale == 0:
        return floor
    points, counts = _grouped(raised / scale)
    if worth is not None:
        counts *= worth / len(values)
    points, counts = np.concatenate(([0.0], points)), np.concatenate(([1.0], counts))
    mean = float(counts @ points / counts.sum())
    spread = sqrt(float(counts @ (points - mean) ** 2) / counts.sum() / (counts.sum() + 1))
    target = normal_quantile(1 - level)
    low, high, at = 0.0, float(points[-1]), max(mean + target * spread, mean / 10)
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
    return floor + scale * at


def _both(values: Numbers, span: tuple[float, float], level: float, worth: float | None = None) -> tuple[float, float]:
    lower = lower_limit(values, span[0], level=level, worth=worth)
    return lower, -lower_limit(-values, -span[1], level=level, worth=worth)


def _grouped(values: Numbers) -> tuple[Numbers, Numbers]:
    """Return the distinct values and their counts."""
    import numpy as np

    points, counts = np.unique(values, return_counts=True)
    if len(points) <= GRID:
        return points, counts.astype(np.float64)
    # Each value is split between its two neighbours on the grid. The mean stays; the variance grows by at most a
    # quarter of the squared step, which makes limits wider by some parts in 10,000.
    step = float(points[-1] - points[0]) / GRID
    places = (points - points[0]) / step
    left = np.minimum(places.astype(np.int64), GRID - 1)
    right = (places - left) * counts
    found = np.bincount(left, counts - right, GRID + 1) + np.bincount(left + 1, right, GRID + 1)
    positive = found > 0
    grid = np.linspace(float(points[0]), float(points[-1]), GRID + 1)
    return grid[positive], found[positive].astype(np.float64)


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
