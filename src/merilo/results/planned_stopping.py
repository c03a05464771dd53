"""Early stopping at planned looks (`--until` with `--baseline` or `--cluster`).

Samples, or whole clusters, are evaluated in a random order that depends on their names and a seed. After 40, 80,
160, ... and all of them, each gate decides by the limits of `merilo gate` at the level of that look
(`merilo.stats.planned`). Outcomes are processed in the random order, whichever reply arrives first, and the outcomes
of the baseline are stored in the manifest. So a resumed or replayed run stops at the same look.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from merilo.errors import UsageError
from merilo.metrics.base import Failed, Score
from merilo.results.aggregates import with_estimate
from merilo.results.early_stopping import EarlyStop, after_stopping
from merilo.runs.metric_names import resolve_metric
from merilo.runs.scales import check_asked
from merilo.stats.column import Column, Missing
from merilo.stats.compare import Policy
from merilo.stats.gate import GateVerdict
from merilo.stats.means import mean_interval
from merilo.stats.planned import Look, Looked, Looks, planned_drop, planned_minimum

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.metrics.base import Metric, Outcome
    from merilo.results.scores import RunScores
    from merilo.runs.manifest import Aggregate, Manifest
    from merilo.runs.outcomes import Result

PLANNED_NOTE = (
    "Gates decide at planned looks only, by one-sided limits whose levels keep all looks together at the level asked "
    "for. Intervals have the level of the last look."
)
_BETWEEN = "cannot tell between two planned looks of a run that could stop early"


@dataclass(frozen=True, slots=True)
class PlannedStop:
    """The gates that end a run at the first planned look at which all of them have been decided."""

    minimums: Mapping[str, float]
    drops: Mapping[str, float]
    """Full metric text → largest allowed drop against the baseline."""
    strict: bool
    level: float
    """Confidence of each one-sided limit, valid over all looks together."""
    undefined: Policy | None
    seed: int
    cluster: str | None
    """Field whose equal values form one cluster; None if samples are taken singly."""
    looks: Looks
    baseline: Mapping[str, tuple[float | Missing, ...]]
    """Full metric text → the baseline's outcome of each sample, in the order of the run."""

    def record(self) -> dict[str, object]:
        """Return the record that the manifest stores."""
        return {
            "minimums": dict(self.minimums),
            "level": self.level,
            "undefined": self.undefined,
            "seed": self.seed,
            "drops": dict(self.drops),
            "strict": self.strict,
            "cluster": self.cluster,
            "looks": list(self.looks.units),
            "sizes": list(self.looks.sizes),
            "baseline": {
                text: [each.value if isinstance(each, Missing) else each for each in outcomes]
                for text, outcomes in self.baseline.items()
            },
        }

    @classmethod
    def of_record(cls, record: Mapping[str, object]) -> PlannedStop:
        """Return the object that `record` wrote into a manifest."""
        known = cast("dict[str, Any]", record)  # Any: JSON that `record` made
        policy = known["undefined"]
        return cls(
            minimums=known["minimums"],
            drops=known["drops"],
            strict=known["strict"],
            level=known["level"],
            undefined=None if policy is None else Policy(policy),
            seed=known["seed"],
            cluster=known["cluster"],
            looks=Looks(tuple(known["looks"]), tuple(known["sizes"])),
            baseline={
                text: tuple(Missing(each) if isinstance(each, str) else each for each in outcomes)
                for text, outcomes in known["baseline"].items()
            },
        )

    def deciding(self, metrics: Mapping[str, Metric], *, lenient: bool = False) -> PlannedStopState:
        """Return the object that decides the gates from the outcomes of these metrics.

        `lenient`: ignore gates of metrics that are not in the run. Raises UsageError if a gate cannot be checked.
        """
        gates: list[_Gate] = []
        for drop, asked_of in ((False, self.minimums), (True, self.drops)):
            for name, asked in asked_of.items():
                try:
                    text = resolve_metric(name, metrics, where="this run (--until)")
                except UsageError:
                    if lenient:
                        continue
                    raise
                if not drop:
                    check_asked(text, asked, _span(metrics[text]))
                if self.undefined is Policy.WORST and not all(map(isfinite, _span(metrics[text]))):
                    raise UsageError(f'{text} has an infinite range and no worst value. Use undefined = "drop".')
                gates.append(_Gate(text, asked, drop=drop))
        return PlannedStopState(self, metrics, gates)


def stop_of_record(record: Mapping[str, object]) -> EarlyStop | PlannedStop:
    """Return the rule for early stopping that a manifest stores."""
    return PlannedStop.of_record(record) if "looks" in record else EarlyStop.of_record(record)


def planned_of(manifest: Manifest) -> PlannedStop | None:
    """Return the planned looks of a run; None if it takes all samples or checks its gates after each sample."""
    until = manifest.until
    return None if until is None or "looks" not in until else PlannedStop.of_record(until)


def check_planned_clusters(scores: RunScores, planned: PlannedStop) -> None:
    """Raise UsageError unless the scores of a run have the clusters that its looks were planned for."""
    looks, clusters = planned.looks, scores.clusters
    reached = [pair for pair in zip(looks.sizes, looks.units, strict=True) if pair[0] <= len(scores.ids)]
    if planned.cluster is None:
        if clusters is not None:
            raise UsageError(f"{scores.run.path} took single samples until it stopped. Leave --cluster out.")
    elif clusters is None or any(len(set(clusters[:size])) != units for size, units in reached):
        raise UsageError(
            f"{scores.run.path} took whole clusters until it stopped: use --cluster {planned.cluster}, or leave it out."
        )


