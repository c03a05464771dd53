"""What an interval is, and the three that need no more than a few numbers: Student's, Wilson's, and none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

LEVEL = 0.95
SEED = 0
"""Where no seed is given: equal data gives equal intervals."""
FEWEST_CLUSTERS = 6
FEW_CLUSTERS = 20


class Method(StrEnum):
    """How an interval was made; design/intervals.md says when each is taken."""

    STUDENT = "t"
    BCA = "BCa bootstrap"
    PERCENTILE = "percentile bootstrap"
    JACKKNIFE = "jackknife t"
    WILSON = "Wilson"
    LINEARISED = "linearised t"
    EFFECTIVE = "Wilson with effective n"
    FLIPS = "exact sign flips"
    SCORE = "score"
    BETTING = "hedged capital"
    CORRECTED = "stratified score"
    ROGAN_GLADEN = "Rogan-Gladen"


@dataclass(slots=True)
class Moments:
    """Running count, mean and variance of numbers (Welford's method, as in Knuth, TAOCP 2, 4.2.2)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    """Sum of squared deviations from the mean."""

    def add(self, number: float) -> None:
        """Take in one number."""
        self.count += 1
        step = number - self.mean
        self.mean += step / self.count
        self.squares += step * (number - self.mean)

    @property
    def deviation(self) -> float:
        """Sample standard deviation (divisor n - 1); 0.0 for fewer than two numbers."""
        return math.sqrt(self.squares / (self.count - 1)) if self.count > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval (low, high), or why none can be told."""

    ends: tuple[float, float] | None
    note: str = ""
    """Why there is none; empty when there is one."""
    remark: str = ""
    """What must be said beside it; often empty."""
    method: Method | None = None
    level: float = LEVEL
    seed: int | None = None
    """What the resamples were drawn from; None where nothing was drawn."""


def check_level(level: float) -> None:
    """Raises ValueError unless the level is a number between 0 and 1, both left out."""
    if not 0 < level < 1:
        raise ValueError(f"A confidence level lies between 0 and 1, got {level}; write 0.95 for 95 %.")


def too_few_clusters(clusters: int) -> str | None:
    """Why nothing can be told from so many clusters; None from six on."""
    if clusters >= FEWEST_CLUSTERS:
        return None
    return f"cannot tell from {clusters} cluster{'s' * (clusters != 1)}, at least {FEWEST_CLUSTERS} needed"


def few_clusters(clusters: int, effective: float | None = None) -> str:
    """Return a remark on an interval over few clusters; empty for an effective number of 20 or more.

    `effective`: the number of clusters of equal size that the interval is worth; all of them without it.
    """
    if effective is None or effective > clusters - 1:
        few = "" if clusters >= FEW_CLUSTERS else f"only {clusters} clusters"
    else:
        few = "" if effective >= FEW_CLUSTERS else f"the effective number of clusters is {effective:.1f} of {clusters}"
    return few and f"{few}: the interval is less reliable than its level says"


def t_quantile(freedom: float, level: float) -> float:
    """The two-sided quantile of Student's t with `freedom` > 0 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def wilson_ends(
    share: float, count: float, span: tuple[float, float], *, level: float = LEVEL, quantile: float | None = None
) -> tuple[float, float]:
    """Wilson's score interval of a mean in the finite range `span`, rescaled to a share of `count` > 0 units.

    `share`: the mean, in `span`. `count` need not be whole (an effective number). `quantile`: in the place of the
    normal one. For a mean that is no share of 0 and 1 it is too wide, never too narrow in its variance: no
    distribution within a range has a larger one than p(1 - p). It has a width even where all units are equal.
    Source: Wilson, JASA 22 (1927); Brown, Cai & DasGupta, Statistical Science 16 (2001), section 3.1.1.
    """
    if quantile is None:
        from scipy.special import ndtri

        quantile = float(ndtri((1 + level) / 2))
    low, high = span
    p = min(max((share - low) / (high - low), 0.0), 1.0)
    square = quantile * quantile / count
    centre = (p + square / 2) / (1 + square)
    half = math.sqrt(square * (p * (1 - p) + square / 4)) / (1 + square)
    ends = (0.0 if p == 0 else max(centre - half, 0.0), 1.0 if p == 1 else min(centre + half, 1.0))
    return (low + ends[0] * (high - low), low + ends[1] * (high - low))


def t_interval(moments: Moments, span: tuple[float, float], *, level: float = LEVEL) -> Interval:
    """Student's t interval of a mean over independent samples, clipped to the metric's range `span`.

    Assumes that the mean is near normal. Cannot be told from fewer than two numbers, nor from numbers that
    are all equal: an interval of no width would claim a certainty that the data cannot give.
    """
    if moments.count < 2:
        return Interval(None, f"cannot tell from {moments.count} scored sample{'s' * (moments.count != 1)}")
    if moments.deviation == 0.0:
        return Interval(None, f"cannot tell: all {moments.count} scores are equal")
    half = t_quantile(moments.count - 1, level) * moments.deviation / math.sqrt(moments.count)
    ends = (max(span[0], moments.mean - half), min(span[1], moments.mean + half))
    return Interval(ends, method=Method.STUDENT, level=level)
