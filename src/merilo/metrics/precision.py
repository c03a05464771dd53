"""Precision: the fraction of the first k ids that are relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from merilo.metrics.base import Card, Family, Kinds, Ordinary, Score, Undefined
from merilo.metrics.steps import NOTHING_TO_FIND, checked_cutoff, ranking_of

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision(Ordinary):
    """Share of the first k ranks whose ids are relevant, in [0, 1].

    Formula: relevant ids among the first k / k, also if fewer than k were retrieved: an empty rank is not relevant.
    Relevant are the ids in `reference_context_ids`; an id that was retrieved twice counts at its first rank.
    Undefined when no id is named as relevant.

    Source: precision at k of trec_eval (measure `P`).
    """

    name: ClassVar[str] = "precision"
    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    asks = Kinds()
    card: ClassVar[Card] = Card(
        summary="Share of the first k ranks whose ids are relevant.",
        formula="Relevant ids among the first k / k.",
        questions="None: ids are compared.",
        undefined=(NOTHING_TO_FIND,),
        when="To compare retrievers that all fill k ranks.",
        when_not="If fewer than k contexts are retrieved or relevant: the value cannot reach 1 then. Use "
        "id_precision or recall.",
        relatives=("id_precision", "recall", "average_precision"),
        sources=("Precision at k of trec_eval (P).",),
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
        return Score(sum(ranking.flags[: self.k]) / self.k, counts=ranking.counts(self.k))
