"""Average precision: are all relevant ids retrieved, and ranked before the others?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from merilo.metrics.base import Card, Family, Kinds, Ordinary, Score, Undefined
from merilo.metrics.formulas import average_precision
from merilo.metrics.steps import NOTHING_TO_FIND, ranking_of

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragePrecision(Ordinary):
    """Average precision of the retrieved ids, in [0, 1]; its mean over samples is MAP.

    Formula: sum, over the ranks r of relevant ids, of (relevant ids among the first r) / r, divided by the number of
    all relevant ids, retrieved or not. Relevant are the ids in `reference_context_ids`; an id that was retrieved
    twice counts at its first rank. 0 when nothing was retrieved. Undefined when no id is named as relevant.

    Source: average precision of trec_eval (measure `map`), Buckley & Voorhees, "Retrieval System Evaluation" (in:
    TREC, MIT Press 2005).
    """

    name: ClassVar[str] = "average_precision"
    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    asks = Kinds()
    card: ClassVar[Card] = Card(
        summary="Average precision: all relevant ids retrieved, before the others; the mean over samples is MAP.",
        formula="Sum, over the ranks r of relevant ids, of (relevant among the first r) / r, divided by the number of "
        "relevant ids.",
        questions="None: ids are compared.",
        undefined=(NOTHING_TO_FIND,),
        when="To compare retrievers by one number if the relevant ids are known.",
        when_not="If relevance has degrees: use nDCG. If it is not known: context_precision asks a judge.",
        relatives=("nDCG", "reciprocal_rank", "context_precision"),
        sources=("Average precision of trec_eval (map); Buckley & Voorhees 2005 (in: TREC, MIT Press).",),
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
        return Score(average_precision(ranking.flags, relevant=ranking.relevant), counts=ranking.counts())
