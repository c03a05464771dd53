"""Context ranking: are the more relevant contexts ranked first? (nDCG)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.kinds.relevance import Relevance
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.formulas import ndcg
from merilo.metrics.steps import (
    BLANK_USER_INPUT,
    NOTHING_RELEVANT,
    NOTHING_RETRIEVED,
    about_contexts,
    checked_cutoff,
    is_blank,
    max_contexts,
    relevance_of_contexts,
)
from merilo.metrics.variants import RetrievalMetric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_ONE_CONTEXT = "one context has no order"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRanking(RetrievalMetric):
    """nDCG of the retrieved contexts: 1 if the more relevant ones are ranked first.

    Meaning: the more relevant contexts come first
    Formula: nDCG@k: sum of grade / log2(rank + 1) over the first k ranks, divided by the same sum for the same grades
        sorted.
    Questions: One Relevance question for each context that is not blank.
    Undefined: no context was retrieved | one context has no order | no retrieved context is relevant | the user input
        is blank
    Use: To compare rerankers, or to choose how many contexts to pass on (@k).
    Not: To see how good the contexts are: a retriever that returns three poor contexts in a good order scores 1. Use
        context_relevance.
    See: context_precision | context_relevance
    Source: Järvelin & Kekäläinen 2002 (ACM TOIS 20), linear gain, discount 1/log2(rank + 1).

    Without `k`, all ranks count. All contexts are judged whatever `k` is, because the ideal order needs them.

    The ideal order consists of the *retrieved* contexts, so the metric measures the order alone; context_recall
    measures what was missed.

    Not monotone in Relevance: a better grade at a low rank makes the order worse. Grades 2,0 give 1.0 and grades
    2,2,0,2 give less than 2,2,0,0.
    """

    name: ClassVar[str] = "context_ranking"
    contexts_judged_alone: ClassVar[bool] = True
    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = Kinds({Relevance})
    ranked: ClassVar[bool] = True
    not_monotone_in: ClassVar[Kinds] = frozenset({Relevance})

    k: int | None = None
    """The number of ranks that count, at least 1; None for all."""

    def __post_init__(self) -> None:
        checked_cutoff(self.name, self.k)

    def max_questions(self, sample: Sample) -> int:
        return max_contexts(sample)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        if not contexts:
            return Undefined(NOTHING_RETRIEVED)
        if len(contexts) == 1:
            return Undefined(_ONE_CONTEXT)
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        verdicts = yield from relevance_of_contexts(sample)
        value = ndcg([verdict.grade for verdict in verdicts], self.k)
        if value is None:
            return Undefined(NOTHING_RELEVANT)
        relevant = sum(verdict.grade >= 1 for verdict in verdicts)
        return Score(value, evidence=about_contexts(verdicts), counts={"contexts": len(verdicts), "relevant": relevant})


METRICS: Final = (ContextRanking,)
