"""From outcomes to aggregates: one pass over a run; nothing is collected but the values that a composite combines."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from math import fsum, isfinite
from typing import TYPE_CHECKING

from merilo.judging.digests import digest_of
from merilo.metrics.base import Failed, Score, Undefined
from merilo.runs.run import Aggregate
from merilo.stats.bootstrap import percentile_interval
from merilo.stats.intervals import LEVEL, Interval, Moments, t_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.metrics.base import Composite, Metric, Outcome

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


def composite_seed(fingerprint: str, text: str) -> int:
    """A number that the data and the composite decide, so that its interval is the same each time."""
    return int.from_bytes(digest_of(fingerprint.encode(), text.encode())[:8], "little")


@dataclass(slots=True)
class CompositeTally:
    """What a composite combines, as it streams by; holds one number for each sample and part."""

    composite: Composite
    text: str
    parts: tuple[str, ...]
    seed: int
    columns: tuple[array[float], ...] = field(init=False)
    lacking: Counter[str] = field(default_factory=Counter)
    undefined: int = 0
    failed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.columns = tuple(array("d") for _ in self.parts)

    def add(self, outcomes: Mapping[str, Outcome]) -> None:
        """Take in the outcomes of one sample, by the metric's text."""
        own = [outcomes[part] for part in self.parts]
        values = [outcome.value for outcome in own if isinstance(outcome, Score)]
        if len(values) == len(own):
            for column, value in zip(self.columns, values, strict=True):
                column.append(value)
            return
        missing = {part: each for part, each in zip(self.parts, own, strict=True) if not isinstance(each, Score)}
        self.lacking.update(missing.keys())
        failed = any(isinstance(outcome, Failed) for outcome in missing.values())
        self.failed += failed
        self.undefined += not failed
        part, outcome = next((p, o) for p, o in missing.items() if isinstance(o, Failed) == failed)
        _count(self.reasons, f"{part} {_why(outcome)}")

    def aggregate(self) -> Aggregate:
        """The aggregate of what was taken in: no value where any sample lacks a part."""
        scored = len(self.columns[0]) if self.columns else 0
        mean, interval = None, Interval(None, "")
        if not self.lacking and scored:
            mean = self._combined([fsum(column) / scored for column in self.columns])
        if mean is not None:
            interval = percentile_interval(self.columns, self._combined, seed=self.seed)
        return Aggregate(
            metric=self.text,
            mean=mean,
            interval=interval.ends,
            level=LEVEL,
            bounds=None if mean is None else (mean, mean),
            scored=scored,
            undefined=self.undefined,
            failed=self.failed,
            reasons=_most_frequent(self.reasons),
            note=interval.note if mean is not None else self._note(scored),
            parts=self.parts,
        )

    def _combined(self, means: Sequence[float]) -> float | None:
        """The composite's value; None also where it is infinite or a division by zero."""
        try:
            value = self.composite.combine(means)
        except ArithmeticError:
            return None
        return value if value is not None and isfinite(value) else None

    def _note(self, scored: int) -> str:
        """Why there is no value."""
        if self.lacking:
            counted = "; ".join(f"{count:,} without {part}" for part, count in sorted(self.lacking.items()))
            return f"no value, because it is made of means over all samples and not every sample is scored: {counted}"
        return "no value, because the means of its parts give none" if scored else "no value without a sample"


def _why(outcome: Outcome) -> str:
    match outcome:
        case Undefined():
            return f"undefined: {outcome.reason}"
        case Failed():
            return f"failed: {outcome.error.message}"
        case Score():
            return "scored"


def _count(counter: Counter[str], phrase: str) -> None:
    if phrase in counter or len(counter) < _DISTINCT:
        counter[phrase] += 1


def _most_frequent(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN])
