"""Context utilization: the fraction of the relevant contexts that the response uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import both
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.support import Support
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.steps import (
    BLANK_RESPONSE,
    BLANK_USER_INPUT,
    NOTHING_RELEVANT,
    NOTHING_RETRIEVED,
    about_contexts,
    about_statements,
    check_evidence,
    is_blank,
    max_contexts,
    most_support,
    relevance_of_contexts,
    statements_of,
    states_nothing,
    support_of,
)
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True)
class ContextUtilization(ResponseMetric):
    """Share of the relevant contexts that the response uses.

    Meaning: relevant contexts that are used
    Formula: Contexts of grade ≥ 1 that support a statement of the response / contexts of grade ≥ 1.
    Questions: One Relevance question for each context that is not blank, one Statements question, and one Support
        question for each distinct statement if a context is relevant; all of them shared with context_relevance and
        faithfulness.
    Undefined: no context was retrieved | no retrieved context is relevant | the response is blank | the user input is
        blank
    Use: To see whether the generator ignores contexts that the retriever found.
    Not: If several contexts state the same: using one of them is enough for a good answer, and a judge may name one or
        all.
    See: context_relevance | faithfulness
    Source: merilo's own; compare the reference-based one of RAGChecker (arXiv 2408.08067).

    A context supports a statement when the judge names it as evidence of a supported verdict. A response that makes no
    statement uses nothing: 0, also if it declines to answer.

    That of RAGChecker is over the claims of the reference; this one needs no reference and counts contexts.

    Not monotone in Relevance: one more relevant context that the response does not use lowers the share.
    """

    name: ClassVar[str] = "context_utilization"
    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    asks = Kinds({Relevance, Statements, Support})
    not_monotone_in: ClassVar[Kinds] = frozenset({Relevance})

    def max_questions(self, sample: Sample) -> int:
        return max_contexts(sample) + 1 + most_support(sample, "response")

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        if states_nothing(sample, "response"):
            return Undefined(BLANK_RESPONSE)
        if not contexts:
            return Undefined(NOTHING_RETRIEVED)
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        if all(is_blank(context) for context in contexts):
            return Undefined(NOTHING_RELEVANT)
        graded, statements = yield from both(relevance_of_contexts(sample), statements_of(sample, "response"))
        relevant = {index for index, verdict in enumerate(graded) if verdict.grade >= 1}
        if not relevant:
            return Undefined(NOTHING_RELEVANT)
        verdicts = yield from support_of(sample, statements)
        check_evidence(Support("", ()), verdicts)
        used = relevant & {index for each in verdicts if each.supported for index in each.evidence}
        return Score(
            len(used) / len(relevant),
            evidence=(*about_contexts(graded), *about_statements(statements, verdicts)),
            counts={"contexts": len(contexts), "relevant": len(relevant), "used": len(used)},
        )


METRICS: Final = (ContextUtilization,)
