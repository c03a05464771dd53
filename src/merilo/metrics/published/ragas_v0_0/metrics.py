"""The metrics of ragas 0.0.12, 0.0.13 and 0.0.15 as they were published, quirks included.

The base classes, in the other modules of this package, document the formulas. Each row here gives a metric of one
version its name and its defaults. The versions differ in context relevancy alone.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from merilo.metrics.published.ragas_v0_0.answers import AnswerRelevancy, AspectCritique, Faithfulness
from merilo.metrics.published.ragas_v0_0.contexts import ContextRecall, ContextRelevancy, Segmentation
from merilo.metrics.published.ragas_v0_0.score import RagasScore, ragas_score
from merilo.metrics.published.ragas_variants import ragas_variant

if TYPE_CHECKING:
    from merilo.metrics.base import Composite, Metric

__all__ = ["COMPOSITES", "METRICS", "ragas_score"]

_row: Final = partial(ragas_variant, relatives=("ragas_score",))

METRICS: Final[tuple[type[Metric], ...]] = (
    _row(
        ContextRelevancy,
        "ragas-0.0.12:context_relevancy",
        ": two replies, and sentences end at full stops",
        breaks=MappingProxyType({"nothing to judge": "ask_blank"}),
        strictness=2,
        segmentation=Segmentation.FULL_STOP,
    ),
    _row(ContextRecall, "ragas-0.0.12:context_recall"),
    _row(Faithfulness, "ragas-0.0.12:faithfulness"),
    _row(AnswerRelevancy, "ragas-0.0.12:answer_relevancy"),
    _row(AspectCritique, "ragas-0.0.12:aspect_critique"),
    _row(
        ContextRelevancy,
        "ragas-0.0.13:context_relevancy",
        ": one reply, and contexts without a sentence are Undefined",
    ),
    _row(ContextRecall, "ragas-0.0.13:context_recall"),
    _row(Faithfulness, "ragas-0.0.13:faithfulness"),
    _row(AnswerRelevancy, "ragas-0.0.13:answer_relevancy"),
    _row(AspectCritique, "ragas-0.0.13:aspect_critique"),
    _row(
        ContextRelevancy,
        "ragas-0.0.15:context_relevancy",
        ": one reply, and contexts without a sentence score 0",
        breaks=MappingProxyType({"nothing to judge": "no_sentence_is_zero"}),
        no_sentence_is_zero=True,
    ),
    _row(ContextRecall, "ragas-0.0.15:context_recall"),
    _row(Faithfulness, "ragas-0.0.15:faithfulness"),
    _row(AnswerRelevancy, "ragas-0.0.15:answer_relevancy"),
    _row(AspectCritique, "ragas-0.0.15:aspect_critique"),
)
"""The metrics of this module, in the order in which they are shown."""

COMPOSITES: Final[tuple[type[Composite], ...]] = (
    _row(RagasScore, "ragas-0.0.12:ragas_score"),
    _row(RagasScore, "ragas-0.0.13:ragas_score"),
    _row(RagasScore, "ragas-0.0.15:ragas_score"),
)
"""Scores that combine the means of metrics over a run, in the order in which they are shown."""
