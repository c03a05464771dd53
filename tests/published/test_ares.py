"""ARES' labels: what counts as one, and what its parameters change."""

from typing import Any

import pytest
from each_case import each_case
from scripted_replies import scripted

from merilo.data.sample import Sample
from merilo.judging.ask import AskFailed
from merilo.judging.kinds.completion import CompletionVerdict
from merilo.judging.questions import Question
from merilo.metrics.base import Score, Undefined, drive
from merilo.metrics.contract import broken_laws
from merilo_published.ares import METRICS, AnswerFaithfulness, ContextRelevance, label_in

SAMPLE = Sample("s", user_input="q", retrieved_contexts=["one", "two"], response="a")


@each_case(
    ("reply", "label"),
    [
        ("[[Yes]]", True),
        ("[ No ]", False),
        ("[[No]], or rather [[Yes]]", True),
        ("[[Yes]], or rather [[No]]", True),
        ("[[yes]]", None),
        ("No", None),
        ("[[Yes, it is]]", None),
        ("", None),
    ],
)
def test_reading(reply: str, label: bool | None) -> None:
    """A label is Yes or No in brackets, spelled so; yes is looked for first."""
    assert label_in(reply) is label


def test_sane_reading() -> None:
    """The last label counts, and case does not, where the parameters say so."""
    assert label_in("[[Yes]], or rather [[No]]", yes_first=False) is False
    assert label_in("[[yes]]", match_case=False) is True


def test_documents_are_averaged() -> None:
    """Each document is judged by itself; a reply without a label counts 0 and is counted as a failed extraction."""
    outcome = drive(ContextRelevance().plan(SAMPLE), scripted("[[Yes]]", "Yes"))
    assert isinstance(outcome, Score)
    assert outcome.value == 0.5
    assert outcome.counts == {"contexts": 2, "yes": 1, "extraction_failed": 1}
    assert outcome.flags


def test_unread_may_fail() -> None:
    """A reply without a label fails the sample where it may not be scored 0."""
    with pytest.raises(AskFailed, match="neither"):
        drive(AnswerFaithfulness(unread_is_zero=False).plan(SAMPLE), scripted("Yes", "[[Yes]]"))


def test_nothing_to_judge() -> None:
    """Without a document, and with blank texts where these are not asked about, there is no value."""
    bare = Sample("s", user_input="q", retrieved_contexts=[], response="a")
    assert isinstance(drive(ContextRelevance().plan(bare), scripted()), Undefined)
    blank = Sample("s", user_input="q", retrieved_contexts=["one"], response=" ")
    assert isinstance(drive(AnswerFaithfulness(ask_blank=False).plan(blank), scripted()), Undefined)


@pytest.mark.parametrize("metric", METRICS)
def test_law(metric: Any) -> None:
    """Each of the three keeps every law of metrics."""

    def answer(question: Question[Any]) -> CompletionVerdict:
        return CompletionVerdict(("[[Yes]]", "[[No]]", "Yes")[question.content[0] % 3])

    assert set(broken_laws(metric(), answer=answer)) == set(metric.breaks)
