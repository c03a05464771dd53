"""The metrics of ragas 0.0.12, 0.0.13 and 0.0.15 as they were published, quirks included.

What each measures and how stands in its base class, in the files beside this one; here each version gets its
names and its defaults. The versions differ in context relevancy alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.published.ragas_v0_0.answers import AnswerRelevancy, AspectCritique, Faithfulness
from merilo.metrics.published.ragas_v0_0.contexts import ContextRecall, ContextRelevancy, Segmentation
from merilo.metrics.published.ragas_v0_0.score import RagasScore, ragas_score

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.metrics.base import Card, Composite, Metric

__all__ = ["COMPOSITES", "METRICS", "ragas_score"]


def _in(release: str, card: Card) -> Card:
    """The card of a metric in one version."""
    system = f"ragas-{release}"
    return replace(
        card,
        relatives=(*card.relatives, f"{system}:ragas_score"),
        sources=tuple(f"ragas {release}, {file}" for file in card.sources),
        family=system,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevancy12(ContextRelevancy):
    """ContextRelevancy as in ragas 0.0.12: two replies, and sentences end at full stops."""

    name: ClassVar[str] = "ragas-0.0.12:context_relevancy"
    card: ClassVar[Card] = _in("0.0.12", ContextRelevancy.card)
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "ask_blank"})

    strictness: int = 2
    segmentation: Segmentation = Segmentation.FULL_STOP


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecall12(ContextRecall):
    """ContextRecall as in ragas 0.0.12."""

    name: ClassVar[str] = "ragas-0.0.12:context_recall"
    card: ClassVar[Card] = _in("0.0.12", ContextRecall.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness12(Faithfulness):
    """Faithfulness as in ragas 0.0.12."""

    name: ClassVar[str] = "ragas-0.0.12:faithfulness"
    card: ClassVar[Card] = _in("0.0.12", Faithfulness.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy12(AnswerRelevancy):
    """AnswerRelevancy as in ragas 0.0.12."""

    name: ClassVar[str] = "ragas-0.0.12:answer_relevancy"
    card: ClassVar[Card] = _in("0.0.12", AnswerRelevancy.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectCritique12(AspectCritique):
    """AspectCritique as in ragas 0.0.12."""

    name: ClassVar[str] = "ragas-0.0.12:aspect_critique"
    card: ClassVar[Card] = _in("0.0.12", AspectCritique.card)


@dataclass(frozen=True, slots=True)
class RagasScore12(RagasScore):
    """RagasScore as in ragas 0.0.12."""

    name: ClassVar[str] = "ragas-0.0.12:ragas_score"
    card: ClassVar[Card] = _in("0.0.12", RagasScore.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevancy13(ContextRelevancy):
    """ContextRelevancy as in ragas 0.0.13: one reply, and contexts without a sentence are Undefined."""

    name: ClassVar[str] = "ragas-0.0.13:context_relevancy"
    card: ClassVar[Card] = _in("0.0.13", ContextRelevancy.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecall13(ContextRecall):
    """ContextRecall as in ragas 0.0.13."""

    name: ClassVar[str] = "ragas-0.0.13:context_recall"
    card: ClassVar[Card] = _in("0.0.13", ContextRecall.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness13(Faithfulness):
    """Faithfulness as in ragas 0.0.13."""

    name: ClassVar[str] = "ragas-0.0.13:faithfulness"
    card: ClassVar[Card] = _in("0.0.13", Faithfulness.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy13(AnswerRelevancy):
    """AnswerRelevancy as in ragas 0.0.13."""

    name: ClassVar[str] = "ragas-0.0.13:answer_relevancy"
    card: ClassVar[Card] = _in("0.0.13", AnswerRelevancy.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectCritique13(AspectCritique):
    """AspectCritique as in ragas 0.0.13."""

    name: ClassVar[str] = "ragas-0.0.13:aspect_critique"
    card: ClassVar[Card] = _in("0.0.13", AspectCritique.card)


@dataclass(frozen=True, slots=True)
class RagasScore13(RagasScore):
    """RagasScore as in ragas 0.0.13."""

    name: ClassVar[str] = "ragas-0.0.13:ragas_score"
    card: ClassVar[Card] = _in("0.0.13", RagasScore.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevancy15(ContextRelevancy):
    """ContextRelevancy as in ragas 0.0.15: one reply, and contexts without a sentence score 0."""

    name: ClassVar[str] = "ragas-0.0.15:context_relevancy"
    card: ClassVar[Card] = _in("0.0.15", ContextRelevancy.card)
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "no_sentence_is_zero"})

    no_sentence_is_zero: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecall15(ContextRecall):
    """ContextRecall as in ragas 0.0.15."""

    name: ClassVar[str] = "ragas-0.0.15:context_recall"
    card: ClassVar[Card] = _in("0.0.15", ContextRecall.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness15(Faithfulness):
    """Faithfulness as in ragas 0.0.15."""

    name: ClassVar[str] = "ragas-0.0.15:faithfulness"
    card: ClassVar[Card] = _in("0.0.15", Faithfulness.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy15(AnswerRelevancy):
    """AnswerRelevancy as in ragas 0.0.15."""

    name: ClassVar[str] = "ragas-0.0.15:answer_relevancy"
    card: ClassVar[Card] = _in("0.0.15", AnswerRelevancy.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectCritique15(AspectCritique):
    """AspectCritique as in ragas 0.0.15."""

    name: ClassVar[str] = "ragas-0.0.15:aspect_critique"
    card: ClassVar[Card] = _in("0.0.15", AspectCritique.card)


@dataclass(frozen=True, slots=True)
class RagasScore15(RagasScore):
    """RagasScore as in ragas 0.0.15."""

    name: ClassVar[str] = "ragas-0.0.15:ragas_score"
    card: ClassVar[Card] = _in("0.0.15", RagasScore.card)


METRICS: Final[tuple[type[Metric], ...]] = (
    ContextRelevancy12,
    ContextRecall12,
    Faithfulness12,
    AnswerRelevancy12,
    AspectCritique12,
    ContextRelevancy13,
    ContextRecall13,
    Faithfulness13,
    AnswerRelevancy13,
    AspectCritique13,
    ContextRelevancy15,
    ContextRecall15,
    Faithfulness15,
    AnswerRelevancy15,
    AspectCritique15,
)
"""The metrics of this module, in the order in which they are shown."""

COMPOSITES: Final[tuple[type[Composite], ...]] = (RagasScore12, RagasScore13, RagasScore15)
"""What combines the means of metrics over a run, in the order in which they are shown."""
