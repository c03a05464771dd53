"""Context sufficiency: are the retrieved contexts together enough to answer?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.kinds.sufficiency import Sufficiency
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.steps import BLANK_USER_INPUT, is_blank, max_contexts, sufficiency_of
from merilo.metrics.variants import RetrievalMetric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True)
class ContextSufficiency(RetrievalMetric):
    """Sufficiency of the retrieved contexts together for answering the user input.

    Meaning: the contexts hold the answer
    Formula: Sufficient 1, partly 0.5, insufficient 0; the probability of sufficient if the judge's probabilities are
        averaged.
    Questions: One Sufficiency question.
    Undefined: the user input is blank
    Use: To distinguish the retriever's errors from the generator's, without a reference.
    Not: To see how much noise there is: noise does not lower the score. Use context_relevance.
    See: context_recall | context_relevance | faithfulness
    Source: Joren et al. 2024, Sufficient Context (arXiv 2411.06037); the middle label is merilo's.

    Nothing retrieved, or only blank contexts, is insufficient without a question.

    The label of Joren et al. is binary. `partly` is for questions of several parts of which the contexts answer some.
    """

    name: ClassVar[str] = "context_sufficiency"
    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = Kinds({Sufficiency})

    def max_questions(self, sample: Sample) -> int:
        return 1 if max_contexts(sample) else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, _ = sample.require("user_input"), sample.contexts
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        verdict = yield from sufficiency_of(sample)
        evidence = (Evidence(EvidenceTarget.TEXT, 0, verdict),)
        return Score(verdict.credit, evidence=evidence, averaged=verdict.averaged)


METRICS: Final = (ContextSufficiency,)
