"""The edge cases of the metrics, computed for the page of each metric so that it always agrees with the code.

Each case is a sample and a judge that gives the best verdicts, unless the name of the case says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from merilo.data.context import Context
from merilo.data.sample import NUGGETS, Sample
from merilo.errors import MissingField
from merilo.judging.kinds.statements import Statements
from merilo.metrics.base import Metric, Score, Undefined, drive

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge case: its name, its sample, and its judge."""

    name: str
    sample: Sample
    answer: Callable[[Question[Any]], Verdict]


_USUAL: Final = Sample(
    "usual",
    user_input="Where is France, and what is its capital?",
    retrieved_contexts=["France is in Western Europe.", "Paris is the capital of France."],
    response="France is in Western Europe [1]. Its capital is Paris [2].",
    reference="It is in Western Europe. The capital is Paris.",
    reference_contexts=["France is in Western Europe.", "Paris is the capital of France."],
    retrieved_context_ids=["europe", "paris"],
    reference_context_ids=["europe", "paris"],
    metadata={NUGGETS: ["France is in Western Europe.", "Its capital is Paris."]},
)
_UNCITED: Final = replace(_USUAL, response="France is in Western Europe. Its capital is Paris.")


def edges() -> tuple[Edge, ...]:
    """Return all cases, the usual one first."""
    return (
        Edge("the usual case", _USUAL, _good),
        Edge("nothing was retrieved", replace(_USUAL, retrieved_contexts=(), retrieved_context_ids=()), _good),
        Edge("every context is blank", replace(_USUAL, retrieved_contexts=(Context(""), Context(" \n"))), _good),
        Edge(
            "there is one context",
            replace(_USUAL, retrieved_contexts=_USUAL.contexts[:1], retrieved_context_ids=("europe",)),
            _good,
        ),
        Edge("no context is relevant", _USUAL, _worst_on("relevance", "usefulness")),
        Edge("the response is blank", replace(_USUAL, response=" "), _good),
        Edge("the response declines to answer", _USUAL, _worst_on("noncommittal", "answered")),
        Edge(
            "the response makes no statement",
            _USUAL,
            _states_nothing(_USUAL.sentences("response"), _UNCITED.sentences("response")),
        ),
        Edge("the response cites nothing", _UNCITED, _good),
        Edge("the response cites a number without a context", replace(_USUAL, response="It is big [1][7]."), _good),
        Edge("the question has no nuggets", replace(_USUAL, metadata={}), _good),
        Edge("the reference is blank", replace(_USUAL, reference=""), _good),
        Edge("the reference makes no statement", _USUAL, _states_nothing(_USUAL.sentences("reference"))),
        Edge("the reference names no entity", _USUAL, _worst_on("entities")),
        Edge("no context is named as relevant", replace(_USUAL, reference_context_ids=()), _good),
        Edge("the user input is blank", replace(_USUAL, user_input=""), _good),
        Edge("the user input asks for nothing", _USUAL, _worst_on("parts")),
        Edge("a needed field is missing", Sample("missing"), _good),
    )


def edge_outcome(metric: Metric, edge: Edge) -> Score | Undefined:
    """Return the outcome of the metric in this case; a missing field is Undefined, as in a run."""
    try:
        return drive(metric.plan(edge.sample), edge.answer)
    except MissingField as error:
        return Undefined(f"{error.field} is missing")


def edge_scores(metric: Metric) -> dict[str, float]:
    """Return the lowest and highest possible scores by the case that gives them, unless the usual case does."""
    usual, *others = edges()
    expected = edge_outcome(metric, usual)
    outcomes = {edge.name: edge_outcome(metric, edge) for edge in others}
    scores = {name: outcome.value for name, outcome in outcomes.items() if isinstance(outcome, Score)}
    at_ends = {name: value for name, value in scores.items() if value in metric.range}
    return {name: value for name, value in at_ends.items() if isinstance(expected, Score) and value != expected.value}


def _good(question: Question[Any]) -> Verdict:
    best: Verdict = question.best()
    return best


def _worst_on(*kinds: str) -> Callable[[Question[Any]], Verdict]:
    """Return a judge that gives the worst verdict on these kinds of questions."""

    def answer(question: Question[Any]) -> Verdict:
        verdict: Verdict = question.worst() if question.kind in kinds else question.best()
        return verdict

    return answer


def _states_nothing(*texts: tuple[str, ...]) -> Callable[[Question[Any]], Verdict]:
    """Return a judge that finds no statement in these texts, given as sentences."""

    def answer(question: Question[Any]) -> Verdict:
        empty = isinstance(question, Statements) and question.sentences in texts
        verdict: Verdict = question.worst() if empty else question.best()
        return verdict

    return answer
