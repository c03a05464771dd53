"""Verdicts with `averaged` count as their probability in merilo's own means, and in nothing else."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from each_case import each_case
from metrics.saying import Says, outcome

from merilo.data.sample import Sample
from merilo.judging.kinds.contexts import (
    RelevanceVerdict,
    SufficiencyLabel,
    SufficiencyVerdict,
    SupportLabel,
    SupportVerdict,
    UsefulnessVerdict,
)
from merilo.judging.questions import Question
from merilo.judging.verdicts import DecisionVerdict, Failure, Verdict
from merilo.metrics.base import Score
from merilo.metrics.formulas import f_measure
from merilo.metrics.registry import parse_metric

SAMPLE = Sample(
    "s",
    user_input="Why?",
    retrieved_contexts=("Whole.", "Part.", "None."),
    response="Right. Wrong.",
    reference="True. Missing.",
)
SAYS = Says(
    grades={"Whole.": 2, "Part.": 1},
    useful={"Whole."},
    supported={"Right.": (0,), "True.": (0,)},
    sufficiency=SufficiencyLabel.PARTLY,
    addressing={"Right."},
    parts=("first part", "second part"),
    answered={"first part": (0,)},
    entities=("Ada", "Bob"),
    mentioned={"Ada": (0,)},
)
PROBABILITIES = {
    "Whole.": 0.9,
    "Part.": 0.6,
    "None.": 0.2,
    "Right.": 0.8,
    "Wrong.": 0.3,
    "True.": 0.7,
    "Missing.": 0.1,
    "first part": 0.75,
    "second part": 0.25,
    "Ada": 0.85,
    "Bob": 0.05,
}
OF_CONTEXTS = (0.9 + 0.6 + 0.2) / 3
OF_RESPONSE = (0.8 + 0.3) / 2
OF_REFERENCE = (0.7 + 0.1) / 2


@dataclass
class Probable:
    """Answers with the probability of the text asked about; those on `counted` texts are counted as yes or no."""

    says: Says
    averaged: bool = True
    counted: frozenset[str] = frozenset()

    def __call__(self, question: Question[Any]) -> Verdict | Failure:
        verdict = self.says(question)
        if not isinstance(verdict, DecisionVerdict) or question.kind == "noncommittal":
            return verdict
        if isinstance(verdict, SufficiencyVerdict):
            return replace(verdict, probability=0.35, averaged=self.averaged)
        subject = _subject(question)
        averaged = self.averaged and subject not in self.counted
        changed: Verdict = replace(verdict, probability=PROBABILITIES[subject], averaged=averaged)  # type: ignore[call-arg]  # a field of every kind
        return changed


def _subject(question: Question[Any]) -> str:
    named = [getattr(question, name, "") for name in ("statement", "part", "name")]
    return next(filter(None, named), "") or question.sentences[0]


def scored(text: str, answer: Any) -> Score:
    metric: Any = parse_metric(text)
    found = outcome(metric, SAMPLE, answer)
    assert isinstance(found, Score)
    return found


@each_case(
    ("metric", "averaged", "counted"),
    [
        ("context_relevance", OF_CONTEXTS, 0.5),
        ("context_relevance(unit=context)", OF_CONTEXTS, 2 / 3),
        ("context_sufficiency", 0.35, 0.5),
        ("context_recall", OF_REFERENCE, 0.5),
        ("context_entity_recall", (0.85 + 0.05) / 2, 0.5),
        ("faithfulness", OF_RESPONSE, 0.5),
        ("answer_relevancy", OF_RESPONSE, 0.5),
        ("answer_completeness", (0.75 + 0.25) / 2, 0.5),
        ("answer_correctness", f_measure(OF_RESPONSE, OF_REFERENCE), 0.5),
    ],
)
def test_a_mean_over_decisions_averages_probabilities(metric: str, averaged: float, counted: float) -> None:
    """Only if the verdicts say so: a probability alone changes no number, and the counts stay counts."""
    found = scored(metric, Probable(SAYS))
    assert found.value == pytest.approx(averaged, abs=1e-12)
    assert found.averaged
    plain = scored(metric, SAYS)
    assert (plain.value, plain.averaged) == (counted, False)
    with_probability = scored(metric, Probable(SAYS, averaged=False))
    assert (with_probability.value, with_probability.averaged) == (counted, False)
    assert found.counts == plain.counts


@each_case(
    "metric",
    [
        "context_relevance(unit=context, at=2)",
        "context_relevance(unit=sentence)",
        "context_precision",
        "context_precision(against=reference)",
        "context_ranking",
        "context_utilization",
        "noise_sensitivity",
        "noise_sensitivity(of=irrelevant)",
    ],
)
def test_ranks_evidence_and_joint_decisions_are_counted(metric: str) -> None:
    """Metrics for which a verdict has no probability of its own give the same number as before."""
    found, plain = scored(metric, Probable(SAYS)), scored(metric, SAYS)
    assert (found.value, found.averaged) == (plain.value, False)


def test_each_verdict_counts_in_its_own_way() -> None:
    """One judge's probability and another judge's yes are in one mean."""
    found = scored("faithfulness", Probable(SAYS, counted=frozenset({"Right."})))
    assert found.value == pytest.approx((1 + 0.3) / 2)
    assert found.averaged
    relevance = scored("context_relevance", Probable(SAYS, counted=frozenset({"Part."})))
    assert relevance.value == pytest.approx((0.9 + 0.5 + 0.2) / 3)
    by_context = scored("context_relevance(unit=context)", Probable(SAYS, counted=frozenset({"Part."})))
    assert by_context.value == pytest.approx((0.9 + 1 + 0.2) / 3)


@each_case(
    ("verdict", "credit"),
    [
        (RelevanceVerdict(1, (0,)), 0.5),
        (RelevanceVerdict(2, (0,), "", 0.6), 1.0),
        (RelevanceVerdict(2, (0,), "", 0.6, averaged=True), 0.6),
        (RelevanceVerdict(2, (0,), averaged=True), 1.0),
        (UsefulnessVerdict(useful=True), 1.0),
        (SufficiencyVerdict(SufficiencyLabel.PARTLY), 0.5),
        (SupportVerdict(SupportLabel.CONTRADICTED, (0,), "", 0.2), 0.0),
        (SupportVerdict(SupportLabel.UNSUPPORTED, (), "", 0.2, tells_contradicted=False, averaged=True), 0.2),
    ],
)
def test_the_credit_of_a_verdict(verdict: DecisionVerdict, credit: float) -> None:
    """The probability if it is averaged and there is one, otherwise the decision as a number."""
    assert verdict.credit == credit


def test_a_verdict_that_is_not_averaged_is_written_as_before() -> None:
    """Text, fields and positions of a verdict without the field have not changed; with it, it is read back equal."""
    plain, averaged = RelevanceVerdict(2, (0,), "Yes.", 0.5), RelevanceVerdict(2, (0,), "Yes.", 0.5, averaged=True)
    assert plain.to_json() == '{"grade":2,"evidence":[0],"reason":"Yes.","probability":0.5}'
    assert repr(plain) == "RelevanceVerdict(grade=2, evidence=(0,), reason='Yes.', probability=0.5)"
    assert RelevanceVerdict.__match_args__ == ("grade", "evidence", "reason", "probability")
    assert plain != averaged
    for verdict in (plain, averaged):
        assert RelevanceVerdict.from_json(verdict.to_json()) == verdict
        assert RelevanceVerdict.from_fields(verdict.to_fields()) == verdict
