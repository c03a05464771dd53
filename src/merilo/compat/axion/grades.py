"""Relevance of all contexts together, for judges that grade and do not answer in free text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from merilo.judging.ask import ask
from merilo.judging.kinds.relevance import Relevance
from merilo.metrics.base import Card, Evidence, EvidenceTarget, Kinds, MetricDefaults, Score, Undefined

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedRelevance(MetricDefaults):
    """Relevance of the retrieved contexts, read as one text: 1 if they contain a part of the answer, otherwise 0.

    Formula: 1 for a Relevance grade of at least 1 on the sentences of all contexts, in order. Undefined if there is
    no sentence to judge. Source: the holistic mode in axion's documentation, asked as a grade.
    """

    name: ClassVar[str] = "joined_relevance"
    version: ClassVar[int] = 1
    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = Kinds({Relevance})
    card: ClassVar[Card] = Card(
        summary="1 if the retrieved contexts together contain a part of the answer, otherwise 0.",
        formula="1 for a grade of at least 1, otherwise 0.",
        questions="One Relevance question.",
        relatives=("context_relevance", "axion:contextual_relevancy"),
        family="axion",
    )

    def max_questions(self, sample: Sample) -> int:
        """Return 1, or 0 if nothing was retrieved."""
        return 1 if sample.retrieved_contexts else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        user_input, contexts = sample.require("user_input"), sample.contexts
        sentences = tuple(sentence for context in contexts for sentence in context.sentences)
        if not sentences:
            return Undefined("nothing was retrieved")
        verdict = yield from ask(Relevance(user_input, sentences, language=sample.resolved_language))
        value = float(verdict.grade >= 1)
        counts = {"contexts": len(contexts), "relevant": None}
        return Score(value, (Evidence(EvidenceTarget.TEXT, 0, verdict),), counts)
