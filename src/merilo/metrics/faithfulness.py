"""Faithfulness: the fraction of the response's statements that the retrieved contexts support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import both
from merilo.judging.kinds.noncommittal import Noncommittal
from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.support import Support
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.steps import (
    BLANK_RESPONSE,
    RESPONSE_STATES_NOTHING,
    credit_score,
    declines,
    judged_support_of,
    max_statements,
    most_support,
    statements_of,
    states_nothing,
    support_counts,
)
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_DECLINES = "the response declines to answer and makes no claim"


@dataclass(frozen=True, slots=True)
class Faithfulness(ResponseMetric):
    """Share of the response's statements that the retrieved contexts support.

    Meaning: statements that the contexts support
    Formula: Supported statements / distinct statements of the response. Each verdict counts as its probability if the
        judge's probabilities are averaged.
    Questions: One Noncommittal and one Statements question, and one Support question for each distinct statement.
    Undefined: the response is blank | the response declines to answer and makes no claim | the response makes no
        statement
    Use: To find answers that go beyond the retrieved text, without a reference.
    Not: To see whether the answer is true or addresses the question: a faithful answer can repeat a wrong or an
        irrelevant context. Also use answer_relevancy.
    See: answer_relevancy | context_utilization | context_recall
    Source: Faithfulness of Es et al. 2023, RAGAS (arXiv 2309.15217); refusals are Undefined here.

    All contexts are judged together. Contradicted and not stated both count as 0; `counts` distinguishes them if the
    judge does (otherwise `contradicted` is None). 0 when nothing was retrieved or all contexts are blank: such an
    answer is unsupported.

    Unlike in RAGAS (section 3), whether the response declines is a separate question, a response without statements is
    Undefined, and the judge names the contexts.
    """

    name: ClassVar[str] = "faithfulness"
    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    asks = Kinds({Noncommittal, Statements, Support})

    def max_questions(self, sample: Sample) -> int:
        asked = max_statements(sample, "response")
        return 2 + most_support(sample, "response") if asked else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("user_input")
        sample.require("retrieved_contexts")
        if states_nothing(sample, "response"):
            return Undefined(BLANK_RESPONSE)
        declined, statements = yield from both(declines(sample), statements_of(sample, "response"))
        if declined:
            return Undefined(_DECLINES)
        if not statements:
            return Undefined(RESPONSE_STATES_NOTHING)
        judged, verdicts = yield from judged_support_of(sample, statements)
        return credit_score(judged, verdicts, support_counts(verdicts, len(statements) - len(judged)))


METRICS: Final = (Faithfulness,)
