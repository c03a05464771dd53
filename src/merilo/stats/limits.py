"""Limits of a mean: on each side the farther one of Student's t and of an exact limit (design/statistics.md)."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from merilo.stats.distributions import t_cdf
from merilo.stats.exact_limits import exact_limits, exact_p
from merilo.stats.intervals import t_quantile

if TYPE_CHECKING:
    from merilo.stats.histogram import Points
    from merilo.stats.sums import Spread

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
            ends.append(exact_limits(self.points, self.span, self._worth(level), exact_level or level))
        if self.spread is not None:
            half = t_quantile(self.spread.freedom, level) * self.spread.error
            ends.append((self.spread.value - half, self.spread.value + half))
        return max(low, min(end for end, _ in ends)), min(high, max(end for _, end in ends))

    def p(self, level: float) -> float:
        """Return the p-value of a mean of 0: at most 1 - level if, and only if, 0 is outside the limits."""
        found = exact_p(self.points, self.span, self._worth(level)) if self.finite else 0.0
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
