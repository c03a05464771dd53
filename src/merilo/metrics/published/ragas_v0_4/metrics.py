"""The metrics of ragas 0.2 to 0.4, as 0.4.3 computes them (classes and collections), and as 0.3.0 does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.metrics.published.ragas_v0_4 import correctness, factual, noise, response, retrieval, texts

if TYPE_CHECKING:
    from merilo.metrics.base import Metric

METRICS: Final[tuple[type[Metric], ...]] = (
    retrieval.PrecisionWithReference,
    retrieval.PrecisionWithoutReference,
    retrieval.ContextPrecision,
    retrieval.ContextUtilization,
    texts.NonLLMPrecision,
    texts.IDBasedPrecision,
    retrieval.ContextRecall,
    retrieval.LLMContextRecall,
    texts.NonLLMRecall,
    texts.IDBasedRecall,
    retrieval.ContextEntityRecall,
    response.Faithfulness,
    response.FaithfulnessWithHHEM,
    response.AnswerRelevancy,
    noise.NoiseSensitivity,
    correctness.AnswerCorrectness,
    factual.FactualCorrectness,
    correctness.SemanticSimilarity,
    correctness.AnswerSimilarity,
    texts.StringSimilarity,
    texts.ExactMatch,
    texts.StringPresence,
    texts.StringPresent,
    response.AspectCritic,
    retrieval.CollectionsPrecisionWithReference,
    retrieval.CollectionsPrecisionWithoutReference,
    retrieval.CollectionsContextPrecision,
    retrieval.CollectionsContextUtilization,
    retrieval.CollectionsContextRecall,
    retrieval.CollectionsContextEntityRecall,
    response.CollectionsFaithfulness,
    response.CollectionsAnswerRelevancy,
    noise.CollectionsNoiseSensitivity,
    correctness.CollectionsAnswerCorrectness,
    factual.CollectionsFactualCorrectness,
    correctness.CollectionsSemanticSimilarity,
    texts.CollectionsStringSimilarity,
    texts.CollectionsExactMatch,
    texts.CollectionsStringPresence,
    retrieval.EarlierPrecisionWithReference,
    retrieval.EarlierPrecisionWithoutReference,
    retrieval.EarlierContextPrecision,
    retrieval.EarlierContextUtilization,
    texts.EarlierNonLLMPrecision,
    retrieval.EarlierContextRecall,
    texts.EarlierNonLLMRecall,
    retrieval.EarlierContextEntityRecall,
    response.EarlierFaithfulness,
    response.EarlierAnswerRelevancy,
    noise.EarlierNoiseSensitivity,
    correctness.EarlierAnswerCorrectness,
    factual.EarlierFactualCorrectness,
    correctness.EarlierSemanticSimilarity,
    response.EarlierAspectCritic,
)
"""The metrics of this module, in the order in which they are shown; those shared with NVIDIA stand in `nvidia`."""
