"""Context sufficiency: are the retrieved contexts together enough to answer?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.kinds.sufficiency import Sufficiency
from merilo.metrics.base import Card, Evidence, EvidenceTarget, Family, Kinds, MetricDefaults, Score, Undefined
from merilo.metrics.steps import BLANK_USER_INPUT, is_blank, max_contexts, sufficiency_of

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True)
class ContextSufficiency(MetricDefaults):
    """Sufficiency of the retrieved contexts together for answering the user input, in [0, 1].

    Nothing retrieved, or only blank contexts, is insufficient without a question.

    Source: Joren et al. 2024, "Sufficient Context" (arXiv 2411.06037), where the label is binary. `partly` is
    merilo's addition, for questions of several parts of which the contexts answer some.
    """

    name: ClassVar[str] = "context_sufficiency"
    version: ClassVar[int] = 1
    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = Kinds({Sufficiency})
    card: ClassVar[Card] = Card(
        summary="Sufficiency of the retrieved contexts together for answering the user input.",
        meaning="the contexts hold the answer",
        formula="Sufficient 1, partly 0.5, insufficient 0; the probability of sufficient if the judge's probabilities "
        "are averaged.",
        questions="One Sufficiency question.",
        undefined=(BLANK_USER_INPUT,),
        when="To distinguish the retriever's errors from the generator's, without a reference.",
        when_not="To see how much noise there is: noise does not lower the score. Use context_relevance.",
        relatives=("context_recall", "context_relevance", "faithfulness"),
        sources=("Joren et al. 2024, Sufficient Context (arXiv 2411.06037); the middle label is merilo's.",),
        family=Family.RETRIEVAL,
    )

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
