"""Context recall: the fraction of the reference's statements that the retrieved contexts support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.support import Support
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.steps import (
    BLANK_REFERENCE,
    REFERENCE_STATES_NOTHING,
    credit_score,
    judged_support_of,
    max_statements,
    most_support,
    statements_of,
    states_nothing,
    support_counts,
)
from merilo.metrics.variants import RetrievalMetric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True)
class ContextRecall(RetrievalMetric):
    """Share of the reference's statements that the retrieved contexts support.

    Meaning: the reference found in the contexts
    Formula: Supported statements / distinct statements of the reference. Each verdict counts as its probability if the
        judge's probabilities are averaged.
    Questions: One Statements question, and one Support question for each distinct statement.
    Undefined: the reference is blank | the reference makes no statement
    Use: To see whether the retriever finds everything that a right answer needs; requires a reference.
    Not: Without references: context_sufficiency judges whether the contexts are enough. With references that state more
        than the question asks, it is too strict.
    See: context_sufficiency | context_precision | faithfulness
    Source: Statement-based recall as in the ragas library, after Es et al. 2023 (arXiv 2309.15217).

    All contexts are judged together; contradicted counts like not stated. 0 when nothing was retrieved or all contexts
    are blank; no Support question is asked then. If there is a user input, it makes the statements of a short reference
    ("In 1889.") complete; it is not required.

    Unlike in the ragas library, statements are judged one by one, the judge names the contexts, and an unreadable reply
    is never a number.
    """

    name: ClassVar[str] = "context_recall"
    needs = frozenset({"reference", "retrieved_contexts"})
    asks = Kinds({Statements, Support})

    def max_questions(self, sample: Sample) -> int:
        asked = max_statements(sample, "reference")
        return 1 + most_support(sample, "reference") if asked else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("retrieved_contexts")
        if states_nothing(sample, "reference"):
            return Undefined(BLANK_REFERENCE)
        statements = yield from statements_of(sample, "reference")
        if not statements:
            return Undefined(REFERENCE_STATES_NOTHING)
        judged, verdicts = yield from judged_support_of(sample, statements)
        return credit_score(judged, verdicts, support_counts(verdicts, len(statements) - len(judged)))


METRICS: Final = (ContextRecall,)
