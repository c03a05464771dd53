"""Means and ratios of sums of streaming numbers: only the values that their intervals need are stored."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from math import inf, isfinite, sqrt

from merilo.stats.intervals import LEVEL, SEED, Interval, Method, Moments, t_interval, t_quantile, wilson_ends
from merilo.stats.means import (
    MIN_UNITS_FOR_T,
    MIN_UNITS_OFF_END,
    EndCounts,
    MeanEstimate,
    grouped_interval,
    mean_interval,
    ratio_interval,
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
    kept: list[float] = field(default_factory=list[float])
    """All numbers, while there are fewer than 200."""

    def add(self, number: float) -> None:
        """Add one number of the range."""
        self.moments.add(number)
        for place, end in enumerate(self.span):
            self.at[place] += number == end
        # Below MANY the interval is a bootstrap and needs the numbers; from there on moments are enough.
        if self.moments.count < MIN_UNITS_FOR_T:
            self.kept.append(number)
        elif self.kept:
            self.kept.clear()

    def interval(self, *, level: float = LEVEL, seed: int = SEED) -> Interval:
        """Return the interval that `mean_interval` gives for the same numbers, up to rounding."""
        count = self.moments.count
        if count < MIN_UNITS_FOR_T:
            return mean_interval(self.kept, self.span, level=level, seed=seed).interval
        off = count - max(self.at)
        equal = self.moments.deviation == 0
        if (off < MIN_UNITS_OFF_END or equal) and all(map(isfinite, self.span)):
            ends = wilson_ends(self.moments.mean, count, self.span, level=level)
            remark = f"all {count} scores are equal" if equal else ""
            return Interval(ends, remark=remark, method=Method.WILSON, level=level)
        if off >= MIN_UNITS_OFF_END:
            return t_interval(self.moments, self.span, level=level)
        if not off:
            return Interval(None, f"cannot tell: all {count} scores are equal", level=level)
        note = f"cannot tell: only {off} of {count} scores differ from the end of a range without another"
        return Interval(None, note, level=level)


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
    kept: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
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
            self.kept.append((top, bottom))
        elif self.kept:
            self.kept.clear()

    @property
    def value(self) -> float | None:
        """The ratio; None if no sample counts."""
        return self.tops / self.bottoms if self.bottoms else None

    def estimate(self, *, level: float = LEVEL, seed: int = SEED) -> MeanEstimate:
        """Return the estimate that `ratio_interval` gives for the same samples, up to rounding."""
        if self.clusters[0]:
            return self._by_cluster(level)
        if self.count < MIN_UNITS_FOR_T:
            tops, bottoms = [top for top, _ in self.kept], [bottom for _, bottom in self.kept]
            return ratio_interval(tops, bottoms, self.span, level=level, seed=seed)
        value = self.tops / self.bottoms
        above, across, below = self.squares
        # The sum of (top - value · bottom)², expanded; rounding can make it slightly negative.
        spread = max(above - 2 * value * across + value * value * below, 0.0)
        error = sqrt(self.count / (self.count - 1) * spread) / self.bottoms
        equal = self.extremes[1] - self.extremes[0] <= _NEAR
        if equal or self.count - max(self.at) < MIN_UNITS_OFF_END:
            ends = wilson_ends(value, self.bottoms**2 / below, self.span, level=level)
            remark = f"all {self.count} scores are equal" if equal else ""
            found = Interval(ends, remark=remark, method=Method.WILSON, level=level)
            kept = (None, None) if equal else (error, self.count - 1)
            return MeanEstimate(value, found, self.count, None, *kept)
        half = t_quantile(self.count - 1, level) * error
        ends = (max(self.span[0], value - half), min(self.span[1], value + half))
        interval = Interval(ends, method=Method.STUDENT, level=level)
        return MeanEstimate(value, interval, self.count, None, error, self.count - 1)

    def _by_cluster(self, level: float) -> MeanEstimate:
        import numpy as np

        tops, bottoms = (np.array(sums) for sums in self.clusters)
        units = Sums(tops[bottoms > 0], bottoms[bottoms > 0])
        if self.count < 2:
            note = f"cannot tell from {self.count} scored sample{'s' * (self.count != 1)}"
            return MeanEstimate(self.value, Interval(None, note, level=level), self.count, units.count)
        at = max(self.at)
        inner = EndCounts(off=self.count - at, at=at, between=self.count - sum(self.at))
        interval = grouped_interval(units, inner, self.span, level=level)
        spread = units.spread if units.count > 1 else None
        error, freedom = (None, None) if spread is None else (spread.error, spread.freedom)
        return MeanEstimate(self.value, interval, self.count, units.count, error, freedom)
