"""Metrics that compare the retrieved ids with those known to be relevant. They ask nothing and differ in a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.data.ids import matching_id
from merilo.judging.json_types import as_mapping
from merilo.metrics.base import Card, Family, Kinds, MetricDefaults, Score, Undefined
from merilo.metrics.formulas import average_precision, ndcg
from merilo.metrics.steps import NOTHING_RETRIEVED, NOTHING_TO_FIND, Ranking, checked_cutoff, ranking_of
from merilo.metrics.variants import variant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

Outcome = Callable[["Sample", int | None], Score | Undefined]
"""The outcome for a sample, over the first k ranks; None for all."""

_NO_GRADES: Final = "the metadata's qrels are not a number for each id"


@dataclass(frozen=True, slots=True, kw_only=True)
class _IdMetric(MetricDefaults):
    """A metric of the retrieved ids without a cutoff."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    asks = Kinds()
    card: ClassVar[Card]
    outcome: ClassVar[Outcome]

    @property
    def _cutoff(self) -> int | None:
        """The number of ranks that count; None for all."""
        return None

    def max_questions(self, sample: Sample) -> int:
        """Return 0: ids are compared."""
        del sample
        return 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        yield from ()
        return type(self).outcome(sample, self._cutoff)

    def shows(self, sample: Sample) -> bool | None:
        """See `ShownInRun.shows`: whether a retrieved id is one of those that are judged, as relevant or not."""
        if not {"retrieved_context_ids", "reference_context_ids"} <= sample.present:
            return None
        retrieved, judged = ranking_of(sample).ids, _grades(sample) or {}
        return any(each in judged for each in retrieved) if retrieved and judged else None

    def not_shown(self, samples: int) -> str:
        """See `ShownInRun.not_shown`."""
        return f"no reference id matches a retrieved id in any of {samples:,} samples; are they ids of the same kind?"


@dataclass(frozen=True, slots=True, kw_only=True)
class _UpToRank(_IdMetric):
    """A metric of the first k ids."""

    ranked: ClassVar[bool] = True

    k: int = 10
    """The number of ranks that count, at least 1."""

    def __post_init__(self) -> None:
        checked_cutoff(self.name, self.k)

    @property
    def _cutoff(self) -> int | None:
        """See `_IdMetric._cutoff`."""
        return self.k


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
        """See `_IdMetric._cutoff`."""
        return self.k


def _binary(formula: Callable[[Ranking, int | None], float | None]) -> object:
    """Return the outcome by a formula in which an id is relevant or not; its None means that nothing was retrieved."""

    def outcome(sample: Sample, k: int | None) -> Score | Undefined:
        ranking = ranking_of(sample)
        if not ranking.relevant:
            return Undefined(NOTHING_TO_FIND)
        value = formula(ranking, k)
        return Undefined(NOTHING_RETRIEVED) if value is None else Score(value, counts=ranking.counts(k))

    return staticmethod(outcome)


def _reciprocal(flags: Sequence[bool]) -> float:
    return next((1 / rank for rank, flag in enumerate(flags, start=1) if flag), 0.0)


def _by_grade(sample: Sample, k: int | None) -> Score | Undefined:
    ranking, grades = ranking_of(sample), _grades(sample)
    if grades is None:
        return Undefined(_NO_GRADES)
    value = ndcg([grades.get(each, 0.0) for each in ranking.ids], k, judged=list(grades.values()))
    if value is None:
        return Undefined(NOTHING_TO_FIND)
    found = sum(grades.get(each, 0.0) > 0 for each in ranking.ids[:k])
    relevant = sum(grade > 0 for grade in grades.values())
    return Score(value, counts={"retrieved": len(ranking.ids), "relevant": relevant, "found": found})


def _grades(sample: Sample) -> Mapping[str, float] | None:
    """Return the grade of each judged id, at least 0; None if the metadata contain something else."""
    found = dict.fromkeys(map(matching_id, sample.require("reference_context_ids")), 1.0)
    given = sample.metadata.get("qrels")
    if given is None:
        return found
    qrels = as_mapping(given)
    if qrels is None:
        return None
    for each, grade in qrels.items():
        if isinstance(grade, bool) or not isinstance(grade, (int, float)) or not isfinite(grade):
            return None
        found[matching_id(str(each))] = max(0.0, float(grade))
    return found


def _card(
    summary: str,
    *,
    formula: str,
    when: str,
    when_not: str,
    relatives: tuple[str, ...],
    sources: tuple[str, ...],
    undefined: tuple[str, ...] = (NOTHING_TO_FIND,),
) -> Card:
    return Card(
        summary, formula, "None: ids are compared.", undefined, when, when_not, relatives, sources, Family.RETRIEVAL
    )


