"""Faithfulness: the fraction of the response's statements that the retrieved contexts support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import both
from merilo.judging.kinds.support import Support
from merilo.metrics.base import Card, Family, MetricDefaults, Score, Undefined
from merilo.metrics.steps import (
    BLANK_RESPONSE,
    COUNTED,
    RESPONSE_QUESTIONS,
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

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_DECLINES = "the response declines to answer and makes no claim"


@dataclass(frozen=True, slots=True)
class Faithfulness(MetricDefaults):
    """Share of the response's statements that the retrieved contexts support, in [0, 1].

    All contexts are judged together. Contradicted and not stated both count as 0; `counts` distinguishes them if the
    judge does (otherwise `contradicted` is None). 0 when nothing was retrieved or all contexts are blank: such an
    answer is unsupported.

    Source: Es et al. 2023, RAGAS (arXiv 2309.15217), section 3. Differences: whether the response declines is a
    separate question, a response without statements is Undefined, and the judge names the contexts.
    """

    name: ClassVar[str] = "faithfulness"
    version: ClassVar[int] = 1
    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    asks = RESPONSE_QUESTIONS.kinds | {Support}
    card: ClassVar[Card] = Card(
        summary="Share of the response's statements that the retrieved contexts support.",
        meaning="statements that the contexts support",
        formula=f"Supported statements / distinct statements of the response. {COUNTED}",
        questions=f"{RESPONSE_QUESTIONS.text}, and one Support question for each distinct statement.",
        undefined=(BLANK_RESPONSE, _DECLINES, RESPONSE_STATES_NOTHING),
        when="To find answers that go beyond the retrieved text, without a reference.",
        when_not="To see whether the answer is true or addresses the question: a faithful answer can repeat a wrong "
        "or an irrelevant context. Also use answer_relevancy.",
        relatives=("answer_relevancy", "context_utilization", "context_recall"),
        sources=("Faithfulness of Es et al. 2023, RAGAS (arXiv 2309.15217); refusals are Undefined here.",),
        family=Family.RESPONSE,
    )

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
