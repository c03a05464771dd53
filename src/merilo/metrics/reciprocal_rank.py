"""Reciprocal rank: the rank of the first relevant id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from merilo.metrics.base import Card, Family, Kinds, Ordinary, Score, Undefined
from merilo.metrics.steps import NOTHING_TO_FIND, checked_cutoff, ranking_of

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ReciprocalRank(Ordinary):
    """One divided by the rank of the first relevant id, in [0, 1]; its mean over samples is MRR.

    0 when no relevant id was retrieved, or none among the first k. Relevant are the ids in `reference_context_ids`.
    Undefined when no id is named as relevant.

    Source: reciprocal rank of trec_eval (measure `recip_rank`, which has no cutoff).
    """

    name: ClassVar[str] = "reciprocal_rank"
    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    asks = Kinds()
    card: ClassVar[Card] = Card(
        summary="One divided by the rank of the first relevant id; the mean over samples is MRR.",
        formula="1 / rank of the first relevant id; 0 when there is none (with k: among the first k).",
        questions="None: ids are compared.",
        undefined=(NOTHING_TO_FIND,),
        when="If one context is enough and should come first.",
        when_not="If the answer needs several contexts: use average_precision or nDCG.",
        relatives=("hit_rate", "average_precision"),
        sources=("Reciprocal rank of trec_eval (recip_rank); the cutoff is merilo's.",),
        family=Family.RETRIEVAL,
    )

    k: int | None = None
    """The number of ranks that count, at least 1; None for all."""

    def __post_init__(self) -> None:
        checked_cutoff(self.name, self.k)

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
        first = next((rank for rank, flag in enumerate(ranking.flags[: self.k], start=1) if flag), None)
        return Score(0.0 if first is None else 1 / first, counts=ranking.counts(self.k))
