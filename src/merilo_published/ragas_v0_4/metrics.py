"""The metrics of ragas 0.2 to 0.4, as 0.4.3 computes them (classes and collections), and as 0.3.0 does.

The formulas are in the other modules of this package. Here each metric gets its other names, and the collections and
0.3.0 their parameters. The metrics that ragas shares with NVIDIA are in `nvidia`.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from merilo.metrics.variants import D, variant
from merilo_published.asking import REASKS
from merilo_published.ragas_v0_4 import correctness, response, retrieval, texts
from merilo_published.ragas_v0_4.prompter import EARLIER_TEMPERATURE, JudgedMetric, of_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.metrics.base import Card, Metric

_NO_BREACH: Final[Mapping[str, str]] = MappingProxyType({})
_UNBOUNDED: Final = (float("-inf"), float("inf"))
_STRUCTURED: Final[Mapping[str, object]] = {"version": 2, "repairs": 0, "reasks": REASKS}
"""Changes of the collections, which ask for structured output: unreadable replies are re-asked, not repaired."""
_RAW: Final[Mapping[str, object]] = {
    **_STRUCTURED,
    "breaks": _NO_BREACH,
    "range": _UNBOUNDED,
    "raw_verdicts": True,
    "refuses_empty": True,
}
_FROM_INTEGERS: Final = ", from the judge's integers as they are; any real number can come out"


def _row(base: D, name: str, difference: str = "", class_name: str = "", /, **changes: object) -> D:
    """Return a metric of 0.4.3 under another name; `difference`: the rest of its docstring."""
    return variant(base, f"ragas-0.4.3:{name}", f"As `{base.__name__}`{difference}.", class_name, **changes)


_NEWEST: Final[tuple[type[Metric], ...]] = (
    retrieval.PrecisionWithReference,
    retrieval.PrecisionWithoutReference,
    _row(retrieval.PrecisionWithReference, "context_precision", ", by its other name"),
    _row(retrieval.PrecisionWithoutReference, "context_utilization", ", by its other name"),
    texts.NonLLMPrecision,
    texts.IDBasedPrecision,
    retrieval.ContextRecall,
    _row(retrieval.ContextRecall, "llm_context_recall", ", by the name of its class", "LLMContextRecall"),
    texts.NonLLMRecall,
    texts.IDBasedRecall,
    retrieval.ContextEntityRecall,
    response.Faithfulness,
    response.FaithfulnessWithHHEM,
    response.AnswerRelevancy,
    retrieval.NoiseSensitivity,
    correctness.AnswerCorrectness,
    correctness.FactualCorrectness,
    correctness.SemanticSimilarity,
    _row(correctness.SemanticSimilarity, "answer_similarity", ", by its earlier name"),
    texts.StringSimilarity,
    texts.Bleu,
    texts.Chrf,
    texts.Rouge,
    texts.ExactMatch,
    texts.StringPresence,
    _row(texts.StringPresence, "string_present", ", by the name that upstream reports"),
    response.AspectCritic,
)
"""The classes of 0.4.3."""


def _each_asked(card: Card) -> Card:
    """Return the card of a definition that sends a request for each reply."""
    return replace(card, questions="`strictness` requests (3), and one for the embeddings.")


_COLLECTIONS: Final[tuple[type[Metric], ...]] = (
    _row(
        retrieval.PrecisionWithReference,
        "collections.context_precision_with_reference",
        _FROM_INTEGERS,
        "CollectionsPrecisionWithReference",
        **_RAW,
    ),
    _row(
        retrieval.PrecisionWithoutReference,
        "collections.context_precision_without_reference",
        _FROM_INTEGERS,
        "CollectionsPrecisionWithoutReference",
        **_RAW,
    ),
    _row(retrieval.PrecisionWithReference, "collections.context_precision", _FROM_INTEGERS, **_RAW),
    _row(retrieval.PrecisionWithoutReference, "collections.context_utilization", _FROM_INTEGERS, **_RAW),
    _row(retrieval.ContextRecall, "collections.context_recall", _FROM_INTEGERS, **_RAW),
    _row(
        retrieval.ContextEntityRecall,
        "collections.context_entity_recall",
        ", over the set of the reference's entities",
        **_STRUCTURED,
        counts_repeats=False,
    ),
    _row(
        response.Faithfulness,
        "collections.faithfulness",
        ", for a judge that writes structured output",
        **_STRUCTURED,
        breaks=_NO_BREACH,
        refuses_empty=True,
    ),
    _row(
        response.AnswerRelevancy,
        "collections.answer_relevancy",
        ", in separate requests, without the empty questions",
        **_STRUCTURED,
        breaks=_NO_BREACH,
        card=_each_asked(response.AnswerRelevancy.card),
        one_request=False,
        drops_empty=True,
        refuses_empty=True,
    ),
    _row(
        retrieval.NoiseSensitivity,
        "collections.noise_sensitivity",
        ", for a judge that writes structured output",
        **_STRUCTURED,
    ),
    _row(
        correctness.AnswerCorrectness,
        "collections.answer_correctness",
        "; one text without statements is enough for an F of 1",
        **_STRUCTURED,
        one_empty_is_right=True,
        space_for_empty=False,
        zero_vector_is_unlike=True,
    ),
    _row(
        correctness.FactualCorrectness,
        "collections.factual_correctness",
        "; without claims no verdicts are asked for",
        **_STRUCTURED,
        breaks=_NO_BREACH,
        asks_about_nothing=False,
        refuses_empty=True,
    ),
    _row(correctness.SemanticSimilarity, "collections.semantic_similarity"),
    _row(texts.StringSimilarity, "collections.non_llm_string_similarity", "", "CollectionsStringSimilarity"),
    _row(texts.Bleu, "collections.bleu_score"),
    _row(texts.Chrf, "collections.chrf_score"),
    _row(texts.Rouge, "collections.rouge_score"),
    _row(texts.ExactMatch, "collections.exact_match"),
    _row(texts.StringPresence, "collections.string_presence"),
)

_SINCE_0_4: Final[tuple[type[Metric], ...]] = (texts.IDBasedPrecision, texts.IDBasedRecall, texts.Chrf)
_CHANGED_SINCE_0_3: Final[Mapping[type[Metric], Mapping[str, object]]] = {
    response.AnswerRelevancy: {"one_request": False, "zeroed_by": response.Zeroes.ANY}
}
"""Parameters that differ in 0.3.0, apart from the temperature, which differs wherever a judge is asked."""


def _earlier(metric: type[Metric]) -> type[Metric]:
    temperature = {"temperature": EARLIER_TEMPERATURE} if issubclass(metric, JudgedMetric) else {}
    changed = _CHANGED_SINCE_0_3.get(metric, {})
    return variant(
        metric,
        metric.name.replace("0.4.3", "0.3.0"),
        f"As `{metric.__name__}`, in 0.3.0.",
        f"Earlier{metric.__name__}",
        card=of_version(_each_asked(metric.card) if "one_request" in changed else metric.card, "0.3.0"),
        **temperature,
        **changed,
    )


METRICS: Final[tuple[type[Metric], ...]] = (
    *_NEWEST,
    *_COLLECTIONS,
    *(_earlier(metric) for metric in _NEWEST if metric not in _SINCE_0_4),
)
