"""UMBRELA's labels: the order of the patterns, and the prompts."""

from typing import Any

import pytest
from broken_laws import broken_laws
from each_case import each_case
from scripted_replies import scripted

from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging.kinds.responses import CompletionVerdict
from merilo.judging.questions import Question
from merilo.metrics.base import Score, Undefined, drive
from merilo_published.umbrela import Prompt, Relevance, label_in

SAMPLE = Sample("s", user_input="How long is the Rhine?", retrieved_contexts=["It is long.", "1,230 km."])


@each_case(
    ("reply", "label"),
    [
        ("##final score: 2", 2),
        ("M: 3\nT: 2\nO: 1", 1),
        ('{"M": 3, "T": 3, "O": 2}', 2),
        ("O: 1 ... O: 2", 2),
        ("##final score: 3\n##final score: 0", 0),
        ("**Final score**: 2", 2),
        ("There are 3 of them, so 2.", 2),
        ("Due to: 3 reasons. ##final score: 1", 3),
        ("The score is 2. Relevance category: 1", 2),
        ("The label is 2 of at most 3.", 2),
        ("final score: **1** (of 3)", 3),
        ("7", None),
        ("", None),
    ],
)
def test_reading(reply: str, label: int | None) -> None:
    """The first pattern that matches decides, and its last match; without any there is no label."""
    assert label_in(reply) == label


def test_mean_and_counts() -> None:
    """The value is the mean of the labels; a reply without one counts 0, is not valid and raises a flag."""
    outcome = drive(Relevance().plan(SAMPLE), scripted("##final score: 3", "no idea"))
    assert isinstance(outcome, Score)
    assert (outcome.value, outcome.counts, len(outcome.flags)) == (1.5, {"contexts": 2, "valid": 1}, 1)
    assert [piece.value for piece in outcome.evidence] == [3, 0]


def test_no_contexts() -> None:
    """Without a passage there is nothing to judge."""
    assert isinstance(
        drive(Relevance().plan(Sample("s", user_input="q", retrieved_contexts=[])), scripted()), Undefined
    )


def test_prompts() -> None:
    """Both prompts are there, and any other is refused."""
    drive(Relevance(prompt=Prompt.BASIC).plan(SAMPLE), scripted("1", "1"))
    with pytest.raises(UsageError, match="prompt=bing or prompt=basic"):
        Relevance(prompt="few-shot")


def test_law() -> None:
    """It keeps every law of metrics."""

    def answer(question: Question[Any]) -> CompletionVerdict:
        return CompletionVerdict(f"##final score: {question.content[0] % 4}")

    assert set(broken_laws(Relevance(), answer=answer)) == set(Relevance.breaks)
