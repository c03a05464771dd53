"""The metrics of spring-ai-ragas 0.3.3 as they were published, quirks included.

The class of each, in the other modules of this package, documents its formula. Not reproduced: metrics of
agents, of several turns, by a rubric of grades, and those that only compare letters or words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo_published.spring_ai_ragas import facts, general, ratings, response, retrieval

if TYPE_CHECKING:
    from merilo.metrics.base import Metric

METRICS: Final[tuple[type[Metric], ...]] = (
    ratings.ContextRelevance,
    ratings.ResponseGroundedness,
    ratings.AnswerAccuracy,
    retrieval.ContextPrecision,
    retrieval.ContextRecall,
    retrieval.ContextEntityRecall,
    response.Faithfulness,
    general.NoiseSensitivity,
    response.ResponseRelevancy,
    response.Hallucination,
    facts.FactualCorrectness,
    facts.SemanticSimilarity,
    facts.AnswerCorrectness,
    general.AspectCritic,
    general.SimpleCriteriaScore,
)
