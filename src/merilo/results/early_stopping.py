"""Early stopping (`--until`): a run ends once every minimum is shown to be met or to be missed.

Samples are then evaluated in a random order that depends on their ids and a seed. After every sample each gate checks
a confidence sequence (`merilo.stats.sequential`), which is valid however often it is checked. Outcomes are processed
in that order, whichever reply arrives first, so the run stops at the same sample each time.
"""

from __future__ import annotations

from array import array
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, cast

from merilo.errors import UsageError
from merilo.metrics.base import Score, Undefined
from merilo.runs.metric_names import resolve_metric
from merilo.runs.scales import check_asked
from merilo.stats.compare import Policy
from merilo.stats.gate import GateVerdict
from merilo.stats.intervals import LEVEL, SEED
from merilo.stats.sequential import StreamingGate, sequential_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.metrics.base import Metric, Outcome
    from merilo.runs.manifest import Aggregate
    from merilo.runs.outcomes import Result

STOPPED_NOTE = (
    "Intervals are confidence sequences: this run could stop as soon as its gates were decided, after which an "
    "interval for a fixed number of samples is not valid."
)
_NO_SHARE = "cannot tell for a share in a run that could stop early"


@dataclass(frozen=True, slots=True)
class EarlyStop:
    """The minimums that end a run once they are decided."""

    minimums: Mapping[str, float]
    """Metric, by full text or name → its minimum mean; its maximum mean if lower is better."""
    level: float = LEVEL
    """Confidence of each one-sided limit, valid over all checks together."""
    undefined: Policy | None = None
    """The treatment of Undefined outcomes; None: as the worst score for passing and the best for failing."""
    seed: int = SEED
    """Seed of the order of the samples."""

    def __post_init__(self) -> None:
        if not self.minimums:
            raise UsageError("Early stopping needs at least one minimum, for example m = 0.8.")

    def place(self, sample_id: str) -> bytes:
        """Return the sort key of a sample in the random order; it depends on its id and the seed only."""
        return random_place(self.seed, sample_id)

    def record(self) -> dict[str, object]:
        """Return the record that the manifest stores."""
        return {**asdict(self), "minimums": dict(self.minimums)}

    @classmethod
    def of_record(cls, record: Mapping[str, object]) -> EarlyStop:
        """Return the object that `record` wrote into a manifest."""
        known = cast("dict[str, Any]", record)  # Any: JSON that `record` made
        policy = known["undefined"]
        return cls(known["minimums"], known["level"], None if policy is None else Policy(policy), known["seed"])

    def deciding(self, metrics: Mapping[str, Metric], *, lenient: bool = False) -> EarlyStopState:
        """Return the object that decides the gates from the outcomes of these metrics.

        `lenient`: ignore minimums of metrics that are not in the run. Raises UsageError if a minimum cannot be checked.
        """
        gates: list[_Gate] = []
        for name, asked in self.minimums.items():
            try:
                text = resolve_metric(name, metrics, where="this run (--until)")
            except UsageError:
                if lenient:
                    continue
                raise
            gates.append(_gate(text, asked, metrics[text], self.level))
        return EarlyStopState(self, metrics, gates)


def random_place(seed: int, name: str) -> bytes:
    """Return the sort key of a sample id or a cluster name in the random order of a seed."""
    return sha256(f"{seed}:".encode() + name.encode("utf-8", "surrogatepass")).digest()


def after_stopping(
    aggregate: Aggregate,
    values: Sequence[float] | NDArray[np.float64] | None = None,
    span: tuple[float, float] = (-inf, inf),
) -> Aggregate:
    """Return the aggregate of a run with early stopping: with a confidence sequence, and no intervals of fractions.

    `values`: the scores in the order in which samples were evaluated; None for a composite.
    """
    shares = {
        name: replace(share, interval=None, note=_NO_SHARE, remark="", method=None)
        for name, share in aggregate.shares.items()
    }
    none = replace(aggregate, interval=None, remark="", method=None, seed=None, clusters=None, shares=shares)
    if aggregate.mean is None:
        return none
    if values is None or not all(map(isfinite, span)):
        what = "a composite" if values is None else "an infinite range"
        return replace(none, note=f"cannot tell for {what} in a run that could stop early")
    found = sequential_interval(values, span, level=aggregate.level)
    return replace(none, interval=found.ends, note=found.note, method=found.method)


