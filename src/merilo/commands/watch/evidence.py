"""The evidence of a watch: traffic against its reference, answers to anchors, and who changed."""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from merilo.metrics.base import Failed, Score
from merilo.runs.scales import recorded_scale
from merilo.stats.drift import Line, MetricDrift, Unit, daily_deviation, e_bh, evidence_ratio, fell_since, mix_share
from merilo.stats.exchange import Anchor, exchange_value, fall_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from merilo.commands.watch.settings import Watch
    from merilo.metrics.base import Outcome
    from merilo.runs.run import Run
    from merilo.runs.scales import Scale

DAY_S: Final = 86_400.0
YEAR_S: Final = 365.25 * DAY_S
SCORED: Final = "samples with a score"
"""One more metric: the fraction of the metrics that have a score, so that failures cannot hide a drop."""
_POINTS: Final = 5
"""Parts of the limit on false alarms: one for the lines, three for the traffic, one for the judge."""
_LINES: Final = 0.01
"""The largest probability that a line is above the mean of unchanged traffic."""
_ANSWERS: Final = 3
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
    reference: dict[str, dict[str, Line]]
    """Metric → slice → the scores of the reference; the lines of `metrics` grow."""
    false_alarms: float
    asks_anchors: bool
    """True if the judge may change in silence and is asked anchors."""
    can_blame: bool
    """True if anchors, or a judge that cannot change in silence, tell the system from the judge."""
    started: float
    """The time of the last `start`."""
    judge: float = 0.0
    anchors: dict[str, list[list[float | None]]] = field(default_factory=dict[str, "list[list[float | None]]"])
    """Anchor → its answers, one list of scores for each draw; the first three are the old ones."""

    @classmethod
    def of(
        cls,
        reference: Sequence[JudgedUnit],
        names: Sequence[str],
        tolerance: float | None,
        false_alarms: float,
        **more: Any,  # Any: the other fields
    ) -> Self:
        """Return the state after the reference; `tolerance`: None for the wander of its days."""
        error = min(false_alarms / _POINTS, _LINES) / (len(names) + 1)
        found: dict[str, MetricDrift] = {}
        for name in (*names, SCORED):
            days: defaultdict[float, list[float]] = defaultdict(list)
            units: list[Unit] = []
            for at, unit in _found(reference, name, names):
                units.append(unit)
                days[at // DAY_S].append(unit.score)
            wander = daily_deviation([*days.values()]) if tolerance is None or name == SCORED else tolerance
            if len(units) > 1:
                found[name] = MetricDrift.of(units, error=error, tolerance=wander)
        return cls(found, {name: deepcopy(each.lines) for name, each in found.items()}, false_alarms, **more)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:  # Any: JSON
        """Return the object that `asdict` turned into `state`."""
        lines = {name: {key: Line(**line) for key, line in each.items()} for name, each in state["reference"].items()}
        metrics = {name: MetricDrift.from_state(each) for name, each in state["metrics"].items()}
        fields: dict[str, Any] = {**state, "metrics": metrics, "reference": lines}  # Any: fields
        return cls(**fields)

    def weight_at(self, now: float) -> float:
        """Return the weight of a new day: the time since the last one in years; 0 within a day."""
        return 0.0 if now // DAY_S == self.started // DAY_S else max(0.0, now - self.started) / YEAR_S

    def add(self, at: float, weight: float, units: Iterable[JudgedUnit], names: Sequence[str]) -> None:
        """Add the units of a look."""
        if weight:
            self.started = at
            for metric in self.metrics.values():
                metric.start(weight)
        for each in units:
            for name, score in _scores(each, names).items():
                if name in self.metrics and score is not None:
                    failed = score is False
                    self.metrics[name].add(Unit(float(not failed and score), each.slice), failed=failed)

    @property
    def alpha(self) -> float:
        """The part of the false alarms for the mean of all metrics."""
        points = 3 if self.asks_anchors else 4
        return self.false_alarms * points / _POINTS * (2 / 3 if self._has_slices else 1)

    @property
    def _has_slices(self) -> bool:
        return any(metric.slices for metric in self.metrics.values())

    @property
    def value(self) -> float:
        """The evidence that the mean of some metric fell."""
        return fmean(metric.value for metric in self.metrics.values())

    def ratio_of(self, value: float) -> float:
        """Return evidence on a logarithmic scale, at most 1, an alarm."""
        return min(1.0, evidence_ratio(value, self.alpha))

    @property
    def fallen_slices(self) -> list[tuple[str, str]]:
        """Metric and slice of each slice with separate evidence, the clearest first."""
        values = {
            (name, key): each.value for name, metric in self.metrics.items() for key, each in metric.slices.items()
        }
        return e_bh(values, self.alpha / 2) if values else []

    @property
    def alarms(self) -> bool:
        """True if the traffic is no longer that of the reference."""
        return self.value >= 1 / self.alpha or bool(self.fallen_slices)

    @property
    def judge_alarms(self) -> bool:
        """True if the answers to the anchors are no longer those of the reference."""
        return self.judge >= 1 / self.judge_alpha

    @property
    def judge_alpha(self) -> float:
        """The part of the false alarms for the judge."""
        return self.false_alarms / _POINTS

    def answer(self, answers: dict[str, list[list[float | None]]], weight: float, names: Sequence[str]) -> None:
        """Add answers to the anchors, old ones first. Weights are fixed before and sum to at most 1 a year."""
        for id_, own in answers.items():
            self.anchors.setdefault(id_, []).extend([None if each is False else each for each in draw] for draw in own)
        values = [exchange_value(pairs) for name in self.metrics if weight and (pairs := self._pairs(name, names))]
        self.judge += weight * (fmean(values) if values else 0.0)

    def _pairs(self, name: str, names: Sequence[str]) -> list[Anchor]:
        """Return the old answers and the last three new ones of each anchor that has all of them."""
        at = None if name == SCORED else [*names].index(name)
        found: list[Anchor] = []
        for answers in self.anchors.values():
            scores = [fmean(each is not None for each in draw) if at is None else draw[at] for draw in answers]
            new = scores[max(_ANSWERS, len(scores) - _ANSWERS) :]
            both = [round(each * _STEPS) / _STEPS for each in (*scores[:_ANSWERS], *new) if each is not None]
            if new and len(both) == _ANSWERS + len(new):
                found.append(Anchor(tuple(both[:_ANSWERS]), tuple(both[_ANSWERS:])))
        return found

    def conclusion(self, traffic: Sequence[JudgedUnit], names: Sequence[str]) -> dict[str, Any]:  # Any: JSON
        """Return who changed, which metric fell from where to where and since when. `traffic`: since the reference."""
        slices = self.fallen_slices
        worst, key = max(self.metrics, key=lambda name: self.metrics[name].value), ""
        if self.value < 1 / self.alpha and slices:
            worst, key = slices[0]
        lines = self.reference[worst]
        own = [(at, unit) for at, unit in _found(traffic, worst, names) if key in ("", unit.name)]
        days: defaultdict[float, list[float]] = defaultdict(list)
        for at, unit in own:
            days[at // DAY_S].append(unit.score)
        before = lines[key].mean
        day, after = fell_since([(len(each), sum(each)) for each in days.values()], before) if days else (0, before)
        since = [*days][day] * DAY_S if days else self.started
        fall = self._judge_fall(worst, names)
        state = self._blame(before - after, fall, lines, [unit for at, unit in own if at >= since])
        return {
            "state": state.value,
            "metric": worst,
            "before": before,
            "after": after,
            "since": datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d"),
            "anchors": len(self._pairs(worst, names)),
            "judge_fall": fall,
            "slices": [{"metric": name, "slice": key} for name, key in slices],
        }

    def _judge_fall(self, name: str, names: Sequence[str]) -> float | None:
        """Return the upper limit of how much lower the judge's answers to the anchors are; None without answers."""
        ends = fall_limits(pairs).ends if (pairs := self._pairs(name, names)) else None
        return None if ends is None else ends[1]

    def _blame(self, drop: float, judge_fall: float | None, lines: dict[str, Any], since: Sequence[Unit]) -> State:
        if self.judge_alarms:
            return State.JUDGE
        if not self.can_blame or (self.asks_anchors and (judge_fall is None or judge_fall >= drop / 2)):
            return State.CANNOT_TELL
        if self._has_slices and since and mix_share(lines, since)[1] < drop / 2:
            return State.QUESTIONS
        return State.SYSTEM


class JudgedUnit(NamedTuple):
    """The scores of a sample or conversation in the order of the metrics: 0 (worst) to 1 (best), None if undefined,
    False if failed.
    """

    at: float
    unit: str
    slice: str
    scores: list[float | None]


def units_in(run: Run, names: Sequence[str], watch: Watch | None, at: float) -> list[JudgedUnit]:
    """Return the units of a run, in order; `watch`: None if each sample is a unit."""
    scales = [recorded_scale(run.manifest, name) for name in names]
    turns, slices = defaultdict[str, list[list[float | None]]](list), dict[str, str]()
    for each in run.samples:
        record = each.sample.to_record()
        unit = each.sample.id if watch is None else watch.unit_of(record)
        slices.setdefault(unit, "" if watch is None else watch.slice_of(record))
        turns[unit].append([_scaled(each.outcomes[name], scale) for name, scale in zip(names, scales, strict=True)])
    return [JudgedUnit(at, unit, slices[unit], [*map(_mean, zip(*own, strict=True))]) for unit, own in turns.items()]


def _scaled(outcome: Outcome, scale: Scale) -> float | None:
    if not isinstance(outcome, Score):
        return False if isinstance(outcome, Failed) else None
    low, high = scale.span
    share = min(max((outcome.value - low) / (high - low), 0.0), 1.0)
    return share if scale.higher_is_better else 1 - share


def _mean(turns: Sequence[float | None]) -> float | None:
    there = [each for each in turns if each is not None and each is not False]
    return fmean(there) if there else next((each for each in turns if each is False), None)


def _found(units: Sequence[JudgedUnit], name: str, names: Sequence[str]) -> Iterator[tuple[float, Unit]]:
    """Yield time and score of the units that a metric scored."""
    for each in units:
        score = _scores(each, names)[name]
        if score is not None and score is not False:
            yield each.at, Unit(score, each.slice)


def _scores(unit: JudgedUnit, names: Sequence[str]) -> dict[str, float | None]:
    """Return the score of each metric, and the fraction of the metrics that have one."""
    there = [each is not None and each is not False for each in unit.scores]
    return {**dict(zip(names, unit.scores, strict=True)), SCORED: fmean(there)}


def sums_of(units: Sequence[JudgedUnit], names: Sequence[str]) -> dict[str, list[float]]:
    """Return the number of scores of each metric, their sum, and the sum of their squares."""
    found = {name: [unit.score for _, unit in _found(units, name, names)] for name in (*names, SCORED)}
    return {name: [len(own), fsum(own), fsum(each * each for each in own)] for name, own in found.items()}
