"""Trials as samples, and the metric that asks about all versions of a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from merilo.commands.probe.cases import JudgementKinds, question_of
from merilo.data.sample import Sample
from merilo.judging.ask import ask_each
from merilo.judging.decisions import decision_of
from merilo.judging.registry import KINDS
from merilo.metrics.base import Card, Evidence, EvidenceTarget, Kinds, MetricDefaults, Score, Undefined

if TYPE_CHECKING:
    from merilo.commands.probe.probes import Probe, ProbeTrial
    from merilo.data.sample import JSON
    from merilo.judging.ask import Plan
    from merilo.judging.questions import Question


@dataclass(frozen=True, slots=True)
class VerdictsUnderChange(MetricDefaults):
    """The verdicts on all versions of a trial, as evidence; the value is the fraction equal to the first verdict.

    It exists only for its verdicts and is in no registry.
    """

    name: ClassVar[str] = "verdicts_under_change"
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card(summary="Verdicts of a judge on a question and on edited versions of it.")
    needs = frozenset[str]()

    kinds: str = "+".join(JudgementKinds)
    """The kinds of judgement among the trials, joined by `+`."""

    @property
    def asks(self) -> Kinds:
        """The kinds of question for these judgements."""
        return Kinds(KINDS[JudgementKinds(each)] for each in self.kinds.split("+"))

    def max_questions(self, sample: Sample) -> int:
        """Return the number of versions: one question each."""
        return len(questions_of(sample))

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        verdicts = yield from ask_each(questions_of(sample))
        evidence = tuple(Evidence(EvidenceTarget.STATEMENT, index, verdict) for index, verdict in enumerate(verdicts))
        same = sum(decision_of(verdict) == decision_of(verdicts[0]) for verdict in verdicts)
        return Score(same / len(verdicts), evidence=evidence)


def trial_sample(probe: Probe, trial: ProbeTrial) -> Sample:
    """Return a trial as a sample: its fields are the original case, its metadata contain every version."""
    case, first = trial.case, trial.versions[0]
    versions: list[JSON] = [
        {"contexts": list(each.contexts)}
        | ({"statement": each.statement} if each.statement else {})
        | ({"draw": each.draw} if each.draw else {})
        for each in trial.versions
    ]
    return Sample(
        trial_id(probe, trial),
        user_input=case.user_input or None,
        retrieved_contexts=first.contexts,
        response=first.statement or None,
        language=case.language,
        metadata={"probe": probe.name, "asks": case.asks.value, "versions": versions},
    )


def trial_id(probe: Probe, trial: ProbeTrial) -> str:
    """Return `PROBE/CASE`, which is unique: a probe makes at most one trial of a case."""
    return f"{probe.name}/{trial.case.id}"


def questions_of(sample: Sample) -> tuple[Question[Any], ...]:
    """Return the questions of all versions, in order."""
    versions = cast("list[dict[str, Any]]", sample.metadata.get("versions", ()))  # what `trial_sample` wrote
    return tuple(
        question_of(
            JudgementKinds(str(sample.metadata["asks"])),
            user_input=sample.user_input or "",
            contexts=each["contexts"],
            statement=each.get("statement", ""),
            language=sample.resolved_language,
        ).at(each.get("draw", 0))
        for each in versions
    )
