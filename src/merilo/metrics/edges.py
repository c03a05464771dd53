"""The edge cases of the metrics, computed for the page of each metric so that it always agrees with the code.

Each case is a sample and a judge that gives the best verdicts, unless the name of the case says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from merilo.data.context import Context
from merilo.data.sample import NUGGETS, Sample
from merilo.errors import MissingField
from merilo.judging.kinds.responses import Statements
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
    is_bad: Callable[[Question[Any]], bool] = lambda _: False
    """Return True for a question with the worst verdict."""

    def answer(self, question: Question[Any]) -> Verdict:
        """Return the verdict of the judge."""
        verdict: Verdict = question.worst() if self.is_bad(question) else question.best()
        return verdict


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
        Edge("the usual case", _USUAL),
        Edge("nothing was retrieved", replace(_USUAL, retrieved_contexts=(), retrieved_context_ids=())),
        Edge("every context is blank", replace(_USUAL, retrieved_contexts=(Context(""), Context(" \n")))),
        Edge(
            "there is one context",
            replace(_USUAL, retrieved_contexts=_USUAL.contexts[:1], retrieved_context_ids=("europe",)),
        ),
        Edge("no context is relevant", _USUAL, _worst_on("relevance", "usefulness")),
        Edge("the response is blank", replace(_USUAL, response=" ")),
        Edge("the response declines to answer", _USUAL, _worst_on("noncommittal", "answered")),
        Edge(
            "the response makes no statement",
            _USUAL,
            _states_nothing(_USUAL.sentences("response"), _UNCITED.sentences("response")),
        ),
        Edge("the response cites nothing", _UNCITED),
        Edge("the response cites a number without a context", replace(_USUAL, response="It is big [1][7].")),
        Edge("the question has no nuggets", replace(_USUAL, metadata={})),
        Edge("the reference is blank", replace(_USUAL, reference="")),
        Edge("the reference makes no statement", _USUAL, _states_nothing(_USUAL.sentences("reference"))),
        Edge("the reference names no entity", _USUAL, _worst_on("entities")),
        Edge("no context is named as relevant", replace(_USUAL, reference_context_ids=())),
        Edge("the user input is blank", replace(_USUAL, user_input="")),
        Edge("the user input asks for nothing", _USUAL, _worst_on("parts")),
        Edge("a needed field is missing", Sample("missing")),
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


def _worst_on(*kinds: str) -> Callable[[Question[Any]], bool]:
    return lambda question: question.kind in kinds


def _states_nothing(*texts: tuple[str, ...]) -> Callable[[Question[Any]], bool]:
    """Return True for a request for the statements of one of these texts, given as sentences."""
    return lambda question: isinstance(question, Statements) and question.sentences in texts
