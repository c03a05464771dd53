"""ALCE's citations: what is judged, the passages that are judged, and the laws that it keeps."""

from dataclasses import replace
from typing import Any

import pytest
from broken_laws import broken_laws

from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging.kinds.contexts import Support, SupportLabel, SupportVerdict
from merilo.judging.questions import Question
from merilo.metrics.base import Score, Undefined, drive
from merilo.metrics.contract import check_metric
from merilo_published.alce import METRICS, CitationPrecision, CitationRecall

SAMPLE = Sample(
    "s", user_input="q", retrieved_contexts=["It is old.", "It is big."], response="It is old [1]. It is big [9][2]."
)


def supports(question: Question[Any]) -> SupportVerdict:
    """A sentence is supported by a context that holds it."""
    assert isinstance(question, Support)
    named = tuple(at for at, text in enumerate(question.contexts) if question.statement.rstrip(".") in text)
    return SupportVerdict(SupportLabel.SUPPORTED if named else SupportLabel.NOT_STATED, named)


def needs_two(question: Question[Any]) -> SupportVerdict:
    """A sentence is supported by any two contexts, and alone by the first one of each sample only."""
    assert isinstance(question, Support)
    enough = len(question.contexts) > 1 or question.contexts[0].startswith("Paris")
    return SupportVerdict(SupportLabel.SUPPORTED, (0,)) if enough else SupportVerdict(SupportLabel.NOT_STATED)


def test_at_least_one_citation_is_judged() -> None:
    """A maximum below 1 is refused."""
    with pytest.raises(UsageError, match="max_citations"):
        CitationRecall(max_citations=0)


def test_passages_have_their_title() -> None:
    """The title in the metadata of a context is put before its text; evidence has the indices of the sample."""
    titled = {"text": "It is big.", "metadata": {"title": "Paris"}}
    asked: list[Any] = []

    def answer(question: Question[Any]) -> SupportVerdict:
        asked.append(question)
        return supports(question)

    sample = replace(SAMPLE, retrieved_contexts=["It is old.", titled], response="It is big [2].")
    outcome = drive(CitationRecall().plan(sample), answer)
    assert [each.contexts for each in asked] == [("Title: Paris\nIt is big.",)]
    assert isinstance(outcome, Score)
    assert [getattr(each.verdict, "evidence", None) for each in outcome.evidence] == [(1,)]


def test_a_hostile_response() -> None:
    """Huge numbers, blank contexts and sentences without text are unsupported and ask nothing."""
    hostile = f"[1]. It is [{'9' * 500}]. It is [1]."
    sample = replace(SAMPLE, retrieved_contexts=[" "], response=hostile)
    outcome = drive(CitationRecall().plan(sample), supports)
    assert isinstance(outcome, Score)
    assert outcome.value == 0
    assert isinstance(drive(CitationRecall().plan(replace(SAMPLE, response="")), supports), Undefined)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: str(metric.name))
def test_the_contract_is_met(metric: type[CitationRecall | CitationPrecision]) -> None:
    """Both metrics break no law: in precision a better verdict may make another citation irrelevant."""
    samples = [
        Sample(
            f"c{number}",
            retrieved_contexts=[f"Paris {number}.", f"Rome {number}.", f"Bern {number}."],
            response=f"It is in {number} [1]. The {number} is big [2][3]. All of {number} [7]. Number {number}.",
        )
        for number in range(6)
    ]
    check_metric(metric(), samples, answer=needs_two)
    assert broken_laws(metric(), samples, answer=needs_two) == {}
