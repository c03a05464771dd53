"""TruLens' ratings: the reading of replies, and what is rated."""

import json
from typing import Any

import pytest
from broken_laws import broken_laws
from each_case import each_case
from scripted_replies import scripted

from merilo.data.sample import Sample
from merilo.judging.ask import AskFailed
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.metrics.base import Score, drive
from merilo_published.trulens import METRICS, ContextRelevance, Groundedness

ONE = Sample("s", user_input="q", retrieved_contexts=["one"])
TWO = Sample("s", user_input="q", retrieved_contexts=["one", "two"])
SAID = Sample(
    "s", user_input="q", response="Sure, I can help. The Rhine is long. It flows north.", retrieved_contexts=["one"]
)


def rating(reply: str, **parameters: Any) -> float:
    """The rating read from a reply about a single context."""
    outcome = drive(ContextRelevance(**parameters).plan(ONE), scripted(reply))
    assert isinstance(outcome, Score)
    (piece,) = outcome.evidence
    assert piece.value is not None
    return piece.value


@each_case(
    ("reply", "expected"),
    [
        ("2", 2),
        ("-1", 1),
        ("0.9", 0),
        ("3.9", 3),
        ("-0.5", 0),
        ("9" * 400 + ".0, so 2", 2),
        ('{"score": 2}', 2),
        ('{"score": 1.5, "criteria": "0"}', 1.5),
        ('{"score": "2"}', 2),
        ('{"score": "high"}', -1),
        ('{"score": null}', -1),
        ("[1, 2, 9]", 1.5),
        ("[7, 8]", -1),
        ("[]", -1),
        ('{"rating": 2}', 2),
    ],
)
def test_reading(reply: str, expected: float) -> None:
    """JSON with a score first, a list by its mean, else the lowest of the numbers that lie on the scale once cut."""
    assert rating(reply) == expected


@each_case("reply", ["none", "", "7", '{"score": 4}', '{"score": -1}'])
def test_unreadable(reply: str) -> None:
    """A reply without a number on the scale, and a JSON score outside it, fail the sample."""
    with pytest.raises(AskFailed):
        rating(reply)


def test_minus_one_is_scored_and_flagged() -> None:
    """A score that is no number is the rating -1, which makes the value negative."""
    outcome = drive(ContextRelevance().plan(ONE), scripted('{"score": "high"}'))
    assert isinstance(outcome, Score)
    assert outcome.value == pytest.approx(-1 / 3)
    assert outcome.flags


def test_groundedness() -> None:
    """Sentences that tell nothing are left out, each other one is rated by itself."""
    kept = json.dumps(["The Rhine is long.", "It flows north."])
    outcome = drive(Groundedness().plan(SAID), scripted(kept, '{"score": 3}', '{"score": 0}'))
    assert isinstance(outcome, Score)
    assert outcome.value == 0.5
    assert [piece.text for piece in outcome.evidence] == ["The Rhine is long.", "It flows north."]


def test_groundedness_reads_a_python_list() -> None:
    """The list of what is left may be written as in Python."""
    outcome = drive(Groundedness().plan(SAID), scripted("The list: ['It flows north.']", "3"))
    assert isinstance(outcome, Score)
    assert (outcome.value, outcome.flags) == (1.0, ())


def test_groundedness_without_a_list_rates_all() -> None:
    """Where the list cannot be read every sentence is rated, with a flag."""
    outcome = drive(Groundedness().plan(SAID), scripted("I keep two.", "3", "3", "0"))
    assert isinstance(outcome, Score)
    assert outcome.value == pytest.approx(2 / 3)
    assert outcome.flags


def test_groundedness_of_nothing() -> None:
    """Nothing left to rate is 0, as published; list markers are no text."""
    said = Sample("s", response="- Hello.", retrieved_contexts=["one"])
    outcome = drive(Groundedness().plan(said), scripted("[]"))
    assert isinstance(outcome, Score)
    assert outcome.value == 0.0


@each_case("metric", METRICS)
def test_law(metric: Any) -> None:
    """Each keeps every law of metrics but those that it names."""

    def answer(question: Question[Any]) -> CompletionVerdict | None:
        assert isinstance(question, Completion)
        if question.rubric.endswith("telling.v1"):
            return None
        values = dict(zip(question.names, question.values, strict=True))
        return CompletionVerdict(str(len(values.get("statement") or values.get("context") or "") % 4))

    assert set(broken_laws(metric(), answer=answer)) == set(metric.breaks)