IdPrecision: Final = variant(
    _IdMetric,
    "id_precision",
    """Share of the retrieved ids that are relevant, in [0, 1]; their order does not matter.

    Formula: distinct retrieved ids in `reference_context_ids` / distinct retrieved ids. Undefined when nothing was
    retrieved, and when no id is named as relevant.

    Source: set precision of trec_eval (measure `set_P`); the id based context precision of the ragas library.
    """,
    outcome=_binary(lambda ranking, _: sum(ranking.flags) / len(ranking.ids) if ranking.ids else None),
    card=_card(
        "Share of the retrieved ids that are relevant.",
        formula="Distinct retrieved ids that are relevant / distinct retrieved ids.",
        undefined=(NOTHING_TO_FIND, NOTHING_RETRIEVED),
        when="To see how much of the retrieved text is known to be relevant, at no cost.",
        when_not="If not all relevant ids are known: ids that were never judged count as irrelevant here. Use "
        "context_relevance.",
        relatives=("id_recall", "precision", "context_relevance"),
        sources=("Set precision of trec_eval (set_P); id based context precision of the ragas library.",),
    ),
)
IdRecall: Final = variant(
    _IdMetric,
    "id_recall",
    """Share of the relevant ids that were retrieved, in [0, 1]; their order does not matter.

    Formula: distinct ids in `reference_context_ids` that were retrieved / distinct ids in `reference_context_ids`.
    0 when nothing was retrieved. Undefined when no id is named as relevant.

    Source: set recall of trec_eval (measure `set_recall`); the id based context recall of the ragas library.
    """,
    outcome=_binary(lambda ranking, _: sum(ranking.flags) / ranking.relevant),
    card=_card(
        "Share of the relevant ids that were retrieved.",
        formula="Distinct relevant ids that were retrieved / distinct relevant ids.",
        when="To see whether the retriever finds everything that is known to be relevant, at no cost.",
        when_not="If other contexts than the named ones can contain the answer: context_recall asks a judge.",
        relatives=("id_precision", "recall", "context_recall"),
        sources=("Set recall of trec_eval (set_recall); id based context recall of the ragas library.",),
    ),
)
ReciprocalRank: Final = variant(
    _UpToAnyRank,
    "reciprocal_rank",
    """One divided by the rank of the first relevant id, in [0, 1]; its mean over samples is MRR.

    0 when no relevant id was retrieved, or none among the first k. Relevant are the ids in `reference_context_ids`.
    Undefined when no id is named as relevant.

    Source: reciprocal rank of trec_eval (measure `recip_rank`, which has no cutoff).
    """,
    outcome=_binary(lambda ranking, k: _reciprocal(ranking.flags[:k])),
    card=_card(
        "One divided by the rank of the first relevant id; the mean over samples is MRR.",
        formula="1 / rank of the first relevant id; 0 when there is none (with k: among the first k).",
        when="If one context is enough and should come first.",
        when_not="If the answer needs several contexts: use average_precision or nDCG.",
        relatives=("hit_rate", "average_precision"),
        sources=("Reciprocal rank of trec_eval (recip_rank); the cutoff is merilo's.",),
    ),
)
AveragePrecision: Final = variant(
    _IdMetric,
    "average_precision",
    """Average precision of the retrieved ids, in [0, 1]; its mean over samples is MAP.

    Formula: sum, over the ranks r of relevant ids, of (relevant ids among the first r) / r, divided by the number of
    all relevant ids, retrieved or not. Relevant are the ids in `reference_context_ids`; an id that was retrieved
    twice counts at its first rank. 0 when nothing was retrieved. Undefined when no id is named as relevant.

    Source: average precision of trec_eval (measure `map`), Buckley & Voorhees, "Retrieval System Evaluation" (in:
    TREC, MIT Press 2005).
    """,
    ranked=True,
    outcome=_binary(lambda ranking, _: average_precision(ranking.flags, relevant=ranking.relevant)),
    card=_card(
        "Average precision: all relevant ids retrieved, before the others; the mean over samples is MAP.",
        formula="Sum, over the ranks r of relevant ids, of (relevant among the first r) / r, divided by the number of "
        "relevant ids.",
        when="To compare retrievers by one number if the relevant ids are known.",
        when_not="If relevance has degrees: use nDCG. If it is not known: context_precision asks a judge.",
        relatives=("nDCG", "reciprocal_rank", "context_precision"),
        sources=("Average precision of trec_eval (map); Buckley & Voorhees 2005 (in: TREC, MIT Press).",),
    ),
)
NDCG: Final = variant(
    _UpToAnyRank,
    "nDCG",
    """Normalised discounted cumulated gain of the retrieved ids, in [0, 1]; 1 for the best possible ranking.

    Formula: sum of grade / log2(rank + 1) over the first k ranks, divided by the same sum over the ideal ranking of
    all graded ids, retrieved or not. An id has the grade under `qrels` (an object of ids and numbers) in the sample's
    metadata, otherwise 1 if it is in `reference_context_ids`, otherwise 0; grades below 0 count as 0. An id that was
    retrieved twice counts at its first rank. 0 when nothing was retrieved. Undefined when no id has a grade above 0,
    or when the qrels are not numbers.

    Source: `ndcg_cut` and `ndcg` of trec_eval, whose gain is the grade itself; Järvelin & Kekäläinen 2002 (ACM TOIS
    20).
    """,
    "NDCG",
    outcome=staticmethod(_by_grade),
    card=_card(
        "nDCG of the retrieved ids: 1 if all relevant ids are retrieved, the most relevant first.",
        formula="Sum of grade / log2(rank + 1) over the first k ranks / the same sum over the ideal ranking of "
        "all graded ids. Grades are in the metadata under qrels; without them each reference id has 1.",
        undefined=(NOTHING_TO_FIND, _NO_GRADES),
        when="To compare retrievers by one number if the grades of the ids are known.",
        when_not="If they are not known: context_ranking asks a judge, about the retrieved contexts only.",
        relatives=("average_precision", "context_ranking"),
        sources=("ndcg_cut of trec_eval (linear gain); Järvelin & Kekäläinen 2002 (ACM TOIS 20).",),
    ),
)
HitRate: Final = variant(
    _UpToRank,
    "hit_rate",
    """1 when one of the first k retrieved ids is relevant, otherwise 0; its mean over samples is the hit rate.

    Relevant are the ids in `reference_context_ids`; an id that was retrieved twice counts at its first rank. 0 when
    nothing was retrieved. Undefined when no id is named as relevant.

    Source: success@k of trec_eval (measure `success`), known as hit rate or hits@k.
    """,
    outcome=_binary(lambda ranking, k: float(any(ranking.flags[:k]))),
    card=_card(
        "1 if one of the first k retrieved ids is relevant, otherwise 0.",
        formula="1 if a relevant id is among the first k, otherwise 0.",
        when="If one right context is enough for the answer.",
        when_not="If the answer needs several contexts: use recall.",
        relatives=("recall", "reciprocal_rank"),
        sources=("success@k of trec_eval.",),
    ),
)
Precision: Final = variant(
    _UpToRank,
    "precision",
    """Share of the first k ranks whose ids are relevant, in [0, 1].

    Formula: relevant ids among the first k / k, also if fewer than k were retrieved: an empty rank is not relevant.
    Relevant are the ids in `reference_context_ids`; an id that was retrieved twice counts at its first rank.
    Undefined when no id is named as relevant.

    Source: precision at k of trec_eval (measure `P`).
    """,
    outcome=_binary(lambda ranking, k: sum(ranking.flags[:k]) / (k or len(ranking.ids))),
    card=_card(
        "Share of the first k ranks whose ids are relevant.",
        formula="Relevant ids among the first k / k.",
        when="To compare retrievers that all fill k ranks.",
        when_not="If fewer than k contexts are retrieved or relevant: the value cannot reach 1 then. Use "
        "id_precision or recall.",
        relatives=("id_precision", "recall", "average_precision"),
        sources=("Precision at k of trec_eval (P).",),
    ),
)
Recall: Final = variant(
    _UpToRank,
    "recall",
    """Share of the relevant ids that are among the first k retrieved, in [0, 1].

    Formula: relevant ids among the first k / relevant ids. Relevant are the ids in `reference_context_ids`; an id
    that was retrieved twice counts at its first rank. 0 when nothing was retrieved. Undefined when no id is named as
    relevant.

    Source: recall at k of trec_eval (measure `recall`).
    """,
    outcome=_binary(lambda ranking, k: sum(ranking.flags[:k]) / ranking.relevant),
    card=_card(
        "Share of the relevant ids that are among the first k retrieved.",
        formula="Relevant ids among the first k / relevant ids.",
        when="To see how many of the known relevant ids reach a generator that reads k contexts.",
        when_not="If more than k ids are relevant: the value cannot reach 1 then. Also use precision.",
        relatives=("id_recall", "hit_rate", "context_recall"),
        sources=("Recall at k of trec_eval (recall).",),
    ),
)


METRICS: Final = (IdPrecision, IdRecall, ReciprocalRank, AveragePrecision, NDCG, HitRate, Precision, Recall)
