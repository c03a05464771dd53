"""The metrics of spring-ai-ragas 0.3.3 as they were published, quirks included.

The class of each, in the other modules of this package, documents its formula. Not reproduced: metrics of
agents, of several turns, by a rubric of grades, and those that only compare letters or words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.metrics.published.spring_ai_ragas.facts import AnswerCorrectness, FactualCorrectness, SemanticSimilarity
from merilo.metrics.published.spring_ai_ragas.general import AspectCritic, NoiseSensitivity, SimpleCriteriaScore
from merilo.metrics.published.spring_ai_ragas.models import Aggregator, NoConsensus, aggregate
from merilo.metrics.published.spring_ai_ragas.ratings import (
    AnswerAccuracy,
    ContextRelevance,
    ResponseGroundedness,
    normalised,
)
from merilo.metrics.published.spring_ai_ragas.response import Faithfulness, Hallucination, ResponseRelevancy
from merilo.metrics.published.spring_ai_ragas.retrieval import ContextEntityRecall, ContextPrecision, ContextRecall

if TYPE_CHECKING:
    from merilo.metrics.base import Metric

__all__ = [
    "METRICS",
    "Aggregator",
    "AnswerAccuracy",
    "AnswerCorrectness",
    "AspectCritic",
    "ContextEntityRecall",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "FactualCorrectness",
    "Faithfulness",
    "Hallucination",
    "NoConsensus",
    "NoiseSensitivity",
    "ResponseGroundedness",
    "ResponseRelevancy",
    "SemanticSimilarity",
    "SimpleCriteriaScore",
    "aggregate",
    "normalised",
]

METRICS: Final[tuple[type[Metric], ...]] = (
    ContextRelevance,
    ResponseGroundedness,
    AnswerAccuracy,
    ContextPrecision,
    ContextRecall,
    ContextEntityRecall,
    Faithfulness,
    NoiseSensitivity,
    ResponseRelevancy,
    Hallucination,
    FactualCorrectness,
    SemanticSimilarity,
    AnswerCorrectness,
    AspectCritic,
    SimpleCriteriaScore,
)
"""The metrics of this module, in the order in which they are shown."""
