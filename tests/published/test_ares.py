"""ARES' labels: what counts as one, and their mean."""

from typing import Any

import pytest
from broken_laws import broken_laws
from each_case import each_case
from scripted_replies import scripted

from merilo.data.sample import Sample
from merilo.judging.kinds.responses import CompletionVerdict
from merilo.judging.questions import Question
from merilo.metrics.base import Score, Undefined, drive
from merilo_published.ares import METRICS, ContextRelevance, label_in

SAMPLE = Sample("s", user_input="q", retrieved_contexts=["one", "two"], response="a")


@each_case(
    ("reply", "label"),
    [
        ("[[Yes]]", True),
        ("[ No ]", False),
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


def test_documents_are_averaged() -> None:
    """Each document is judged by itself; a reply without a label counts 0 and is counted as a failed extraction."""
    outcome = drive(ContextRelevance().plan(SAMPLE), scripted("[[Yes]]", "Yes"))
    assert isinstance(outcome, Score)
    assert outcome.value == 0.5
    assert outcome.counts == {"contexts": 2, "yes": 1, "extraction_failed": 1}
    assert outcome.flags


def test_nothing_to_judge() -> None:
    """Without a document there is no value."""
    bare = Sample("s", user_input="q", retrieved_contexts=[], response="a")
    assert isinstance(drive(ContextRelevance().plan(bare), scripted()), Undefined)


@pytest.mark.parametrize("metric", METRICS)
def test_law(metric: Any) -> None:
    """Each of the three keeps every law of metrics."""

    def answer(question: Question[Any]) -> CompletionVerdict:
        return CompletionVerdict(("[[Yes]]", "[[No]]", "Yes")[question.content[0] % 3])

    assert set(broken_laws(metric(), answer=answer)) == set(metric.breaks)
