"""A metric in one file: the graded relevance of the first retrieved context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from merilo.metrics import Card, Evidence, EvidenceTarget, Kinds, MetricDefaults, Relevance, Score, Undefined, ask

if TYPE_CHECKING:
    from merilo import Sample
    from merilo.metrics import Plan


@dataclass(frozen=True)
class FirstContextRelevance(MetricDefaults):
    """Grade of the first retrieved context / 2, in [0, 1]; undefined if nothing was retrieved."""

    name: ClassVar[str] = "first_context_relevance"
    version: ClassVar[int] = 1
    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = Kinds({Relevance})
    ranked: ClassVar[bool] = True
    card: ClassVar[Card] = Card(summary="Relevance of the first retrieved context.", family="context relevance")

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """Ask about the first context."""
        user_input = sample.require("user_input")
        if not user_input.strip():
            return Undefined("the user input is blank")
        first = next((each for each in sample.contexts if any(text.strip() for text in each.sentences)), None)
        if first is None:
            return Undefined("no text was retrieved")
        verdict = yield from ask(Relevance(user_input, first.sentences, language=sample.resolved_language))
        return Score(verdict.grade / 2, (Evidence(EvidenceTarget.CONTEXT, 0, verdict),))