@dataclass(slots=True)
class _Gate:
    metric: str
    asked: float
    higher: bool
    looking: StreamingGate
    least: array[float] = field(default_factory=lambda: array("d"))
    """Lowest possible score of each sample; equal to the score if it has one."""
    most: array[float] = field(default_factory=lambda: array("d"))
    """Highest possible score of each sample."""


class EarlyStopState:
    """Decides the gates of one run while its outcomes arrive in order."""

    def __init__(self, until: EarlyStop, metrics: Mapping[str, Metric], gates: Sequence[_Gate]) -> None:
        self._until = until
        self._metrics = metrics
        self._values: dict[str, array[float]] = {text: array("d") for text in metrics}
        self._samples = 0
        self._gates = gates

    @property
    def decided(self) -> bool:
        """True if every gate has been decided."""
        return all(gate.looking.verdict is not GateVerdict.CANNOT_TELL for gate in self._gates)

    def add(self, results: Sequence[Result], cluster: int | None = None) -> None:  # noqa: ARG002  as planned looks
        """Add the outcomes of the next sample; `cluster`: always None, since clusters have planned looks."""
        self._samples += 1
        outcomes = {result.metric: result.outcome for result in results}
        for text, outcome in outcomes.items():
            if isinstance(outcome, Score):
                self._values[text].append(outcome.value)
        for gate in self._gates:
            ends = _ends(outcomes[gate.metric], self._metrics[gate.metric], self._until.undefined)
            if ends is not None:
                gate.least.append(ends[0])
                gate.most.append(ends[1])
                gate.looking.add(*(ends if gate.higher else (-ends[1], -ends[0])))

    def record(self, samples: int) -> dict[str, object]:
        """Return the decisions for the summary; `samples`: the number that the run could have evaluated."""
        return {
            "decided": self.decided,
            "samples": self._samples,
            "saved": samples - self._samples,
            "gates": [self._gate_record(gate) for gate in self._gates],
            "note": STOPPED_NOTE,
        }

    def valid(self, aggregate: Aggregate) -> Aggregate:
        """Return the aggregate with intervals that are valid after early stopping."""
        metric = self._metrics.get(aggregate.metric)
        if metric is None:
            return after_stopping(aggregate)
        return after_stopping(aggregate, self._values[aggregate.metric], _span(metric))

    def _gate_record(self, gate: _Gate) -> dict[str, object]:
        span, level = _span(self._metrics[gate.metric]), 2 * self._until.level - 1
        low, high = (sequential_interval(values, span, level=level).ends for values in (gate.least, gate.most))
        return {
            "metric": gate.metric,
            "asked": gate.asked,
            "higher_is_better": gate.higher,
            "verdict": gate.looking.verdict.value,
            "samples": gate.looking.units,
            "lower": None if low is None else low[0],
            "upper": None if high is None else high[1],
            "level": self._until.level,
        }


def _gate(text: str, asked: float, metric: Metric, level: float) -> _Gate:
    low, high = _span(metric)
    if not (isfinite(low) and isfinite(high)):
        raise UsageError(
            f"{text} has an infinite range, so it cannot be decided early. Remove it from the suite of "
            "--until and check it with merilo gate after the run."
        )
    check_asked(text, asked, (low, high))
    higher = metric.higher_is_better
    sign = 1 if higher else -1
    span = (low, high) if higher else (-high, -low)
    return _Gate(text, asked, higher, StreamingGate(sign * asked, span, level=level))


def _ends(outcome: Outcome, metric: Metric, policy: Policy | None) -> tuple[float, float] | None:
    """Return the lowest and the highest possible score of an outcome; None if the outcome is ignored."""
    if isinstance(outcome, Score):
        return outcome.value, outcome.value
    low, high = _span(metric)
    if not isinstance(outcome, Undefined) or policy is None:
        return low, high
    worst = low if metric.higher_is_better else high
    return None if policy is Policy.DROP else (worst, worst)


def _span(metric: Metric) -> tuple[float, float]:
    return (float(metric.range[0]), float(metric.range[1]))
