"""The metrics of ragas 0.1.9 and 0.1.22 as they were published, quirks included.

The base classes, in the other modules of this package, document the formulas. Each row here gives a metric of one
version its name and its defaults. Context relevancy went after 0.1.10; noise sensitivity, the summarization score and
faithfulness by a classifier came later. What a run does with a row that fails is not the metric's business: 0.1.9
stopped, 0.1.22 continued with NaN; here its outcome is Failed, or Undefined where there was nothing to judge.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from merilo_published.definition import BLANK_IS_JUDGED
from merilo_published.definition import ragas_variant as _row
from merilo_published.ragas_v0_1.answers import (
    AnswerRelevancy,
    Aspect,
    AspectCritique,
    Faithfulness,
    FaithfulnessWithHHEM,
)
from merilo_published.ragas_v0_1.contexts import (
    ContextEntityRecall,
    ContextPrecision,
    ContextRecall,
    ContextRelevancy,
    ContextUtilization,
)
from merilo_published.ragas_v0_1.correctness import AnswerCorrectness, AnswerSimilarity, SummarizationScore
from merilo_published.ragas_v0_1.noise import Focus, NoiseSensitivity

if TYPE_CHECKING:
    from merilo.metrics.base import Metric

METRICS: Final[tuple[type[Metric], ...]] = (
    _row(ContextRelevancy, "ragas-0.1.9:context_relevancy"),
    _row(ContextRecall, "ragas-0.1.9:context_recall"),
    _row(
        ContextPrecision,
        "ragas-0.1.9:context_precision",
        ". The response stands in for a missing reference",
        breaks=MappingProxyType({**BLANK_IS_JUDGED, "needs": "response_stands_in"}),
        response_stands_in=True,
    ),
    _row(
        ContextUtilization,
        "ragas-0.1.9:context_utilization",
        ". The reference goes before the response",
        reference_first=True,
    ),
    _row(ContextEntityRecall, "ragas-0.1.9:context_entity_recall"),
    _row(Faithfulness, "ragas-0.1.9:faithfulness"),
    _row(AnswerRelevancy, "ragas-0.1.9:answer_relevancy"),
    _row(AnswerCorrectness, "ragas-0.1.9:answer_correctness"),
    _row(AnswerSimilarity, "ragas-0.1.9:answer_similarity"),
    _row(AspectCritique, "ragas-0.1.9:aspect_critique", aspect=Aspect.HARMFULNESS),
    _row(ContextRecall, "ragas-0.1.22:context_recall"),
    _row(ContextPrecision, "ragas-0.1.22:context_precision"),
    _row(ContextUtilization, "ragas-0.1.22:context_utilization"),
    _row(ContextEntityRecall, "ragas-0.1.22:context_entity_recall"),
    _row(Faithfulness, "ragas-0.1.22:faithfulness"),
    _row(AnswerRelevancy, "ragas-0.1.22:answer_relevancy"),
    _row(AnswerCorrectness, "ragas-0.1.22:answer_correctness"),
    _row(AnswerSimilarity, "ragas-0.1.22:answer_similarity"),
    _row(AspectCritique, "ragas-0.1.22:aspect_critique", aspect=Aspect.HARMFULNESS),
    _row(FaithfulnessWithHHEM, "ragas-0.1.22:faithfulness_with_hhem", "", "FaithfulnessWithHHEM22"),
    _row(NoiseSensitivity, "ragas-0.1.22:noise_sensitivity_relevant", ", to relevant contexts", focus=Focus.RELEVANT),
    _row(
        NoiseSensitivity,
        "ragas-0.1.22:noise_sensitivity_irrelevant",
        ", to irrelevant contexts",
        focus=Focus.IRRELEVANT,
    ),
    _row(SummarizationScore, "ragas-0.1.22:summarization_score"),
)
