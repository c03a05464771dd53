"""Answer relevancy: the fraction of the response's statements that address the question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import both
from merilo.judging.kinds.addresses import Addresses
from merilo.judging.kinds.noncommittal import Noncommittal
from merilo.judging.kinds.statements import Statements
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.steps import (
    BLANK_RESPONSE,
    BLANK_USER_INPUT,
    RESPONSE_STATES_NOTHING,
    addressing_of,
    credit_score,
    declines,
    is_blank,
    max_statements,
    statements_of,
    states_nothing,
)
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_DECLINES = "the response declines to answer"


@dataclass(frozen=True, slots=True)
class AnswerRelevancy(ResponseMetric):
    """Share of the response's statements that address the user input.

    Meaning: statements that address the question
    Formula: Statements that address the user input / distinct statements of the response. Each verdict counts as its
        probability if the judge's probabilities are averaged.
    Questions: One Noncommittal and one Statements question, and one Addresses question for each distinct statement.
    Undefined: the response is blank | the response declines to answer | the response makes no statement | the user
        input is blank
    Use: To find padding and answers to another question; needs neither contexts nor a reference.
    Not: To see whether the answer is right or complete. Also use faithfulness, or a metric with a reference.
    See: faithfulness
    Source: Counted in statements, as in DeepEval. | Not the answer relevance of Es et al. 2023 (arXiv 2309.15217),
        which generates questions.

    Whether they are true is not judged. Unlike in DeepEval, a refusal or a response without a statement is Undefined
    rather than a number, and a statement either addresses the input or does not.
    """

    name: ClassVar[str] = "answer_relevancy"
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Addresses, Noncommittal, Statements})

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
