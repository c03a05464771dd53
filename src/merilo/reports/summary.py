"""From outcomes to aggregates: one pass over a run, nothing collected."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from merilo.metrics.base import Failed, Score, Undefined
from merilo.runs.run import Aggregate
from merilo.stats.intervals import LEVEL, Moments, t_interval

if TYPE_CHECKING:
    from merilo.metrics.base import Metric, Outcome

_REASONS = 5
_DISTINCT_REASONS = 1_000


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

    def add(self, outcome: Outcome) -> None:
        """Take in one outcome."""
        match outcome:
            case Score():
                self.moments.add(outcome.value)
                for name, count in outcome.counts.items():
                    known = self.counts.get(name, 0)
                    self.counts[name] = None if count is None or known is None else known + count
            case Undefined():
                self.undefined += 1
                self._reason(outcome.reason)
            case Failed():
                self.failed += 1
                self._reason(outcome.error.message)

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
            reasons=dict(sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))[:_REASONS]),
            note=interval.note,
        )

    def _bounds(self) -> tuple[float, float] | None:
        total = self.moments.count + self.failed
        if not total:
            return None
        if not self.failed:
            return (self.moments.mean, self.moments.mean)
        share, low, high = self.failed / total, *self.metric.range
        kept = self.moments.mean * (1 - share)
        return (kept + low * share, kept + high * share)

    def _reason(self, reason: str) -> None:
        if reason in self.reasons or len(self.reasons) < _DISTINCT_REASONS:
            self.reasons[reason] += 1
