"""Metrics that compare the retrieved ids with those known to be relevant. They ask nothing and differ in a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.base import Card, Family, Kinds, Score, Undefined
from merilo.metrics.formulas import average_precision, ndcg
from merilo.metrics.steps import NOTHING_TO_FIND, Ranking, checked_cutoff, grades_of, ranking_of
from merilo.metrics.variants import D, RetrievalMetric, described, variant

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

Outcome = Callable[["Sample", int | None], Score | Undefined]
"""The outcome for a sample, over the first k ranks; None for all."""

_NO_GRADES: Final = "the metadata's qrels are not a number for each id"


@dataclass(frozen=True, slots=True, kw_only=True)
class _IdMetric(RetrievalMetric):
    """A metric of the retrieved ids without a cutoff, in [0, 1].

    Relevant are the ids in `reference_context_ids`; an id that was retrieved twice counts at its first rank.
    """

    version: ClassVar[int] = 2
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    asks = Kinds()
    card: ClassVar[Card] = Card(
        "", questions="None: ids are compared.", undefined=(NOTHING_TO_FIND,), family=Family.RETRIEVAL
    )
    outcome: ClassVar[Outcome]

    @property
    def _cutoff(self) -> int | None:
        """The number of ranks that count; None for all."""
        return None

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        yield from ()
        return type(self).outcome(sample, self._cutoff)


@dataclass(frozen=True, slots=True, kw_only=True)
class _UpToAnyRank(_IdMetric):
    """A metric of all ids, or of the first k."""

    ranked: ClassVar[bool] = True

    k: int | None = None
    """The number of ranks that count, at least 1; None for all."""

    def __post_init__(self) -> None:
        checked_cutoff(self.name, self.k)

    @property
    def _cutoff(self) -> int | None:
        return self.k


@dataclass(frozen=True, slots=True, kw_only=True)
class _UpToRank(_UpToAnyRank):
    """A metric of the first k ids."""

    k: int = 10


def _binary(formula: Callable[[Ranking, int | None], float]) -> object:
    """Return the outcome by a formula in which an id is relevant or not."""

    def outcome(sample: Sample, k: int | None) -> Score | Undefined:
        ranking = ranking_of(sample)
        if not ranking.relevant:
            return Undefined(NOTHING_TO_FIND)
        return Score(formula(ranking, k), counts=ranking.counts(k))

    return staticmethod(outcome)


def _by_grade(sample: Sample, k: int | None) -> Score | Undefined:
    ranking, grades = ranking_of(sample), grades_of(sample)
    if grades is None:
        return Undefined(_NO_GRADES)
    value = ndcg([grades.get(each, 0.0) for each in ranking.ids], k, judged=list(grades.values()))
    if value is None:
        return Undefined(NOTHING_TO_FIND)
    found = sum(grades.get(each, 0.0) > 0 for each in ranking.ids[:k])
    relevant = sum(grade > 0 for grade in grades.values())
    return Score(value, counts={"retrieved": len(ranking.ids), "relevant": relevant, "found": found})


def _row(base: D, name: str, doc: str, /, **changes: object) -> D:
    return variant(base, name, doc, card=described(doc, base.card), **changes)


IdPrecision: Final = _row(
    _IdMetric,
    "id_precision",
    """Share of the retrieved ids that are relevant.

    Meaning: retrieved ids that are relevant
    Formula: Distinct retrieved ids that are relevant / distinct retrieved ids.
    Use: To see how much of the retrieved text is known to be relevant, at no cost.
    Not: If not all relevant ids are known: ids that were never judged count as irrelevant here. Use
        context_relevance.
    See: id_recall | precision | context_relevance
    Source: Set precision of trec_eval (set_P); id based context precision of the ragas library.

    The order of the ids does not matter. 0 when nothing was retrieved.
    """,
    outcome=_binary(lambda ranking, _: sum(ranking.flags) / max(len(ranking.ids), 1)),
)
IdRecall: Final = _row(
    _IdMetric,
    "id_recall",
    """Share of the relevant ids that were retrieved.

    Meaning: relevant ids that are retrieved
    Formula: Distinct relevant ids that were retrieved / distinct relevant ids.
    Use: To see whether the retriever finds everything that is known to be relevant, at no cost.
    Not: If other contexts than the named ones can contain the answer: context_recall asks a judge.
    See: id_precision | recall | context_recall
    Source: Set recall of trec_eval (set_recall); id based context recall of the ragas library.

    The order of the ids does not matter. 0 when nothing was retrieved.
    """,
    outcome=_binary(lambda ranking, _: sum(ranking.flags) / ranking.relevant),
)
ReciprocalRank: Final = _row(
    _UpToAnyRank,
    "reciprocal_rank",
    """One divided by the rank of the first relevant id; the mean over samples is MRR.

    Meaning: 1 / rank of the first relevant id
    Formula: 1 / rank of the first relevant id; 0 when there is none (with k: among the first k).
    Use: If one context is enough and should come first.
    Not: If the answer needs several contexts: use average_precision or nDCG.
    See: hit_rate | average_precision
    Source: Reciprocal rank of trec_eval (recip_rank); the cutoff is merilo's.
    """,
    outcome=_binary(
        lambda ranking, k: next((1 / rank for rank, flag in enumerate(ranking.flags[:k], start=1) if flag), 0.0)
    ),
)
AveragePrecision: Final = _row(
    _IdMetric,
    "average_precision",
    """Average precision: all relevant ids retrieved, before the others; the mean over samples is MAP.

    Meaning: relevant ids come first
    Formula: Sum, over the ranks r of relevant ids, of (relevant among the first r) / r, divided by the number of
        relevant ids.
    Use: To compare retrievers by one number if the relevant ids are known.
    Not: If relevance has degrees: use nDCG. If it is not known: context_precision asks a judge.
    See: nDCG | reciprocal_rank | context_precision
    Source: Average precision of trec_eval (map); Buckley & Voorhees 2005 (in: TREC, MIT Press).

    0 when nothing was retrieved.
    """,
    ranked=True,
    outcome=_binary(lambda ranking, _: average_precision(ranking.flags, relevant=ranking.relevant)),
)
NDCG: Final = _row(
    _UpToAnyRank,
    "nDCG",
    """nDCG of the retrieved ids: 1 if all relevant ids are retrieved, the most relevant first.

    Meaning: relevant ids come first, by grade
    Formula: Sum of grade / log2(rank + 1) over the first k ranks / the same sum over the ideal ranking of all
        graded ids. Grades are in the metadata under qrels; without them each reference id has 1.
    Undefined: ... | the metadata's qrels are not a number for each id
    Use: To compare retrievers by one number if the grades of the ids are known.
    Not: If they are not known: context_ranking asks a judge, about the retrieved contexts only.
    See: average_precision | context_ranking
    Source: ndcg_cut of trec_eval (linear gain); Järvelin & Kekäläinen 2002 (ACM TOIS 20).

    An id has the grade under `qrels` (an object of ids and numbers) in the sample's metadata, otherwise 1 if it is
    in `reference_context_ids`, otherwise 0; grades below 0 count as 0. 0 when nothing was retrieved.
    """,
    outcome=staticmethod(_by_grade),
)
HitRate: Final = _row(
    _UpToRank,
    "hit_rate",
    """1 if one of the first k retrieved ids is relevant, otherwise 0.

    Meaning: a relevant id among the first k
    Formula: 1 if a relevant id is among the first k, otherwise 0.
    Use: If one right context is enough for the answer.
    Not: If the answer needs several contexts: use recall.
    See: recall | reciprocal_rank
    Source: success@k of trec_eval.

    0 when nothing was retrieved. Its mean over samples is the hit rate, also called hits@k.
    """,
    outcome=_binary(lambda ranking, k: float(any(ranking.flags[:k]))),
)
Precision: Final = _row(
    _UpToRank,
    "precision",
    """Share of the first k ranks whose ids are relevant.

    Meaning: first k ids that are relevant
    Formula: Relevant ids among the first k / k.
    Use: To compare retrievers that all fill k ranks.
    Not: If fewer than k contexts are retrieved or relevant: the value cannot reach 1 then. Use id_precision or
        recall.
    See: id_precision | recall | average_precision
    Source: Precision at k of trec_eval (P).

    If fewer than k ids were retrieved, an empty rank is not relevant.
    """,
    outcome=_binary(lambda ranking, k: sum(ranking.flags[:k]) / (k or len(ranking.ids))),
)
Recall: Final = _row(
    _UpToRank,
    "recall",
    """Share of the relevant ids that are among the first k retrieved.

    Meaning: relevant ids among the first k
    Formula: Relevant ids among the first k / relevant ids.
    Use: To see how many of the known relevant ids reach a generator that reads k contexts.
    Not: If more than k ids are relevant: the value cannot reach 1 then. Also use precision.
    See: id_recall | hit_rate | context_recall
    Source: Recall at k of trec_eval (recall).
    """,
    outcome=_binary(lambda ranking, k: sum(ranking.flags[:k]) / ranking.relevant),
)


METRICS: Final = (IdPrecision, IdRecall, ReciprocalRank, AveragePrecision, NDCG, HitRate, Precision, Recall)
