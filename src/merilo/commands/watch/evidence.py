"""The evidence of a watch: traffic against its reference, answers to anchors, and who changed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from merilo.metrics.base import Failed, Outcome, Score
from merilo.runs.run_metrics import Scale, recorded_scale
from merilo.stats.drift import (
    Anchor,
    Losses,
    MetricDrift,
    Unit,
    e_bh,
    evidence_ratio,
    exchange_value,
    fall_limits,
    fell_since,
    mix_share,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from merilo.commands.watch.settings import Watch
    from merilo.runs.run import Run

DAY_S: Final = 86_400.0
YEAR_S: Final = 365.25 * DAY_S
SCORED: Final = "samples with a score"
"""The fraction of the metrics that have a score: separate evidence, so that failures cannot hide a drop."""
_POINTS: Final = 5
"""Parts of the limit on false alarms: one for samples without a score, three for the traffic, one for the judge."""
_LINES: Final = 0.01
"""The largest probability that a line of single units is above the mean of unchanged traffic."""
_ANSWERS: Final = 3
Scores = dict[str, float]
"""Metric → score from 0 (worst) to 1 (best); without metrics that are undefined or failed."""
_MIX_LEVEL: Final = 0.9
_STEPS: Final = 20
"""Answers to anchors are rounded to 1 / 20."""


class State(StrEnum):
    """What a watch reports."""

    NOTHING = "nothing changed"
    SYSTEM = "your system changed"
    QUESTIONS = "your questions changed"
    JUDGE = "your judge changed"
    CANNOT_TELL = "cannot tell"
    LEARNING = "learning"


@dataclass(slots=True)
class Evidence:
    """What is known since the reference was fixed. `asdict` gives plain JSON."""

    metrics: dict[str, MetricDrift]
    losses: Losses
    """Samples without a score."""
    false_alarms: float
    asks_anchors: bool
    """True if the judge may change in silence and is asked anchors."""
    can_blame: bool
    """True if anchors, or a judge that cannot change in silence, tell the system from the judge."""
    started: float
    """The time of the last `start`."""
    looked: float = 0.0
    """The time of the last look."""
    judge: float = 0.0
    anchors: dict[str, list[Scores]] = field(default_factory=dict[str, "list[Scores]"])
    """Anchor → the three old draws of its answers, then the last three new ones."""

    @classmethod
    def of(
        cls,
        reference: Sequence[JudgedUnit],
        tolerance: float | None,
        false_alarms: float,
        lost: Mapping[float, Sequence[float]] | None = None,
        **more: Any,  # Any: the other fields
    ) -> Self:
        """Return the state after the reference; `tolerance`: as in `MetricDrift.of`.

        `lost`: number of a day → the fractions of metrics without a score of units that were not learned.
        """
        names = sorted({name for each in reference for name in each.scores} - {SCORED})
        days = defaultdict[float, "list[JudgedUnit]"](list)
        for each in sorted(reference, key=lambda each: each.at):
            days[each.at // DAY_S].append(each)
        found: dict[str, MetricDrift] = {}
        for name in names:
            units = {day: [unit for each in own for unit in each.units(name)] for day, own in days.items()}
            error = min(false_alarms / _POINTS, _LINES) / len(names)
            found[name] = MetricDrift.of(units, error=error, tolerance=tolerance)
        losses = {day: [1 - each.scores[SCORED] for each in own] for day, own in days.items()}
        for day, own in (lost or {}).items():
            losses[day] = [*losses.get(day, ()), *own]
        return cls(found, Losses.of([*losses.values()]), false_alarms, **more)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:  # Any: JSON
        """Return the object that `asdict` turned into `state`."""
        metrics = {name: MetricDrift.from_state(each) for name, each in state["metrics"].items()}
        fields: dict[str, Any] = {**state, "metrics": metrics, "losses": Losses(**state["losses"])}  # Any: fields
        return cls(**fields)

    def weight_at(self, now: float) -> float:
        """Return the weight of a new day: the time since the last one in years; 0 within a day."""
        return 0.0 if now // DAY_S == self.started // DAY_S else max(0.0, now - self.started) / YEAR_S

    def add(self, at: float, weight: float, units: Iterable[JudgedUnit]) -> None:
        """Add the units of a look; with a weight, the first one of a day, the last day is closed before."""
        if weight:
            for metric in self.metrics.values():
                metric.start(self.started // DAY_S, weight)
            self.losses.close(weight)
            self.started = at
        before, days = [metric.units_before for metric in self.metrics.values()], (at - self.looked) / DAY_S
        self.looked = at
        for each in units:
            for name, metric in self.metrics.items():
                for unit in each.units(name):
                    metric.add(unit)
            self.losses.add(1 - each.scores[SCORED])
        for metric, most in zip(self.metrics.values(), before, strict=True):
            metric.limit_units(most, days)

    @property
    def alpha(self) -> float:
        """The part of the false alarms for the mean of all metrics; slices have half as much in addition."""
        sliced = any(len(metric.days) > 1 for metric in self.metrics.values())
        return self.false_alarms * (3 if self.asks_anchors else 4) / _POINTS * (2 / 3 if sliced else 1)

    @property
    def value(self) -> float:
        """The evidence that the mean of some metric fell."""
        return fmean(metric.value for metric in self.metrics.values())

    @property
    def ratio(self) -> float:
        """The evidence on a logarithmic scale, 1 at an alarm."""
        return 1.0 if self.alarms else max(self.ratio_of(self.value), self.losses_ratio)

    def ratio_of(self, value: float) -> float:
        """Return evidence on a logarithmic scale, at most 1, an alarm."""
        return min(1.0, evidence_ratio(value, self.alpha))

    @property
    def losses_ratio(self) -> float:
        """The evidence of samples without a score on this scale."""
        return min(1.0, evidence_ratio(self.losses.evidence, self.judge_alpha))

    @property
    def fallen_slices(self) -> list[tuple[str, str]]:
        """Metric and slice of each slice with separate evidence, the clearest first."""
        found = {
            (name, key): each.value for name, metric in self.metrics.items() for key, each in metric.days.items() if key
        }
        return e_bh(found, self.alpha / 2) if found else []

    @property
    def alarms(self) -> bool:
        """True if the traffic is no longer that of the reference."""
        return self.value >= 1 / self.alpha or self.loses or bool(self.fallen_slices)

    @property
    def loses(self) -> bool:
        """True if more samples have no score than in the reference."""
        return self.losses.evidence >= 1 / self.judge_alpha

    @property
    def judge_alpha(self) -> float:
        """The part of the false alarms for the judge, and for samples without a score: an alarm at 1 / this."""
        return self.false_alarms / _POINTS

    def answer(self, answers: dict[str, list[Scores]], weight: float) -> None:
        """Add answers to the anchors, old ones first. Weights are fixed before and sum to at most 1 a year."""
        for id_, draws in answers.items():
            own = [*self.anchors.get(id_, ()), *draws]
            self.anchors[id_] = own[:_ANSWERS] + own[_ANSWERS:][-_ANSWERS:]
        values = [exchange_value(pairs) for name in self.metrics if weight and (pairs := self._pairs(name))]
        self.judge += weight * (fmean(values) if values else 0.0)

    def _pairs(self, name: str) -> list[Anchor]:
        """Return the old and the new answers of each anchor that has all of them."""
        found: list[Anchor] = []
        for draws in self.anchors.values():
            own = tuple(round(draw[name] * _STEPS) / _STEPS for draw in draws if name in draw)
            if _ANSWERS < len(own) == len(draws):
                found.append(Anchor(own[:_ANSWERS], own[_ANSWERS:]))
        return found

    def conclusion(self, traffic: Sequence[JudgedUnit]) -> dict[str, Any]:  # Any: JSON
        """Return who changed, which metric fell from where to where and since when. `traffic`: since the reference."""
        slices = self.fallen_slices
        worst, key = max(self.metrics, key=lambda name: self.metrics[name].value), ""
        if self.value < 1 / self.alpha and slices:
            worst, key = slices[0]
        metric = self.metrics[worst]
        lines, before = metric.days, metric.days[key].mean
        if self.loses:
            worst, key, lines, before = SCORED, "", {}, self.losses.mean
        own = [each for each in traffic if worst in each.scores and key in ("", each.slice)]
        days = _by_day(own, worst)
        day, after = fell_since([(len(each), sum(each)) for each in days.values()], before) if days else (0, before)
        since, pairs = [*days][day] * DAY_S if days else self.started, self._pairs(worst)
        fallen = [Unit(each.scores[worst], each.slice) for each in own if each.at >= since]
        ends, half, other = fall_limits(pairs).ends if pairs else None, (before - after) / 2, "judge"
        state = State.SYSTEM
        lost = [1 - each.scores[worst] for each in own if each.at >= since] if self.loses else []
        failed = fsum(len(each.failed) for each in own if each.at >= since) / max(len(self.metrics), 1)
        if self.judge >= 1 / self.judge_alpha or (lost and 2 * failed > fsum(lost)):
            state = State.JUDGE
        elif not self.can_blame or (self.asks_anchors and (ends is None or ends[1] >= half)):
            state = State.CANNOT_TELL
        elif len(lines) > 1 and not key:
            low, high = mix_share(lines, fallen, level=_MIX_LEVEL)
            state = State.QUESTIONS if high < half else State.SYSTEM if low > half else State.CANNOT_TELL
            other = "questions"
        return {
            "state": state.value,
            "between": ["system", other] if state == State.CANNOT_TELL else [],
            "metric": worst,
            "slice": key,
            "before": before,
            "after": after,
            "since": datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d"),
            "anchors": 0 if self.loses else len(pairs),
            "slices": [{"metric": name, "slice": key} for name, key in slices],
        }


class JudgedUnit(NamedTuple):
    """A sample or conversation."""

    at: float
    slice: str
    scores: Scores
    failed: frozenset[str]
    """The metrics that failed for all of its samples that they are defined for."""

    def units(self, name: str) -> list[Unit]:
        """Return the unit of a metric, if the metric is defined for it."""
        failed = name in self.failed
        return [Unit(self.scores.get(name, 0.0), self.slice, failed)] if failed or name in self.scores else []


def units_in(run: Run, names: Sequence[str], at: float, watch: Watch | None = None) -> dict[str, JudgedUnit]:
    """Return the units of a run by their key, in order; without `watch` each sample is a unit."""
    scales = {name: recorded_scale(run.manifest, name) for name in names}
    turns, slices = defaultdict[str, "list[Mapping[str, Outcome]]"](list), dict[str, str]()
    for each in run.samples:
        record = each.sample.to_record()
        unit = each.sample.id if watch is None else watch.unit_of(record)
        slices.setdefault(unit, "" if watch is None else watch.slice_of(record))
        turns[unit].append(each.outcomes)
    units: dict[str, JudgedUnit] = {}
    for unit, own in turns.items():
        values = {
            name: [_share(found.value, scale) for turn in own if isinstance(found := turn[name], Score)]
            for name, scale in scales.items()
        }
        scores = {name: fmean(each) for name, each in values.items() if each}
        failed = {name for name in names if name not in scores and any(isinstance(turn[name], Failed) for turn in own)}
        scores[SCORED] = len(scores) / len(names)
        units[unit] = JudgedUnit(at, slices[unit], scores, frozenset(failed))
    return units


def _share(value: float, scale: Scale) -> float:
    low, high = scale.span
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    return share if scale.higher_is_better else 1 - share


def _by_day(units: Iterable[JudgedUnit], name: str) -> dict[float, list[float]]:
    """Return the scores of a metric on each day."""
    found: defaultdict[float, list[float]] = defaultdict(list)
    for each in units:
        if name in each.scores:
            found[each.at // DAY_S].append(each.scores[name])
    return found


def sums_of(units: Sequence[JudgedUnit], names: Iterable[str]) -> dict[str, list[float]]:
    """Return the number of scores of each metric, their sum, and the sum of their squares."""
    found = {name: [each.scores[name] for each in units if name in each.scores] for name in (*names, SCORED)}
    return {name: [len(own), fsum(own), fsum(each * each for each in own)] for name, own in found.items()}
