"""RAGChecker: the tables, the requests behind them, and what its parameters change."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from broken_laws import broken_laws
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging import rubric
from merilo.judging.ask import AskFailed
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.metrics.base import Score, drive
from merilo.metrics.registry import parse_metric
from merilo_published.ragchecker import FORMULAS, METRICS, Tables

TRUTH = {"r1": {"the reference", "p1"}, "r2": {"p2"}, "r3": set[str](), "g1": {"p1", "the response"}, "g2": set[str]()}
"""Each claim, and the texts that entail it."""
SAMPLE = Sample(
    "s", user_input="q", response="the response", reference="the reference", retrieved_contexts=["p1", "p2", "p3"]
)


@dataclass
class Checker:
    """Extracts and checks by the table above; keeps what it was asked."""

    claims: dict[str, list[str]] = field(
        default_factory=lambda: {"the response": ["r1", "r2", "r3"], "the reference": ["g1", "g2"]}
    )
    label: str = "Neutral"
    asked: list[dict[str, str]] = field(default_factory=list)

    def __call__(self, question: Question[Any]) -> CompletionVerdict:
        assert isinstance(question, Completion)
        rubric.render(question)
        values = dict(zip(question.names, question.values, strict=True))
        self.asked.append(values)
        if "claims" not in values:
            return CompletionVerdict(json.dumps({"claims": self.claims[values["text"]]}))
        claims = [line.partition(". ")[2] for line in values["claims"].splitlines()]
        entailed = [values["text"] in TRUTH.get(claim, ()) for claim in claims]
        return CompletionVerdict(json.dumps({"labels": ["Entailment" if yes else self.label for yes in entailed]}))


@each_case(
    ("name", "value"),
    [
        ("precision", 1 / 3),
        ("recall", 1 / 2),
        ("f1", 2 / 5),
        ("claim_recall", 1 / 2),
        ("context_precision", 1 / 3),
        ("context_utilization", 1.0),
        ("noise_sensitivity_in_relevant", 0.0),
        ("noise_sensitivity_in_irrelevant", 1 / 3),
        ("hallucination", 1 / 3),
        ("self_knowledge", 0.0),
        ("faithfulness", 2 / 3),
    ],
)
def test_values(name: str, value: float) -> None:
    """Each metric asks for the tables that it reads, and computes by them."""
    (metric,) = (each for each in METRICS if each.name == f"ragchecker:{name}")
    outcome = drive(metric().plan(SAMPLE), Checker())
    assert isinstance(outcome, Score)
    assert outcome.value == pytest.approx(value)


def test_requests() -> None:
    """Claims are checked at most five at a time, against each passage: 1 + 2 · 3 requests for seven claims."""
    checker = Checker({"the reference": [f"c{number}" for number in range(7)]})
    drive(parse_metric("ragchecker:claim_recall").plan(SAMPLE), checker)
    assert len(checker.asked) == 7
    assert max(len(values["claims"].splitlines()) for values in checker.asked[1:]) == 5


def test_contradiction_is_not_entailment() -> None:
    """A contradicted claim counts like one that is left open."""
    outcome = drive(parse_metric("ragchecker:f1").plan(SAMPLE), Checker(label="Contradiction"))
    assert isinstance(outcome, Score)
    assert outcome.value == pytest.approx(0.4)


@pytest.mark.parametrize("reply", ["no JSON", '{"labels": ["Entailment"]}', '{"labels": ["Maybe", "Neutral"]}'])
def test_unreadable_labels(reply: str) -> None:
    """A reply that does not label every claim with one of the three words fails the sample."""

    def answer(question: Question[Any]) -> CompletionVerdict:
        assert isinstance(question, Completion)
        return CompletionVerdict('{"claims": ["a", "b"]}' if question.rubric.endswith("claims.v1") else reply)

    with pytest.raises(AskFailed):
        drive(parse_metric("ragchecker:claim_recall").plan(SAMPLE), answer)


def test_more_claims_than_a_text_can_make() -> None:
    """A reply that lists claims without end fails the sample, so that the number of requests has a bound."""
    with pytest.raises(AskFailed, match="51 claims"):
        drive(parse_metric("ragchecker:claim_recall").plan(SAMPLE), Checker({"the reference": ["c"] * 51}))


def test_claims_per_prompt() -> None:
    """At least one claim stands in a prompt."""
    with pytest.raises(UsageError, match="claims_per_prompt"):
        parse_metric("ragchecker:f1(claims_per_prompt=0)")


@given(st.integers(1, 4).flatmap(lambda passages: st.lists(st.tuples(st.booleans(), *[st.booleans()] * passages))))
def test_three_shares_add_up(rows: list[tuple[bool, ...]]) -> None:
    """Faithfulness, hallucination and self-knowledge are 1 together wherever there are a claim and a passage."""
    tables = Tables(answer2response=tuple(row[0] for row in rows), retrieved2response=tuple(row[1:] for row in rows))
    parts = [FORMULAS[name](tables) for name in ("faithfulness", "hallucination", "self_knowledge")]
    assert sum(parts) == pytest.approx(1.0 if rows else 0.0)


def test_no_passages() -> None:
    """Without a passage no claim is hallucinated and none is knowledge of the model's own: both shares are 0."""
    tables = Tables(answer2response=(True, False), retrieved2response=((), ()))
    assert [FORMULAS[name](tables) for name in ("hallucination", "self_knowledge", "faithfulness")] == [0.0, 0.0, 0.0]


def test_no_tables() -> None:
    """Without any label all eleven are 0."""
    assert {formula(Tables()) for formula in FORMULAS.values()} == {0.0}


@pytest.mark.usefixtures("seeds")
@each_case("metric", METRICS)
def test_law(metric: Any) -> None:
    """Each keeps every law of metrics but those that it names."""

    def answer(question: Question[Any]) -> CompletionVerdict:
        assert isinstance(question, Completion)
        values = dict(zip(question.names, question.values, strict=True))
        if "claims" not in values:
            claims = values["text"].split(". ")
            return CompletionVerdict(json.dumps({"claims": claims if values["text"] else []}))
        words = [len(line) + len(values["text"]) for line in values["claims"].splitlines()]
        return CompletionVerdict(json.dumps({"labels": [("Neutral", "Entailment")[word % 2] for word in words]}))

    assert set(broken_laws(metric(), answer=answer)) == set(metric.breaks)
