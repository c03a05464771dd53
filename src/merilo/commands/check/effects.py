"""The effect of an edit on verdicts: its effect with limits, and whether that passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.commands.check.probes import Effect
from merilo.judging.verdicts import decision_of, is_positive
from merilo.stats.column import Column, Missing
from merilo.stats.gate import Decision, GateVerdict, gate_drop, gate_minimum
from merilo.stats.means import mean_interval
from merilo.stats.paired import paired_test

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from merilo.commands.check.probes import Probe, ProbeTrial
    from merilo.judging.verdicts import Verdict as JudgeVerdict
    from merilo.stats.intervals import Interval


@dataclass(frozen=True, slots=True)
class TrialVerdicts:
    """A trial and the verdicts on its versions; None if a question got no verdict."""

    trial: ProbeTrial
    verdicts: tuple[JudgeVerdict, ...] | None


@dataclass(frozen=True, slots=True)
class Part:
    """The effect over a part of the trials."""

    trials: int
    value: float


@dataclass(frozen=True, slots=True)
class EffectLimits:
    """One-sided limits of an effect, each at 95 %; None if there is too little data."""

    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one probe."""

    probe: Probe
    trials: int
    """Number of trials that were asked about."""
    failed: int
    """Number of trials with a question that got no verdict; the limits count them as worst and best case."""
    unfit: int
    """Number of trials whose original verdict makes the edit pointless, such as a context that is already relevant."""
    value: float | None
    """The effect over the other trials; None if there are none."""
    interval: Interval
    """Two-sided 95 % interval; covers the sampling of questions and texts."""
    limits: EffectLimits
    decision: Decision
    changed: float | None = None
    """For `Effect.NET`: the fraction of verdicts that the edit changes."""
    neutral: float | None = None
    """For `Effect.NET`: the fraction of verdicts that neutral text changes."""
    by_language: Mapping[str, Part] | None = None
    """The effect by language of the added text; None unless the probe adds text in several languages."""
    by_kind: Mapping[str, Part] | None = None
    """The effect by kind of judgement; None if there is one kind."""

    @property
    def counted(self) -> int:
        """Number of trials that the effect is computed over."""
        return self.trials - self.failed - self.unfit

    @property
    def verdict(self) -> GateVerdict:
        """Pass, fail or cannot tell."""
        return self.decision.verdict


def result_of(probe: Probe, judged: Sequence[TrialVerdicts]) -> Result:
    """Return the effect of a probe over at least one trial, and whether it is within the limit of the probe.

    It passes if the one-sided 95 % upper limit of the effect is at most that limit (for `Effect.NET`: below it). It
    fails if the lower limit is above it. Otherwise the result is "cannot tell". Trials of one question or text are one
    cluster.
    """
    fitting = [each for each in judged if each.verdicts is None or _fits(probe, each.verdicts)]
    clusters = [each.trial.case.cluster for each in fitting]
    answered = [each for each in fitting if each.verdicts is not None]
    groups = [each.trial.case.cluster for each in answered]
    values = [_value(probe, each) for each in answered]
    net = probe.effect is Effect.NET
    decision, limits = (_net if net else _fraction)(fitting, clusters, probe)
    interval = _net_interval(values, groups) if net else mean_interval(values, (0.0, 1.0), clusters=groups).interval
    return Result(
        probe=probe,
        trials=len(judged),
        failed=sum(each.verdicts is None for each in judged),
        unfit=len(judged) - len(fitting),
        value=sum(values) / len(values) if values else None,
        interval=interval,
        limits=limits,
        decision=decision,
        changed=_mean([_differs(each, 1) for each in answered]) if net else None,
        neutral=_mean([_differs(each, 2) for each in answered]) if net else None,
        by_language=_parts(answered, values, lambda trial: trial.language) if net else None,
        by_kind=_parts(answered, values, lambda trial: trial.case.asks.value),
    )


def _fits(probe: Probe, verdicts: Sequence[JudgeVerdict]) -> bool:
    if probe.effect is Effect.RAISED:
        return not is_positive(verdicts[0])
    return probe.effect is not Effect.KEPT or is_positive(verdicts[0])


def _value(probe: Probe, judged: TrialVerdicts) -> float:
    if probe.effect is Effect.NET:
        return _differs(judged, 1) - _differs(judged, 2)
    if probe.effect is Effect.CHANGED:
        return _differs(judged, 1)
    return float(is_positive(_verdicts_of(judged)[1]))


def _differs(judged: TrialVerdicts, version: int) -> float:
    verdicts = _verdicts_of(judged)
    return float(decision_of(verdicts[version]) != decision_of(verdicts[0]))


def _verdicts_of(judged: TrialVerdicts) -> tuple[JudgeVerdict, ...]:
    """Return the verdicts of a trial that has verdicts."""
    if judged.verdicts is None:
        raise ValueError("a trial without a verdict has no effect")
    return judged.verdicts


def _fraction(
    fitting: Sequence[TrialVerdicts], clusters: Sequence[Hashable], probe: Probe
) -> tuple[Decision, EffectLimits]:
    found = [Missing.FAILED if each.verdicts is None else _value(probe, each) for each in fitting]
    column = Column.of(found, (0.0, 1.0), higher_is_better=False)
    decision = gate_minimum(column, probe.limit, clusters=clusters)
    return decision, EffectLimits(decision.lower, decision.upper)


def _net(fitting: Sequence[TrialVerdicts], clusters: Sequence[Hashable], probe: Probe) -> tuple[Decision, EffectLimits]:
    """Decide on the difference between instructions and neutral text, as a gate on a drop (lower is better)."""
    columns = [
        Column.of(
            [Missing.FAILED if each.verdicts is None else _differs(each, version) for each in fitting],
            (0.0, 1.0),
            higher_is_better=False,
        )
        for version in (2, 1)
    ]
    decision = gate_drop(columns[0], columns[1], probe.limit, clusters=clusters)
    return decision, EffectLimits(_minus(decision.upper), _minus(decision.lower))


def _net_interval(values: Sequence[float], clusters: Sequence[Hashable]) -> Interval:
    return paired_test(values, (-1.0, 1.0), clusters=clusters).interval


def _minus(value: float | None) -> float | None:
    return None if value is None else 0.0 - value


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _parts(
    answered: Sequence[TrialVerdicts], values: Sequence[float], key: Callable[[ProbeTrial], str]
) -> Mapping[str, Part] | None:
    """Return the effect by a key of the trials; None if all have the same key."""
    found: dict[str, list[float]] = {}
    for each, value in zip(answered, values, strict=True):
        found.setdefault(key(each.trial), []).append(value)
    if len(found) < 2:
        return None
    return {name: Part(len(own), sum(own) / len(own)) for name, own in sorted(found.items())}
