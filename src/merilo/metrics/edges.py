"""The edge cases of the metrics, as a table that is computed and so always agrees with the code.

Each case is a sample and a judge that gives the best verdicts; a cell shows the metric's outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from merilo.data.sample import Context, Sample
from merilo.errors import MissingField
from merilo.judging.kinds.addresses import Addresses, AddressesVerdict
from merilo.judging.kinds.answered import Answered, AnsweredVerdict
from merilo.judging.kinds.entities import Entities, EntitiesVerdict
from merilo.judging.kinds.mentions import Mentions, MentionsVerdict
from merilo.judging.kinds.noncommittal import Noncommittal, NoncommittalVerdict
from merilo.judging.kinds.parts import Parts, PartsVerdict
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.judging.kinds.statements import Statements, StatementsVerdict
from merilo.judging.kinds.sufficiency import Sufficiency, SufficiencyLabel, SufficiencyVerdict
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict
from merilo.judging.kinds.usefulness import Usefulness, UsefulnessVerdict
from merilo.metrics.base import Metric, Score, Undefined, drive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    response="France is in Western Europe. Its capital is Paris.",
    reference="It is in Western Europe. The capital is Paris.",
    retrieved_context_ids=["europe", "paris"],
    reference_context_ids=["europe", "paris"],
)


def edges() -> tuple[Edge, ...]:
    """Return all cases, the usual one first."""
    return (
        Edge("the usual case", _USUAL, _good),
        Edge("nothing retrieved", replace(_USUAL, retrieved_contexts=(), retrieved_context_ids=()), _good),
        Edge("every context is blank", replace(_USUAL, retrieved_contexts=(Context(""), Context(" \n"))), _good),
        Edge(
            "one context",
            replace(_USUAL, retrieved_contexts=_USUAL.contexts[:1], retrieved_context_ids=("europe",)),
            _good,
        ),
        Edge("no context is relevant", _USUAL, _nothing_relevant),
        Edge("the response is blank", replace(_USUAL, response=" "), _good),
        Edge("the response declines to answer", _USUAL, _declines),
        Edge("the response makes no statement", _USUAL, _NoStatement(_USUAL.sentences("response"))),
        Edge("the reference is blank", replace(_USUAL, reference=""), _good),
        Edge("the reference makes no statement", _USUAL, _NoStatement(_USUAL.sentences("reference"))),
        Edge("the reference names no entity", _USUAL, _nothing_named),
        Edge("no context is named as relevant", replace(_USUAL, reference_context_ids=()), _good),
        Edge("the user input is blank", replace(_USUAL, user_input=""), _good),
        Edge("the user input asks for nothing", _USUAL, _nothing_asked),
        Edge("a needed field is missing", Sample("missing"), _good),
    )


def edge_outcome(metric: Metric, edge: Edge) -> Score | Undefined:
    """Return the outcome of the metric in this case; a missing field is Undefined, as in a run."""
    try:
        return drive(metric.plan(edge.sample), edge.answer)
    except MissingField as error:
        return Undefined(f"{error.field} is missing")


def edge_table(metrics: Mapping[str, Metric]) -> str:
    """Return the cases as a Markdown table: a row for each case, a column for each metric under its text.

    A cell is empty if the outcome is the same as in the usual case. A case that changes nothing has no row.
    """
    usual, *others = edges()
    header = ("", *(f"`{text}`" for text in metrics))
    rows = [header, ("---",) * len(header)]
    expected = [_cell(edge_outcome(metric, usual)) for metric in metrics.values()]
    rows.append((usual.name, *expected))
    for edge in others:
        cells = [_cell(edge_outcome(metric, edge)) for metric in metrics.values()]
        shown = ["" if cell == as_usual else cell for cell, as_usual in zip(cells, expected, strict=True)]
        if any(shown):
            rows.append((edge.name, *shown))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(outcome: Score | Undefined) -> str:
    return f"{outcome.value:g}" if isinstance(outcome, Score) else f"undefined: {outcome.reason}"


def _good(question: Question[Any]) -> Verdict:
    match question:
        case Relevance(sentences=sentences):
            return RelevanceVerdict(2, tuple(range(len(sentences))))
        case Usefulness(sentences=sentences):
            return UsefulnessVerdict(useful=True, evidence=tuple(range(len(sentences))))
        case Support(contexts=contexts):
            return SupportVerdict(SupportLabel.SUPPORTED, tuple(range(len(contexts))))
        case Sufficiency():
            return SufficiencyVerdict(SufficiencyLabel.SUFFICIENT)
        case Addresses():
            return AddressesVerdict(addresses=True)
        case Answered(sentences=sentences):
            return AnsweredVerdict(answered=True, evidence=tuple(range(len(sentences))))
        case Mentions(contexts=contexts):
            return MentionsVerdict(mentioned=True, evidence=tuple(range(len(contexts))))
        case _:
            guessed: Verdict = question.guess()
            return guessed


def _nothing_relevant(question: Question[Any]) -> Verdict:
    match question:
        case Relevance():
            return RelevanceVerdict(0)
        case Usefulness():
            return UsefulnessVerdict(useful=False)
        case _:
            return _good(question)


def _declines(question: Question[Any]) -> Verdict:
    match question:
        case Noncommittal():
            return NoncommittalVerdict(noncommittal=True)
        case Answered():
            return AnsweredVerdict(answered=False)
        case _:
            return _good(question)


def _nothing_asked(question: Question[Any]) -> Verdict:
    return PartsVerdict(()) if isinstance(question, Parts) else _good(question)


def _nothing_named(question: Question[Any]) -> Verdict:
    return EntitiesVerdict(()) if isinstance(question, Entities) else _good(question)


@dataclass(frozen=True, slots=True)
class _NoStatement:
    """A judge that finds no statement in one text."""

    sentences: tuple[str, ...]

    def __call__(self, question: Question[Any]) -> Verdict:
        if isinstance(question, Statements) and question.sentences == self.sentences:
            return StatementsVerdict(())
        return _good(question)
