from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from each_case import each_case
from metrics.saying import Says, outcome, value

from merilo.data.sample import Sample
from merilo.judging.ask import AskFailed
from merilo.judging.kinds.contexts import Relevance, Support, SupportLabel
from merilo.judging.kinds.responses import Addresses, Statements
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.answer_metrics import AnswerCorrectness, AnswerRelevancy
from merilo.metrics.base import EvidenceTarget, Score, Undefined
from merilo.metrics.statement_metrics import ContextRecall, ContextUtilization, Faithfulness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judging.ask import Step
    from merilo.metrics.base import Metric

EARTH = "The Earth is round."
SUN = "The Sun is a star."
MOON = "The Moon is far."


def answered(
    response: str | None = None,
    contexts: Sequence[str] | None = (EARTH, SUN),
    *,
    user_input: str | None = "What is there?",
    reference: str | None = None,
) -> Sample:
    return Sample("s", user_input=user_input, retrieved_contexts=contexts, response=response, reference=reference)


def test_recall_of_france() -> None:
    """With the first of two reference statements supported and the second not stated, recall is 0.5."""
    sample = answered(reference="France is in Western Europe. Its capital is Paris.", user_input=None)
    found = outcome(ContextRecall(), sample, Says(supported={"France is in Western Europe.": (0,)}))
    assert isinstance(found, Score)
    assert found.value == 0.5
    assert found.counts == {"statements": 2, "supported": 1, "contradicted": 0}


def test_a_contradicted_statement_is_not_recalled() -> None:
    """Contradicted counts like not stated, and is told apart in the counts."""
    says = Says(supported={EARTH: (0,)}, contradicted={MOON: (1,)})
    found = outcome(ContextRecall(), answered(reference=f"{EARTH} {MOON}"), says)
    assert isinstance(found, Score)
    assert (found.value, found.counts["contradicted"]) == (0.5, 1)


def test_faithfulness_is_the_supported_share() -> None:
    """One of three statements supported gives a third; evidence holds each statement with its verdict."""
    says = Says(supported={SUN: (1,)})
    found = outcome(Faithfulness(), answered(f"{EARTH} {SUN} {MOON}"), says)
    assert isinstance(found, Score)
    assert found.value == pytest.approx(1 / 3)
    assert [(each.about, each.index, each.text) for each in found.evidence] == [
        (EvidenceTarget.STATEMENT, 0, EARTH),
        (EvidenceTarget.STATEMENT, 1, SUN),
        (EvidenceTarget.STATEMENT, 2, MOON),
    ]


@pytest.mark.parametrize(
    ("otherwise", "contradicted"), [(SupportLabel.NOT_STATED, 1), (SupportLabel.UNSUPPORTED, None)]
)
def test_contradictions_are_counted_only_by_a_judge_that_tells_them(
    otherwise: SupportLabel, contradicted: int | None
) -> None:
    """A single `unsupported` verdict means that the judge does not know contradictions: the count is None."""
    says = Says(contradicted={SUN: (0,)}, otherwise=otherwise)
    found = outcome(Faithfulness(), answered(f"{EARTH} {SUN}"), says)
    assert isinstance(found, Score)
    assert found.counts == {"statements": 2, "supported": 0, "contradicted": contradicted}


@pytest.mark.parametrize("metric", [Faithfulness(), ContextUtilization(), AnswerRelevancy()])
def test_a_repeated_statement_counts_once(metric: Metric) -> None:
    """Statements that are equal but for white space around them are judged once and counted once."""
    says = Says(
        grades={EARTH: 2},
        statements=(EARTH, f" {EARTH}", SUN, EARTH),
        supported={EARTH: (0,)},
        addressing={EARTH},
    )
    found = outcome(metric, answered(f"{EARTH} {SUN} And again."), says)
    judged = [question for question in says.asked if isinstance(question, (Support, Addresses))]
    assert [question.statement for question in judged] == [EARTH, SUN]
    assert isinstance(found, Score)
    statements = [each for each in found.evidence if each.about is EvidenceTarget.STATEMENT]
    assert [each.index for each in statements] == [0, 2]
    assert found.counts.get("statements", 2) == 2


def test_a_blank_context_keeps_its_number_and_supports_nothing() -> None:
    """Support sees every context in place; a verdict that rests on a blank one alone does not count."""
    sample = answered(f"{EARTH} {SUN}", contexts=["", SUN])
    says = Says(grades={SUN: 1}, supported={EARTH: (0,), SUN: (0, 1)})
    assert value(Faithfulness(), sample, says) == 0.5
    assert Support(SUN, ("", SUN)) in says.asked
    assert value(ContextUtilization(), sample, says) == 1.0


