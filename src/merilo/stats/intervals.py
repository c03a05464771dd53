"""Intervals of a mean over samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

LEVEL = 0.95


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


def t_interval(moments: Moments, span: tuple[float, float], *, level: float = LEVEL) -> Interval:
    """Student's t interval of a mean over independent samples, clipped to the metric's range `span`.

    Assumes that the mean is near normal. Cannot be told from fewer than two numbers, nor from numbers that
    are all equal: an interval of no width would claim a certainty that the data cannot give.
    """
    if moments.count < 2:
        return Interval(None, f"cannot tell from {moments.count} scored sample{'s' * (moments.count != 1)}")
    if moments.deviation == 0.0:
        return Interval(None, f"cannot tell: all {moments.count} scores are equal")
    from scipy.special import stdtrit

    quantile = float(stdtrit(moments.count - 1, (1 + level) / 2))
    half = quantile * moments.deviation / math.sqrt(moments.count)
    return Interval((max(span[0], moments.mean - half), min(span[1], moments.mean + half)))
