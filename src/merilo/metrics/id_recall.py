"""Id recall: the fraction of the relevant ids that were retrieved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from merilo.metrics.base import Card, Family, Kinds, Ordinary, Score, Undefined
from merilo.metrics.steps import NOTHING_TO_FIND, ranking_of

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True)
class IdRecall(Ordinary):
    """Share of the relevant ids that were retrieved, in [0, 1]; their order does not matter.

    Formula: distinct ids in `reference_context_ids` that were retrieved / distinct ids in `reference_context_ids`.
    0 when nothing was retrieved. Undefined when no id is named as relevant.

    Source: set recall of trec_eval (measure `set_recall`); the id based context recall of the ragas library.
    """

    name: ClassVar[str] = "id_recall"
    version: ClassVar[int] = 1
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    asks = Kinds()
    card: ClassVar[Card] = Card(
        summary="Share of the relevant ids that were retrieved.",
        formula="Distinct relevant ids that were retrieved / distinct relevant ids.",
        questions="None: ids are compared.",
        undefined=(NOTHING_TO_FIND,),
        when="To see whether the retriever finds everything that is known to be relevant, at no cost.",
        when_not="If other contexts than the named ones can contain the answer: context_recall asks a judge.",
        relatives=("id_precision", "recall", "context_recall"),
        sources=("Set recall of trec_eval (set_recall); id based context recall of the ragas library.",),
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
        return Score(sum(ranking.flags) / ranking.relevant, counts=ranking.counts())