def test_utilization_is_the_used_share_of_the_relevant() -> None:
    """Of three relevant contexts the response rests on one; an irrelevant one that it uses counts nowhere."""
    sample = answered(f"{EARTH} {SUN}", contexts=[EARTH, SUN, MOON, "Other."])
    says = Says(grades={EARTH: 1, SUN: 2, MOON: 1}, supported={EARTH: (0, 3)})
    found = outcome(ContextUtilization(), sample, says)
    assert isinstance(found, Score)
    assert found.value == pytest.approx(1 / 3)
    assert found.counts == {"contexts": 4, "relevant": 3, "used": 1}


def test_utilization_can_fall_when_a_grade_rises() -> None:
    """Not monotone: one more relevant context that the response leaves out halves the share."""
    supported = {EARTH: (0,)}
    assert value(ContextUtilization(), answered(EARTH), Says({EARTH: 2}, supported=supported)) == 1.0
    assert value(ContextUtilization(), answered(EARTH), Says({EARTH: 2, SUN: 1}, supported=supported)) == 0.5


def test_utilization_saves_the_support_questions_where_nothing_is_relevant() -> None:
    """With no relevant context the value is undefined before any statement is judged."""
    says = Says()
    assert outcome(ContextUtilization(), answered(EARTH), says) == Undefined("no retrieved context is relevant")
    assert {type(question) for question in says.asked} == {Relevance, Statements}


def test_all_support_questions_stand_in_one_group() -> None:
    """Statements are judged in one group of their own, so that packs are the same in every metric."""
    sample = answered(f"{EARTH} {SUN}")
    for metric in (Faithfulness(), ContextUtilization()):
        groups = [group for step in steps(metric, sample) for group in step]
        assert tuple(Support(text, (EARTH, SUN)) for text in (EARTH, SUN)) in groups


@each_case(
    ("metric", "kinds"),
    [
        (Faithfulness(), [["noncommittal", "statements"], ["support"]]),
        (AnswerRelevancy(), [["noncommittal", "statements"], ["addresses"]]),
        (ContextUtilization(), [["relevance", "relevance", "statements"], ["support"]]),
        (ContextRecall(), [["statements"], ["support"]]),
    ],
)
def test_independent_questions_go_in_one_step(metric: Metric, kinds: list[list[str]]) -> None:
    """What does not wait for an answer is asked together: no metric takes more than two steps."""
    found = steps(metric, answered(EARTH, reference=EARTH))
    assert [[question.kind for group in step for question in group] for step in found] == kinds


@each_case("metric", [Faithfulness(), ContextUtilization(), AnswerRelevancy(), ContextRecall()])
def test_more_statements_than_a_text_can_make_fail(metric: Metric) -> None:
    """A judge that names more than one statement for four characters is not believed: the plan fails."""
    says = Says(grades={EARTH: 1}, statements=tuple(f"Claim {number}." for number in range(9)))
    with pytest.raises(AskFailed, match="9 statements were named of a text that can make at most 5"):
        outcome(metric, answered("It is.  And so is it.", reference="It is.  And so is it."), says)


def test_a_question_without_a_verdict_fails_the_plan() -> None:
    """No score is made of the statements that happened to be judged."""
    says = Says(failing=Failure(FailureKind.REFUSED, "no"))
    with pytest.raises(AskFailed, match="'noncommittal' got no verdict: no"):
        outcome(Faithfulness(), answered(EARTH), says)


def steps(metric: Metric, sample: Sample) -> list[Step]:
    """The steps of the plan, answered by a judge that finds contexts relevant and statements supported."""
    says = Says(grades={EARTH: 2}, supported={EARTH: (0,), SUN: (1,)})
    found: list[Step] = []
    plan = metric.plan(sample)
    try:
        found.append(next(plan))
        while True:
            found.append(plan.send(tuple(says(question) for group in found[-1] for question in group)))
    except StopIteration:
        return found


def test_a_short_reference_is_read_behind_the_question_it_answers() -> None:
    """A date supports little by itself; with its question it says when what was completed."""
    sample = Sample("s", user_input="When was it completed?", response="Late in that century.", reference="In 1889.")
    says = Says()
    outcome(AnswerCorrectness(), sample, says)
    held = {question.contexts for question in says.asked if isinstance(question, Support)}
    assert held == {("When was it completed?\n\nIn 1889.",), ("When was it completed?\n\nLate in that century.",)}
