"""The mean of numbers that stream by: no more is kept than its interval needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

from merilo.stats.intervals import LEVEL, SEED, Interval, Method, Moments, t_interval, wilson_ends
from merilo.stats.means import FEW_OFF, MANY, mean_interval


@dataclass(slots=True)
class RunningMean:
    """Numbers in a range as they stream by; holds at most 200 of them."""

    span: tuple[float, float]
    moments: Moments = field(default_factory=Moments)
    at: list[int] = field(default_factory=lambda: [0, 0])
    """How many numbers lay at the lower and at the higher end of the range."""
    kept: list[float] = field(default_factory=list[float])
    """All numbers, while they are fewer than 200."""

    def add(self, number: float) -> None:
        """Take in one number of the range."""
        self.moments.add(number)
        for place, end in enumerate(self.span):
            self.at[place] += number == end
        if self.moments.count < MANY:
            self.kept.append(number)
        elif self.kept:
            self.kept.clear()

    def interval(self, *, level: float = LEVEL, seed: int = SEED) -> Interval:
        """The interval that `mean_interval` gives for the same numbers, up to rounding."""
        count = self.moments.count
        if count < MANY:
            return mean_interval(self.kept, self.span, level=level, seed=seed).interval
        off = count - max(self.at)
        equal = self.moments.deviation == 0
        if (off < FEW_OFF or equal) and all(map(isfinite, self.span)):
            ends = wilson_ends(self.moments.mean, count, self.span, level=level)
            remark = f"all {count} scores are equal" if equal else ""
            return Interval(ends, remark=remark, method=Method.WILSON, level=level)
        if off >= FEW_OFF:
            return t_interval(self.moments, self.span, level=level)
        if not off:
            return Interval(None, f"cannot tell: all {count} scores are equal", level=level)
        note = f"cannot tell: only {off} of {count} scores differ from the end of a range without another"
        return Interval(None, note, level=level)
