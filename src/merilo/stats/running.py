"""Means and ratios of sums of streaming numbers: only the values that their intervals need are stored."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from math import inf, sqrt

from merilo.stats.intervals import LEVEL, SEED, Interval, Moments
from merilo.stats.means import (
    MIN_UNITS_FOR_T,
    EndCounts,
    MeanEstimate,
    SummedUnits,
    grouped_interval,
    mean_interval,
    ratio_interval,
    without_resamples,
)
from merilo.stats.sums import Sums

_NEAR = 1e-12


@dataclass(slots=True)
class RunningMean:
    """A mean of streaming numbers in a range; stores at most 200 of them."""

    span: tuple[float, float]
    moments: Moments = field(default_factory=Moments)
    at: list[int] = field(default_factory=lambda: [0, 0])
    """Counts of the numbers at the lower and at the higher end of the range."""
    stored: list[float] = field(default_factory=list[float])
    """All numbers, while there are fewer than 200."""

    def add(self, number: float) -> None:
        """Add one number of the range."""
        self.moments.add(number)
        for place, end in enumerate(self.span):
            self.at[place] += number == end
        # Below MANY the interval is a bootstrap and needs the numbers; from there on moments are enough.
        if self.moments.count < MIN_UNITS_FOR_T:
            self.stored.append(number)
        elif self.stored:
            self.stored.clear()

    def interval(self, *, level: float = LEVEL, seed: int = SEED) -> Interval:
        """Return the interval that `mean_interval` gives for the same numbers, up to rounding."""
        if self.count < MIN_UNITS_FOR_T:
            return mean_interval(self.stored, self.span, level=level, seed=seed).interval
        return _from_sums(self, self.at, self.span, equal=self.moments.deviation == 0, level=level)

    @property
    def count(self) -> int:
        """The number of numbers."""
        return self.moments.count

    @property
    def value(self) -> float:
        """Their mean; 0.0 without any."""
        return self.moments.mean

    @property
    def effective(self) -> float:
        """The number of numbers, because all have one weight."""
        return self.moments.count

    def margin(self, quantile: float) -> float:
        """Return the standard error of the mean times this quantile."""
        return quantile * self.moments.deviation / sqrt(self.moments.count)


@dataclass(slots=True)
class RunningRatio:
    """A ratio of sums over streaming samples, such as relevant contexts to all contexts; a mean has bottoms of 1.

    Stores at most 200 samples, and two numbers for each cluster. Either all samples are in clusters or none is. Each
    sample's own ratio must be in `span`, whose ends are finite unless there are clusters.
    """

    span: tuple[float, float]
    count: int = 0
    """Samples that count: those whose bottom is not 0."""
    tops: float = 0.0
    bottoms: float = 0.0
    squares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Sums of top², top · bottom and bottom²."""
    at: list[int] = field(default_factory=lambda: [0, 0])
    """Counts of the samples whose ratio is at the lower and at the higher end of the range."""
    extremes: tuple[float, float] = (inf, -inf)
    """The lowest and the highest of the samples' ratios."""
    stored: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """All samples, while there are fewer than 200 and no clusters."""
    clusters: tuple[array[float], array[float]] = field(default_factory=lambda: (array("d"), array("d")))
    """The sums of tops and of bottoms by the cluster's number."""

    def add(self, top: float, bottom: float, cluster: int | None = None) -> None:
        """Add one sample, in the cluster with this number (from 0) if any."""
        if not bottom:
            return
        self.count += 1
        self.tops += top
        self.bottoms += bottom
        for place, end in enumerate(self.span):
            self.at[place] += top == end * bottom
        if cluster is not None:
            for sums, part in zip(self.clusters, (top, bottom), strict=True):
                if cluster >= len(sums):
                    sums.extend([0.0] * (cluster + 1 - len(sums)))
                sums[cluster] += part
            return
        ratio = top / bottom
        self.extremes = (min(self.extremes[0], ratio), max(self.extremes[1], ratio))
        above, across, below = self.squares
        self.squares = (above + top * top, across + top * bottom, below + bottom * bottom)
        if self.count < MIN_UNITS_FOR_T:
            self.stored.append((top, bottom))
        elif self.stored:
            self.stored.clear()

    @property
    def value(self) -> float | None:
        """The ratio; None if no sample counts."""
        return self.tops / self.bottoms if self.bottoms else None

    def estimate(self, *, level: float = LEVEL, seed: int = SEED) -> MeanEstimate:
        """Return the estimate that `ratio_interval` gives for the same samples, up to rounding."""
        if self.clusters[0]:
            return self._by_cluster(level)
        if self.count < MIN_UNITS_FOR_T:
            tops, bottoms = [top for top, _ in self.stored], [bottom for _, bottom in self.stored]
            return ratio_interval(tops, bottoms, self.span, level=level, seed=seed)
        equal = self.extremes[1] - self.extremes[0] <= _NEAR
        sums = self._sums()
        interval = _from_sums(sums, self.at, self.span, equal=equal, level=level)
        error, freedom = (None, None) if equal else (sums.error, sums.count - 1)
        return MeanEstimate(sums.value, interval, self.count, None, error, freedom)

    def _sums(self) -> _RatioSums:
        value = self.tops / self.bottoms
        above, across, below = self.squares
        # The sum of (top - value · bottom)², expanded; rounding can make it slightly negative.
        spread = max(above - 2 * value * across + value * value * below, 0.0)
        error = sqrt(self.count / (self.count - 1) * spread) / self.bottoms
        return _RatioSums(self.count, value, self.bottoms**2 / below, error)

    def _by_cluster(self, level: float) -> MeanEstimate:
        import numpy as np

        tops, bottoms = (np.array(sums) for sums in self.clusters)
        units = Sums(tops[bottoms > 0], bottoms[bottoms > 0])
        if self.count < 2:
            note = f"cannot tell from {self.count} scored sample{'s' * (self.count != 1)}"
            return MeanEstimate(self.value, Interval(None, note, level=level), self.count, units.count)
        interval = grouped_interval(units, _end_counts(self.count, self.at), self.span, level=level)
        spread = units.spread if units.count > 1 else None
        error, freedom = (None, None) if spread is None else (spread.error, spread.freedom)
        return MeanEstimate(self.value, interval, self.count, units.count, error, freedom)


@dataclass(frozen=True, slots=True)
class _RatioSums:
    """A ratio over independent samples, from their running sums."""

    count: int
    value: float
    effective: float
    error: float

    def margin(self, quantile: float) -> float:
        """Return the standard error times this quantile."""
        return quantile * self.error


def _end_counts(count: int, at: list[int]) -> EndCounts:
    return EndCounts(off=count - max(at), at=max(at), between=count - sum(at))


def _from_sums(units: SummedUnits, at: list[int], span: tuple[float, float], *, equal: bool, level: float) -> Interval:
    """Return the interval of at least MIN_UNITS_FOR_T units, from their sums."""
    interval = without_resamples(units, _end_counts(units.count, at), span, equal=equal, level=level)
    if interval is None:
        raise ValueError(f"{units.count} units are too few for an interval from their sums.")
    return interval
