"""Early stopping (`--until`): a run ends once every gate of its suite is decided.

Samples, or whole clusters, are then evaluated in a random order that depends on their names and a seed. Gates decide by
limits that hold at any time (`merilo.stats.sequential`), so they are checked again and again. Outcomes are processed in
that order, whichever reply arrives first, and the outcomes of a baseline are stored in the manifest. So a resumed or
replayed run stops at the same sample.
"""

from __future__ import annotations

from array import array
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, cast

from merilo.errors import RunError, UsageError
from merilo.metrics.base import Failed, Score
from merilo.runs.metric_names import resolve_metric
from merilo.runs.scales import check_asked
from merilo.stats.column import Column, Missing
from merilo.stats.compare import Policy
from merilo.stats.gate import Decision, GateVerdict, drop_decisions, gate_minimum
from merilo.stats.sequential import sequence_of
from merilo.stats.sums import coded

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from merilo.metrics.base import Metric, Outcome
    from merilo.results.scores import RunScores
    from merilo.runs.manifest import Aggregate, Manifest
    from merilo.runs.outcomes import Result

STOPPED_NOTE = (
    "Intervals are confidence sequences: this run could stop as soon as its gates were decided, after which an "
    "interval for a fixed number of samples is not valid."
)
_Kind = Literal["minimum", "drop"]
_NO_SHARE = "cannot tell for a share in a run that could stop early"
_PAUSE = 1.03
"""Gates are checked again after this factor of samples, as a check takes time."""


@dataclass(frozen=True, slots=True)
class EarlyStop:
    """The gates that end a run once all of them are decided."""

    minimums: Mapping[str, float]
    """Metric, by full text or name → its minimum mean; its maximum mean if lower is better."""
    drops: Mapping[str, float]
    """Full metric text → largest allowed drop against the baseline."""
    level: float
    """Confidence level of each interval, valid over all checks together."""
    undefined: Policy | None
    seed: int
    """Seed of the order of the samples."""
    cluster: str | None
    """Field whose equal values form one cluster; None if samples are taken singly."""
    ends: tuple[int, ...]
    """Samples after each whole cluster; empty if samples are taken singly."""
    baseline: Mapping[str, tuple[float | Missing, ...]]
    """Full metric text → the baseline's outcome of each sample, in the order of the run."""

    @property
    def largest(self) -> int:
        """The size of the largest cluster."""
        return max((end - start for start, end in pairwise((0, *self.ends))), default=1)

    def record(self) -> dict[str, object]:
        """Return the record that the manifest stores."""
        baseline = {text: list(outcomes) for text, outcomes in self.baseline.items()}
        return {**asdict(self), "ends": list(self.ends), "baseline": baseline}

    @classmethod
    def of_record(cls, record: Mapping[str, object]) -> EarlyStop:
        """Return the object that `record` wrote into a manifest. Raises RunError if outcomes of the baseline lack."""
        known = dict(cast("dict[str, Any]", record))  # Any: JSON that `record` made
        baseline = {
            text: tuple(Missing(each) if isinstance(each, str) else each for each in outcomes)
            for text, outcomes in known["baseline"].items()
        }
        known.pop("strict", None)  # earlier versions wrote it
        policy = None if known["undefined"] is None else Policy(known["undefined"])
        if lacking := [text for text in known["drops"] if text not in baseline]:
            raise RunError(f"The manifest has no outcomes of {lacking[0]} of the baseline.")
        known |= {"undefined": policy, "ends": tuple(known["ends"]), "baseline": baseline}
        return cls(**known)

    def deciding(self, metrics: Mapping[str, Metric], *, lenient: bool = False) -> EarlyStopState:
        """Return the object that decides the gates from the outcomes of these metrics.

        `lenient`: ignore gates of metrics that are not in the run. Raises UsageError if a gate cannot be checked.
        """
        gates: list[_Gate] = []
        asked_kinds: tuple[tuple[_Kind, Mapping[str, float]], ...] = (("minimum", self.minimums), ("drop", self.drops))
        for kind, asked_of in asked_kinds:
            for name, asked in asked_of.items():
                try:
                    text = resolve_metric(name, metrics, where="this run (--until)")
                except UsageError:
                    if lenient:
                        continue
                    raise
                if not all(map(isfinite, span := _span(metrics[text]))):
                    raise UsageError(
                        f"{text} has an infinite range, so it cannot be decided early. Remove it from the suite of "
                        "--until and check it with merilo gate after the run."
                    )
                if kind == "minimum":
                    check_asked(text, asked, span)
                elif not all(isinstance(each, Missing) or span[0] <= each <= span[1] for each in self.baseline[text]):
                    raise RunError(f"The outcomes of {text} of the baseline, in the manifest, are not in its range.")
                gates.append(_Gate(text, kind, asked))
        return EarlyStopState(self, metrics, gates)


def stop_of(manifest: Manifest) -> EarlyStop | None:
    """Return the rule for early stopping of a run; None if it takes all samples."""
    return None if manifest.until is None else EarlyStop.of_record(manifest.until)


def random_place(seed: int, name: str) -> bytes:
    """Return the sort key of a sample id or a cluster name in the random order of a seed."""
    return sha256(f"{seed}:".encode() + name.encode("utf-8", "surrogatepass")).digest()


def cluster_ends(clusters: Sequence[Hashable] | None) -> tuple[int, ...]:
    """Return the number of samples after each whole cluster; `clusters`: that of each sample, in order."""
    if not clusters:
        return ()
    return (*(at for at, (one, other) in enumerate(pairwise(clusters), start=1) if one != other), len(clusters))


