"""Means and ratios of sums of streaming numbers, in bounded memory: two numbers for each cluster."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from math import sqrt

from merilo.stats.intervals import LEVEL, Interval
from merilo.stats.limits import Summarised
from merilo.stats.means import MeanEstimate, interval_of, too_few
from merilo.stats.sums import Histogram, Spread, Sums


@dataclass(slots=True)
class RunningMean:
    """A mean of streaming numbers in a range, by Welford's method (as in Knuth, TAOCP 2, 4.2.2)."""

    span: tuple[float, float]
    count: int = 0
    value: float = 0.0
    """The mean; 0.0 without a number."""
    squares: float = 0.0
    """Sum of squared deviations from the mean."""
    histogram: Histogram = field(init=False)

    def __post_init__(self) -> None:
        self.histogram = Histogram(self.span)

    def add(self, number: float) -> None:
        """Add one number of the range."""
        self.count += 1
        step = number - self.value
        self.value += step / self.count
        self.squares += step * (number - self.value)
        self.histogram.add(number)

    def interval(self, *, level: float = LEVEL) -> Interval:
        """Return the interval that `mean_interval` gives for the same numbers, up to rounding."""
        count = self.count
        if count < 2:
            return too_few(count, level)
        points, deviation = self.histogram.points(), sqrt(self.squares / (count - 1))
        spread = None if points.equal else Spread(self.value, deviation / sqrt(count), count - 1)
        return interval_of(Summarised(points, self.span, count, count, spread), count, level, None)


@dataclass(slots=True)
class RunningRatio:
    """A ratio of sums over streaming samples, such as relevant contexts to all contexts; a mean has bottoms of 1.

    Either all samples are in clusters or none is. Each sample's own ratio must be in `span`.
    """

    span: tuple[float, float]
    count: int = 0
    """Samples that count: those whose bottom is not 0."""
    tops: float = 0.0
    bottoms: float = 0.0
    squares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Sums of top², top · bottom and bottom²."""
    histogram: Histogram = field(init=False)
    clusters: tuple[array[float], array[float]] = field(default_factory=lambda: (array("d"), array("d")))
    """The sums of tops and of bottoms by the cluster's number."""

    def __post_init__(self) -> None:
        self.histogram = Histogram(self.span)

    def add(self, top: float, bottom: float, cluster: int | None = None) -> None:
        """Add one sample, in the cluster with this number (from 0) if any."""
        if not bottom:
            return
        self.count += 1
        self.tops += top
        self.bottoms += bottom
        above, across, below = self.squares
        self.squares = (above + top * top, across + top * bottom, below + bottom * bottom)
        self.histogram.add(top / bottom, bottom)
        if cluster is not None:
            for sums, part in zip(self.clusters, (top, bottom), strict=True):
                if cluster >= len(sums):
                    sums.extend([0.0] * (cluster + 1 - len(sums)))
                sums[cluster] += part

    @property
    def value(self) -> float | None:
        """The ratio; None if no sample counts."""
        return self.tops / self.bottoms if self.bottoms else None

    def estimate(self, *, level: float = LEVEL) -> MeanEstimate:
        """Return the estimate that `ratio_interval` gives for the same samples, up to rounding."""
        clusters = self._clusters() if self.clusters[0] else None
        many = None if clusters is None else clusters.count
        if self.count < 2:
            return MeanEstimate(self.value, too_few(self.count, level), self.count, many)
        points, rows = self.histogram.points(), self.bottoms**2 / self.squares[2]
        if clusters is None:
            units, spread = rows, None if points.equal else self._linearised()
        else:
            units = clusters.effective
            spread = None if clusters.count < 2 or clusters.equal else clusters.spread
        varied = None if clusters is None else clusters.varied
        interval = interval_of(Summarised(points, self.span, rows, units, spread, varied), self.count, level, clusters)
        error, freedom = (None, None) if spread is None else (spread.error, spread.freedom)
        return MeanEstimate(self.value, interval, self.count, many, error, freedom)

    def _linearised(self) -> Spread:
        value = self.tops / self.bottoms
        above, across, below = self.squares
        # The sum of (top - value · bottom)², expanded; rounding can make it slightly negative.
        spread = max(above - 2 * value * across + value * value * below, 0.0)
        return Spread(value, sqrt(self.count / (self.count - 1) * spread) / self.bottoms, self.count - 1)

    def _clusters(self) -> Sums:
        import numpy as np

        tops, bottoms = (np.array(sums) for sums in self.clusters)
        return Sums(tops[bottoms > 0], bottoms[bottoms > 0])
