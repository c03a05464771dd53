"""nDCG: are all relevant ids retrieved, the most relevant ones first?"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, ClassVar

from merilo.judging.untyped import as_mapping
from merilo.metrics.base import Card, Family, Kinds, Ordinary, Score, Undefined
from merilo.metrics.formulas import ndcg
from merilo.metrics.steps import NOTHING_TO_FIND, checked_cutoff, ranking_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_NO_GRADES = "the metadata's qrels are not a number for each id"


@dataclass(frozen=True, slots=True, kw_only=True)
class NDCG(Ordinary):
    """Normalised discounted cumulated gain of the retrieved ids, in [0, 1]; 1 for the best possible ranking.

    Formula: sum of grade / log2(rank + 1) over the first k ranks, divided by the same sum over the ideal ranking of
    all graded ids, retrieved or not. An id has the grade under `qrels` (an object of ids and numbers) in the sample's
    metadata, otherwise 1 if it is in `reference_context_ids`, otherwise 0; grades below 0 count as 0. An id that was
    retrieved twice counts at its first rank. 0 when nothing was retrieved. Undefined when no id has a grade above 0,
    or when the qrels are not numbers.

    Source: `ndcg_cut` and `ndcg` of trec_eval, whose gain is the grade itself; Järvelin & Kekäläinen 2002 (ACM TOIS
    20).
    """

    name: ClassVar[str] = "nDCG"
    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    asks = Kinds()
    card: ClassVar[Card] = Card(
        summary="nDCG of the retrieved ids: 1 if all relevant ids are retrieved, the most relevant first.",
        formula="Sum of grade / log2(rank + 1) over the first k ranks / the same sum over the ideal ranking of "
        "all graded ids. Grades are in the metadata under qrels; without them each reference id has 1.",
        questions="None: ids are compared.",
        undefined=(NOTHING_TO_FIND, _NO_GRADES),
        when="To compare retrievers by one number if the grades of the ids are known.",
        when_not="If they are not known: context_ranking asks a judge, about the retrieved contexts only.",
        relatives=("average_precision", "context_ranking"),
        sources=("ndcg_cut of trec_eval (linear gain); Järvelin & Kekäläinen 2002 (ACM TOIS 20).",),
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
        grades = _grades(sample)
        if grades is None:
            return Undefined(_NO_GRADES)
        value = ndcg([grades.get(each, 0.0) for each in ranking.ids], self.k, judged=list(grades.values()))
        if value is None:
            return Undefined(NOTHING_TO_FIND)
        found = sum(grades.get(each, 0.0) > 0 for each in ranking.ids[: self.k])
        relevant = sum(grade > 0 for grade in grades.values())
        return Score(value, counts={"retrieved": len(ranking.ids), "relevant": relevant, "found": found})


def _grades(sample: Sample) -> Mapping[str, float] | None:
    """Return the grade of each judged id, at least 0; None if the metadata contain something else."""
    found = dict.fromkeys(sample.require("reference_context_ids"), 1.0)
    given = sample.metadata.get("qrels")
    if given is None:
        return found
    qrels = as_mapping(given)
    if qrels is None:
        return None
    for each, grade in qrels.items():
        if isinstance(grade, bool) or not isinstance(grade, (int, float)) or not isfinite(grade):
            return None
        found[str(each)] = max(0.0, float(grade))
    return found
