"""Id precision: the fraction of the retrieved ids that are relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from merilo.metrics.base import Card, Family, Kinds, Ordinary, Score, Undefined
from merilo.metrics.steps import NOTHING_RETRIEVED, NOTHING_TO_FIND, ranking_of

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True)
class IdPrecision(Ordinary):
    """Share of the retrieved ids that are relevant, in [0, 1]; their order does not matter.

    Formula: distinct retrieved ids in `reference_context_ids` / distinct retrieved ids. Undefined when nothing was
    retrieved, and when no id is named as relevant.

    Source: set precision of trec_eval (measure `set_P`); the id based context precision of the ragas library.
    """

    name: ClassVar[str] = "id_precision"
    version: ClassVar[int] = 1
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    asks = Kinds()
    card: ClassVar[Card] = Card(
        summary="Share of the retrieved ids that are relevant.",
        formula="Distinct retrieved ids that are relevant / distinct retrieved ids.",
        questions="None: ids are compared.",
        undefined=(NOTHING_TO_FIND, NOTHING_RETRIEVED),
        when="To see how much of the retrieved text is known to be relevant, at no cost.",
        when_not="If not all relevant ids are known: ids that were never judged count as irrelevant here. Use "
        "context_relevance.",
        relatives=("id_recall", "precision", "context_relevance"),
        sources=("Set precision of trec_eval (set_P); id based context precision of the ragas library.",),
        family=Family.RETRIEVAL,
    )

    def at_most(self, sample: Sample) -> int:
        """Return 0: ids are compared."""
        del sample
        return 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        yield from ()
        ranking = ranking_of(sample)
        if not ranking.relevant:
            return Undefined(NOTHING_TO_FIND)
        if not ranking.ids:
            return Undefined(NOTHING_RETRIEVED)
        return Score(sum(ranking.flags) / len(ranking.ids), counts=ranking.counts())
