"""From outcomes to aggregates: one pass over a run, nothing collected."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

from merilo.metrics.base import Failed, Score, Undefined
from merilo.runs.run import Aggregate
from merilo.stats.intervals import LEVEL, Moments, t_interval

if TYPE_CHECKING:
    from merilo.metrics.base import Metric, Outcome

_SHOWN = 5
_DISTINCT = 1_000


@dataclass(slots=True)
class Tally:
    """One metric's outcomes as they stream by."""

    metric: Metric
    text: str
    moments: Moments = field(default_factory=Moments)
    undefined: int = 0
    failed: int = 0
    counts: dict[str, int | None] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    flagged: int = 0
    flags: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Take in one outcome."""
        match outcome:
            case Score():
                self.moments.add(outcome.value)
                self.flagged += bool(outcome.flags)
                for flag in dict.fromkeys(outcome.flags):
                    _count(self.flags, flag)
                for name, count in outcome.counts.items():
                    known = self.counts.get(name, 0)
                    self.counts[name] = None if count is None or known is None else known + count
            case Undefined():
                self.undefined += 1
                _count(self.reasons, outcome.reason)
            case Failed():
                self.failed += 1
                _count(self.reasons, outcome.error.message)

    def aggregate(self) -> Aggregate:
        """The aggregate of what was taken in."""
        interval = t_interval(self.moments, self.metric.range)
        scored = self.moments.count
        return Aggregate(
            metric=self.text,
            mean=self.moments.mean if scored else None,
            interval=interval.ends,
            level=LEVEL,
            bounds=self._bounds(),
            scored=scored,
            undefined=self.undefined,
            failed=self.failed,
            counts=dict(self.counts),
            reasons=_most_frequent(self.reasons),
            note=interval.note,
            flagged=self.flagged,
            flags=_most_frequent(self.flags),
        )

    def _bounds(self) -> tuple[float | None, float | None] | None:
        total = self.moments.count + self.failed
        if not total:
            return None
        if not self.failed:
            return (self.moments.mean, self.moments.mean)
        share, (low, high) = self.failed / total, self.metric.range
        kept = self.moments.mean * (1 - share)
        worst, best = kept + low * share, kept + high * share
        return (worst if isfinite(worst) else None, best if isfinite(best) else None)


def _count(counter: Counter[str], phrase: str) -> None:
    if phrase in counter or len(counter) < _DISTINCT:
        counter[phrase] += 1


def _most_frequent(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN])