def after_planned_looks(
    aggregate: Aggregate,
    values: Sequence[float] | NDArray[np.float64],
    span: tuple[float, float],
    *,
    looks: Looks,
    taken: int,
    clusters: Sequence[Hashable] | None,
) -> Aggregate:
    """Return the aggregate of a run after `taken` samples, with an interval at the level of the look reached.

    `values`: the scores; `clusters`: their clusters, if samples are clustered. The intervals of all looks together
    have the level of the aggregate. Intervals of fractions, and between two looks, are left out.
    """
    none = after_stopping(aggregate)
    if aggregate.mean is None:
        return none
    look = next((each for each in looks.reached(taken, (1 + aggregate.level) / 2) if each.size == taken), None)
    if look is None:
        return replace(none, note=_BETWEEN)
    found = mean_interval(values, span, clusters=clusters, level=2 * look.level - 1)
    found = replace(found, value=aggregate.mean)
    return with_estimate(aggregate, found, span, shares=none.shares, level=aggregate.level)


@dataclass(slots=True)
class _Gate:
    metric: str
    asked: float
    drop: bool
    found: Looked | None = None
    """The decision at the last look; at the first one that decided, if there was one."""

    @property
    def decided(self) -> bool:
        return self.found is not None and self.found.decision.verdict is not GateVerdict.CANNOT_TELL


@dataclass(slots=True)
class PlannedStopState:
    """Decides the gates of one run at its planned looks, while its outcomes arrive in order."""

    _stop: PlannedStop
    _metrics: Mapping[str, Metric]
    _gates: Sequence[_Gate]
    _outcomes: dict[str, list[float | Missing]] = field(init=False)
    _clusters: array[int] = field(default_factory=lambda: array("q"))
    _samples: int = 0
    _looks: dict[int, Look] = field(init=False)
    """Samples at a look → the look."""

    def __post_init__(self) -> None:
        self._outcomes = {text: [] for text in self._metrics}
        looks = self._stop.looks
        self._looks = {look.size: look for look in looks.reached(looks.sizes[-1], self._stop.level)}

    @property
    def decided(self) -> bool:
        """True if every gate has been decided."""
        return all(gate.decided for gate in self._gates)

    def add(self, results: Sequence[Result], cluster: int | None = None) -> None:
        """Add the outcomes of the next sample; `cluster`: the number of its cluster, if samples are clustered."""
        self._samples += 1
        if cluster is not None:
            self._clusters.append(cluster)
        for result in results:
            self._outcomes[result.metric].append(_known(result.outcome))
        if (look := self._looks.get(self._samples)) is not None:
            for gate in self._gates:
                if not gate.decided:
                    gate.found = self._decision(gate, look)

    def record(self, samples: int) -> dict[str, object]:
        """Return the decisions for the summary; `samples`: the number that the run could have evaluated."""
        stop = self._stop
        return {
            "decided": self.decided,
            "samples": self._samples,
            "saved": samples - self._samples,
            "unit": "sample" if stop.cluster is None else "cluster",
            "looks": list(stop.looks.units),
            "sizes": list(stop.looks.sizes),
            "levels": list(stop.looks.levels(stop.level)),
            "look": sum(size <= self._samples for size in stop.looks.sizes),
            "gates": [self._gate_record(gate) for gate in self._gates],
            "note": PLANNED_NOTE,
        }

    def valid(self, aggregate: Aggregate) -> Aggregate:
        """Return the aggregate with intervals that are valid after early stopping."""
        metric = self._metrics.get(aggregate.metric)
        if metric is None:
            return after_stopping(aggregate)
        outcomes = self._outcomes[aggregate.metric]
        values = [each for each in outcomes if not isinstance(each, Missing)]
        clusters = None
        if self._stop.cluster is not None:
            pairs = zip(outcomes, self._clusters, strict=True)
            clusters = [cluster for each, cluster in pairs if not isinstance(each, Missing)]
        return after_planned_looks(
            aggregate, values, _span(metric), looks=self._stop.looks, taken=self._samples, clusters=clusters
        )

    def _decision(self, gate: _Gate, look: Look) -> Looked:
        stop, metric = self._stop, self._metrics[gate.metric]

        def column(outcomes: Sequence[float | Missing]) -> Column:
            return Column.of(outcomes[: look.size], _span(metric), higher_is_better=metric.higher_is_better)

        clusters = None if stop.cluster is None else self._clusters.tolist()
        new, policy = column(self._outcomes[gate.metric]), stop.undefined
        if not gate.drop:
            return planned_minimum(new, gate.asked, [look], clusters=clusters, undefined=policy)
        base = column(stop.baseline[gate.metric])
        return planned_drop(base, new, gate.asked, [look], strict=stop.strict, clusters=clusters, undefined=policy)

    def _gate_record(self, gate: _Gate) -> dict[str, object]:
        found = gate.found
        decision = None if found is None else found.decision
        return {
            "metric": gate.metric,
            "kind": "drop" if gate.drop else "minimum",
            "asked": gate.asked,
            "higher_is_better": self._metrics[gate.metric].higher_is_better,
            "verdict": GateVerdict.CANNOT_TELL.value if decision is None else decision.verdict.value,
            "samples": 0 if found is None else found.look.size,
            "look": 0 if found is None else found.look.number,
            "lower": None if decision is None else decision.lower,
            "upper": None if decision is None else decision.upper,
            "level": self._stop.level if decision is None else decision.level,
        }


def _known(outcome: Outcome) -> float | Missing:
    if isinstance(outcome, Score):
        return outcome.value
    return Missing.FAILED if isinstance(outcome, Failed) else Missing.UNDEFINED


def _span(metric: Metric) -> tuple[float, float]:
    return (float(metric.range[0]), float(metric.range[1]))
