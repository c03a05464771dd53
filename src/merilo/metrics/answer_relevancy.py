"""Answer relevancy: the fraction of the response's statements that address the question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import both
from merilo.metrics.base import Card, Family, MetricDefaults, Score, Undefined
from merilo.metrics.steps import (
    ADDRESSING_QUESTIONS,
    BLANK_RESPONSE,
    BLANK_USER_INPUT,
    COUNTED,
    RESPONSE_QUESTIONS,
    RESPONSE_STATES_NOTHING,
    addressing_of,
    credit_score,
    declines,
    is_blank,
    max_statements,
    statements_of,
    states_nothing,
)

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_DECLINES = "the response declines to answer"


@dataclass(frozen=True, slots=True)
class AnswerRelevancy(MetricDefaults):
    """Share of the response's statements that address the user input, in [0, 1].

    Whether they are true is not judged. Source: counted in statements, as in DeepEval's answer relevancy. Differences:
    a refusal or a response without a statement is Undefined rather than a number, and a statement either addresses the
    input or does not.
    """

    name: ClassVar[str] = "answer_relevancy"
    version: ClassVar[int] = 1
    needs = frozenset({"user_input", "response"})
    asks = RESPONSE_QUESTIONS.kinds | ADDRESSING_QUESTIONS.kinds
    card: ClassVar[Card] = Card(
        summary="Share of the response's statements that address the user input.",
        meaning="statements that address the question",
        formula=f"Statements that address the user input / distinct statements of the response. {COUNTED}",
        questions=f"{RESPONSE_QUESTIONS.text}, and {ADDRESSING_QUESTIONS.text}.",
        undefined=(BLANK_RESPONSE, _DECLINES, RESPONSE_STATES_NOTHING, BLANK_USER_INPUT),
        when="To find padding and answers to another question; needs neither contexts nor a reference.",
        when_not="To see whether the answer is right or complete. Also use faithfulness, or a metric with a reference.",
        relatives=("faithfulness",),
        sources=(
            "Counted in statements, as in DeepEval.",
            "Not the answer relevance of Es et al. 2023 (arXiv 2309.15217), which generates questions.",
        ),
        family=Family.RESPONSE,
    )

    def max_questions(self, sample: Sample) -> int:
        asked = max_statements(sample, "response")
        return 2 + asked if asked else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        if states_nothing(sample, "response"):
            return Undefined(BLANK_RESPONSE)
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        declined, statements = yield from both(declines(sample), statements_of(sample, "response"))
        if declined:
            return Undefined(_DECLINES)
        if not statements:
            return Undefined(RESPONSE_STATES_NOTHING)
        verdicts = yield from addressing_of(sample, statements)
        addressing = sum(verdict.addresses for verdict in verdicts)
        return credit_score(statements, verdicts, {"statements": len(statements), "addressing": addressing})


METRICS: Final = (AnswerRelevancy,)
