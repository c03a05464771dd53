"""Hit rate: is any relevant id among the first k?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from merilo.metrics.base import Card, Family, Kinds, Ordinary, Score, Undefined
from merilo.metrics.steps import NOTHING_TO_FIND, checked_cutoff, ranking_of

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRate(Ordinary):
    """1 when one of the first k retrieved ids is relevant, otherwise 0; its mean over samples is the hit rate.

    Relevant are the ids in `reference_context_ids`; an id that was retrieved twice counts at its first rank. 0 when
    nothing was retrieved. Undefined when no id is named as relevant.

    Source: success@k of trec_eval (measure `success`), known as hit rate or hits@k.
    """

    name: ClassVar[str] = "hit_rate"
    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    asks = Kinds()
    card: ClassVar[Card] = Card(
        summary="1 if one of the first k retrieved ids is relevant, otherwise 0.",
        formula="1 if a relevant id is among the first k, otherwise 0.",
        questions="None: ids are compared.",
        undefined=(NOTHING_TO_FIND,),
        when="If one right context is enough for the answer.",
        when_not="If the answer needs several contexts: use recall.",
        relatives=("recall", "reciprocal_rank"),
        sources=("success@k of trec_eval.",),
        family=Family.RETRIEVAL,
    )

    k: int = 10
    """The number of ranks that count, at least 1."""

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
        return Score(float(any(ranking.flags[: self.k])), counts=ranking.counts(self.k))
