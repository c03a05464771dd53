"""Recall: the fraction of the relevant ids that are among the first k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from merilo.metrics.base import Card, Family, Kinds, Ordinary, Score, Undefined
from merilo.metrics.steps import NOTHING_TO_FIND, checked_cutoff, ranking_of

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(Ordinary):
    """Share of the relevant ids that are among the first k retrieved, in [0, 1].

    Formula: relevant ids among the first k / relevant ids. Relevant are the ids in `reference_context_ids`; an id
    that was retrieved twice counts at its first rank. 0 when nothing was retrieved. Undefined when no id is named as
    relevant.

    Source: recall at k of trec_eval (measure `recall`).
    """

    name: ClassVar[str] = "recall"
    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    asks = Kinds()
    card: ClassVar[Card] = Card(
        summary="Share of the relevant ids that are among the first k retrieved.",
        formula="Relevant ids among the first k / relevant ids.",
        questions="None: ids are compared.",
        undefined=(NOTHING_TO_FIND,),
        when="To see how many of the known relevant ids reach a generator that reads k contexts.",
        when_not="If more than k ids are relevant: the value cannot reach 1 then. Also use precision.",
        relatives=("id_recall", "hit_rate", "context_recall"),
        sources=("Recall at k of trec_eval (recall).",),
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
        return Score(sum(ranking.flags[: self.k]) / ranking.relevant, counts=ranking.counts(self.k))
