"""AutoNuggetizer's scores: the reading of labels, flags, requests after an unreadable reply, and laws."""

import json
from typing import Any

import pytest
from broken_laws import broken_laws
from each_case import each_case
from scripted_replies import scripted

from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging.ask import AskFailed
from merilo.judging.kinds.responses import CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.synthetic import chance
from merilo.metrics.base import Score, Undefined, drive
from merilo_published.autonuggetizer import METRICS, AllScore

NUGGETS = [{"text": "One.", "vital": True}, {"text": "Two.", "vital": False}, {"text": "Three.", "vital": True}]
SAMPLE = Sample("s", user_input="q", response="r", metadata={"nuggets": NUGGETS})


def score(metric: Any, *texts: str) -> Score:
    """The score after these replies."""
    found = drive(metric.plan(SAMPLE), scripted(*texts))
    assert isinstance(found, Score), found
    return found


def test_counts_and_evidence() -> None:
    """Labels are counted; evidence has the value of each nugget."""
    found = score(AllScore(), '["support", "partial_support", "not_support"]')
    assert found.counts == {"nuggets": 3, "stated": 1, "partly_stated": 1}
    assert [(piece.text, piece.value) for piece in found.evidence] == [("One.", 1), ("Two.", 0.5), ("Three.", 0)]


def test_flags_of_what_was_scored_anyway() -> None:
    """Nuggets without a label are left out, another label counts as not supported, both with a flag."""
    assert score(AllScore(), '["support", "support"]').value == 1
    assert len(score(AllScore(), '["support", "support"]').flags) == 1
    assert score(AllScore(), '["support", "yes", "no"]').flags == ("another label was taken as not_support",)


def test_an_unreadable_reply_is_requested_again() -> None:
    """The temperature is 0, then 0.2, each time a new draw, up to `tries` requests; then the outcome is Failed."""
    answer = scripted("?", "[1]", '["support", "support", "support"]')
    outcome = drive(AllScore(tries=3).plan(SAMPLE), answer)
    assert isinstance(outcome, Score)
    assert [(each.temperature, each.draw) for each in answer.requests] == [(0, 0), (0.2, 0), (0.2, 1)]
    with pytest.raises(AskFailed, match="not a list of labels"):
        drive(AllScore(tries=2).plan(SAMPLE), scripted("?", "{}"))
    with pytest.raises(UsageError, match="tries"):
        AllScore(tries=0)


@each_case("reply", ["[" * 100_000, "(" * 5_000 + ")" * 5_000, "__import__('os')", "[1] * 10**9", "\0", ""])
def test_hostile_replies_are_unreadable(reply: str) -> None:
    """A reply is never run, and nesting, arithmetic or names make it unreadable."""
    with pytest.raises(AskFailed, match="not a list of labels"):
        drive(AllScore(tries=1).plan(SAMPLE), scripted(reply))


def test_nothing_to_count() -> None:
    """Without nuggets the score is undefined."""
    assert isinstance(drive(AllScore().plan(Sample("s", user_input="q", response="r")), scripted()), Undefined)


@each_case("metric", METRICS)
def test_the_contract_is_met(metric: type[AllScore]) -> None:
    """Every variant meets the contract, with labels that depend on the texts alone."""

    def answer(question: Question[Any]) -> CompletionVerdict:
        texts = json.loads(question.values[question.names.index("nuggets")])
        labels = ("support", "partial_support", "not_support")
        return CompletionVerdict(json.dumps([labels[int(3 * chance(0, text))] for text in texts]))

    assert set(broken_laws(metric(), answer=answer)) == set(metric.breaks)
