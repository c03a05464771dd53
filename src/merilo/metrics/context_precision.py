"""Context precision: are relevant contexts ranked before the others? (average precision)"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.usefulness import Usefulness
from merilo.metrics.base import Evidence, Kinds, Score, Undefined, choice
from merilo.metrics.formulas import average_precision
from merilo.metrics.steps import (
    BLANK_REFERENCE,
    BLANK_USER_INPUT,
    NOTHING_RETRIEVED,
    about_contexts,
    is_blank,
    max_contexts,
    relevance_of_contexts,
    usefulness_of_contexts,
)
from merilo.metrics.variants import RetrievalMetric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


class RelevanceTarget(StrEnum):
    """Targets that a context can be relevant to."""

    QUESTION = "question"
    """The user input: the context answers a part of it (a Relevance grade of at least `at`)."""
    REFERENCE = "reference"
    """The reference: the context helps to arrive at it (Usefulness)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPrecision(RetrievalMetric):
    """Average precision of the retrieved contexts: 1 if all relevant ones are ranked first.

    Meaning: relevant contexts come first
    Formula: Mean, over the ranks r of relevant contexts, of (relevant among the first r) / r; 0 when none is relevant.
    Questions: One question for each context that is not blank: by default Relevance, shared with context_relevance,
        context_ranking and context_utilization; with against=reference Usefulness, which none of them asks.
    Undefined: no context was retrieved | the user input is blank | the reference is blank (against=reference)
    Use: To compare retrievers whose first contexts matter most; with at=2, if only a whole answer counts. With
        against=reference, if relevance means support for the reference and an additional question for each context is
        acceptable.
    Not: To count noise after the last relevant context, which has no effect here. Use context_relevance.
    See: context_ranking | context_relevance | context_recall
    Source: Buckley & Voorhees 2005 (in: TREC, MIT Press), over the relevant contexts retrieved.

    By default, whatever the data, a context is relevant to the user input (`against=question`): the question for each
    context is shared with context_relevance, context_ranking and context_utilization. Its grade must be 1 or more;
    with `at=2` it must be 2, the whole answer. `against=reference` asks one more question for each context: about 40 %
    more tokens together with context_relevance, context_recall and faithfulness. The two forms are not comparable.
    A context without any sentence is irrelevant without a question.

    Not monotone in Relevance and Usefulness: relevant flags 1,0,0,0,0 give 1.0, and 1,0,0,0,1 give 0.7.
    """

    name: ClassVar[str] = "context_precision"
    contexts_judged_alone: ClassVar[bool] = True
    ranked: ClassVar[bool] = True
    not_monotone_in: ClassVar[Kinds] = frozenset({Relevance, Usefulness})

    against: RelevanceTarget = RelevanceTarget.QUESTION
    at: int = 1
    """The lowest grade of a relevant context, 1 or 2; for `against=question` only."""

    def __post_init__(self) -> None:
        if self.at not in (1, 2):
            raise UsageError(f"Metric {self.name!r} takes at=1 or at=2, got at={self.at}.")
        member = choice(RelevanceTarget, self.against, metric=self.name, parameter="against")
        object.__setattr__(self, "against", member)
        if self.at != 1 and member is RelevanceTarget.REFERENCE:
            raise UsageError(f"Metric {self.name!r} takes at={self.at} with against=question only.")

    @property
    def needs(self) -> frozenset[str]:
        """The user input and the contexts, and the reference with `against=reference`."""
        common = frozenset({"user_input", "retrieved_contexts"})
        return common | {"reference"} if self.against is RelevanceTarget.REFERENCE else common

    @property
    def asks(self) -> Kinds:
        """Relevance or Usefulness."""
        return frozenset({Usefulness if self.against is RelevanceTarget.REFERENCE else Relevance})

    def max_questions(self, sample: Sample) -> int:
        return max_contexts(sample)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        if self.against is RelevanceTarget.REFERENCE and is_blank(sample.require("reference")):
            return Undefined(BLANK_REFERENCE)
        if not contexts:
            return Undefined(NOTHING_RETRIEVED)
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        flags, evidence = yield from self._judged(sample)
        return Score(
            average_precision(flags), evidence=evidence, counts={"contexts": len(flags), "relevant": sum(flags)}
        )

    def _judged(self, sample: Sample) -> Plan[tuple[list[bool], tuple[Evidence, ...]]]:
        match self.against:
            case RelevanceTarget.QUESTION:
                graded = yield from relevance_of_contexts(sample)
                return [verdict.grade >= self.at for verdict in graded], about_contexts(graded)
            case RelevanceTarget.REFERENCE:
                useful = yield from usefulness_of_contexts(sample)
                return [verdict.useful for verdict in useful], about_contexts(useful)


METRICS: Final = (ContextPrecision,)