def check_own_clusters(scores: RunScores, stop: EarlyStop) -> None:
    """Raise UsageError unless the scores of a run have the clusters that it took until it stopped."""
    ends = cluster_ends(scores.clusters)
    if bool(ends) != bool(stop.ends) or ends != stop.ends[: len(ends)]:
        took = "single samples" if stop.cluster is None else f"whole clusters of {stop.cluster}"
        raise UsageError(f"{scores.run.path} took {took} until it stopped. Leave --cluster out.")


def after_stopping(
    aggregate: Aggregate, column: Column | None, stop: EarlyStop, clusters: Sequence[Hashable] | None
) -> Aggregate:
    """Return the aggregate of a run with early stopping: with a confidence sequence, and no intervals of fractions.

    `column`: the outcomes in the order in which samples were evaluated; None for a composite.
    """
    shares = {
        name: replace(share, interval=None, note=_NO_SHARE, remark="", method=None)
        for name, share in aggregate.shares.items()
    }
    none = replace(aggregate, interval=None, remark="", method=None, seed=None, clusters=None, shares=shares)
    if aggregate.mean is None:
        return none
    if column is None:
        return replace(none, note="cannot tell for a composite in a run that could stop early")
    codes = None if clusters is None else coded(clusters)[column.scored]
    values = column.values[column.scored]
    found = sequence_of(values, column.span, codes=codes, largest=stop.largest, level=aggregate.level)
    units = None if codes is None else len(set(codes.tolist()))
    return replace(none, interval=found.ends, note=found.note, method=found.method, clusters=units)


@dataclass(slots=True)
class _Gate:
    metric: str
    kind: _Kind
    asked: float
    decision: Decision | None = None
    """The decision at the last check, or at the first one that decided."""
    samples: int = 0
    """Samples at that check."""

    @property
    def decided(self) -> bool:
        return self.decision is not None and self.decision.verdict is not GateVerdict.CANNOT_TELL


@dataclass(slots=True)
class EarlyStopState:
    """Decides the gates of one run while its outcomes arrive in order."""

    _stop: EarlyStop
    _metrics: Mapping[str, Metric]
    _gates: Sequence[_Gate]
    _outcomes: dict[str, list[float | Missing]] = field(init=False)
    _clusters: array[int] = field(default_factory=lambda: array("q"))
    _samples: int = 0
    _next: float = 1.0
    """Samples from which the gates are checked again."""
    _ends: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self._outcomes = {text: [] for text in self._metrics}
        self._ends = frozenset(self._stop.ends)

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
        # A cluster that has begun is not a random sample of one, so limits need whole clusters.
        if self._samples >= self._next and (not self._ends or self._samples in self._ends):
            self._check()
            self._next = _PAUSE * self._samples

    def record(self, samples: int) -> dict[str, object]:
        """Return the decisions for the summary; `samples`: the number that the run could have evaluated."""
        if self._samples == samples:
            self._check()
        return {
            "decided": self.decided,
            "samples": self._samples,
            "saved": samples - self._samples,
            "gates": [self._gate_record(gate) for gate in self._gates],
            "note": STOPPED_NOTE,
        }

    def valid(self, aggregate: Aggregate) -> Aggregate:
        """Return the aggregate with intervals that are valid after early stopping."""
        column = self._column(aggregate.metric) if aggregate.metric in self._metrics else None
        return after_stopping(aggregate, column, self._stop, self._own_clusters)

    @property
    def _own_clusters(self) -> Sequence[int] | None:
        return None if self._stop.cluster is None else self._clusters.tolist()

    def _column(self, text: str) -> Column:
        metric = self._metrics[text]
        return Column.of(self._outcomes[text], _span(metric), higher_is_better=metric.higher_is_better)

    def _check(self) -> None:
        drops = self._drop_decisions()
        for gate in self._gates:
            if not gate.decided:
                gate.decision = drops[gate.metric] if gate.kind == "drop" else self._minimum(gate)
                gate.samples = self._samples

    def _minimum(self, gate: _Gate) -> Decision:
        stop = self._stop
        return gate_minimum(
            self._column(gate.metric),
            gate.asked,
            clusters=self._own_clusters,
            undefined=stop.undefined,
            level=stop.level,
            early=stop.largest,
        )

    def _drop_decisions(self) -> dict[str, Decision]:
        """Return the decisions on all drops: failures are corrected for their number, as in `merilo gate`."""
        asked = {gate.metric: gate.asked for gate in self._gates if gate.kind == "drop"}
        pairs: dict[str, tuple[Column, Column]] = {}
        for text in asked:
            new, before = self._column(text), self._stop.baseline[text][: self._samples]
            if len(before) < len(new):
                raise RunError(f"The manifest has too few outcomes of {text} of the baseline.")
            pairs[text] = new, Column.of(before, new.span, higher_is_better=new.higher_is_better)
        stop = self._stop
        return drop_decisions(
            pairs, asked, clusters=self._own_clusters, undefined=stop.undefined, level=stop.level, early=stop.largest
        )

    def _gate_record(self, gate: _Gate) -> dict[str, object]:
        decision = gate.decision
        return {
            "metric": gate.metric,
            "kind": gate.kind,
            "asked": gate.asked,
            "higher_is_better": self._metrics[gate.metric].higher_is_better,
            "verdict": (GateVerdict.CANNOT_TELL if decision is None else decision.verdict).value,
            "samples": gate.samples,
            "lower": None if decision is None else decision.lower,
            "upper": None if decision is None else decision.upper,
            "level": self._stop.level,
        }


def _known(outcome: Outcome) -> float | Missing:
    if isinstance(outcome, Score):
        return outcome.value
    return Missing.FAILED if isinstance(outcome, Failed) else Missing.UNDEFINED


def _span(metric: Metric) -> tuple[float, float]:
    return (float(metric.range[0]), float(metric.range[1]))
