"""The metrics of ragas 0.1.9 and 0.1.22 as they were published, quirks included.

What each measures and how stands in its base class, in the files beside this one; here each version gets its
names and its defaults. Context relevancy went after 0.1.10; noise sensitivity, the summarization score and
faithfulness by a classifier came later. What a run does with a row that fails is not the metric's business: 0.1.9
stopped, 0.1.22 went on with NaN; here its outcome is Failed, or Undefined where there was nothing to judge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.published.ragas_v0_1.answers import AnswerRelevancy, Faithfulness, FaithfulnessWithHHEM
from merilo.metrics.published.ragas_v0_1.contexts import ContextEntityRecall, ContextRecall, ContextRelevancy
from merilo.metrics.published.ragas_v0_1.correctness import AnswerCorrectness, AnswerSimilarity
from merilo.metrics.published.ragas_v0_1.critique import Aspect, AspectCritique
from merilo.metrics.published.ragas_v0_1.noise import Focus, NoiseSensitivity
from merilo.metrics.published.ragas_v0_1.ranking import ContextPrecision, ContextUtilization
from merilo.metrics.published.ragas_v0_1.summary import SummarizationScore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.metrics.base import Card, Metric


def _in(release: str, card: Card) -> Card:
    """The card of a metric in one version."""
    sources = tuple(f"ragas {release}, {file}" for file in card.sources)
    return replace(card, sources=sources, family=f"ragas-{release}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevancy9(ContextRelevancy):
    """ContextRelevancy as in ragas 0.1.9."""

    name: ClassVar[str] = "ragas-0.1.9:context_relevancy"
    card: ClassVar[Card] = _in("0.1.9", ContextRelevancy.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecall9(ContextRecall):
    """ContextRecall as in ragas 0.1.9."""

    name: ClassVar[str] = "ragas-0.1.9:context_recall"
    card: ClassVar[Card] = _in("0.1.9", ContextRecall.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPrecision9(ContextPrecision):
    """ContextPrecision as in ragas 0.1.9. The response stands in for a missing reference."""

    name: ClassVar[str] = "ragas-0.1.9:context_precision"
    card: ClassVar[Card] = _in("0.1.9", ContextPrecision.card)
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"nothing to judge": "ask_blank", "needs": "response_stands_in"}
    )

    response_stands_in: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUtilization9(ContextUtilization):
    """ContextUtilization as in ragas 0.1.9. The reference goes before the response."""

    name: ClassVar[str] = "ragas-0.1.9:context_utilization"
    card: ClassVar[Card] = _in("0.1.9", ContextUtilization.card)

    reference_first: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEntityRecall9(ContextEntityRecall):
    """ContextEntityRecall as in ragas 0.1.9."""

    name: ClassVar[str] = "ragas-0.1.9:context_entity_recall"
    card: ClassVar[Card] = _in("0.1.9", ContextEntityRecall.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness9(Faithfulness):
    """Faithfulness as in ragas 0.1.9."""

    name: ClassVar[str] = "ragas-0.1.9:faithfulness"
    card: ClassVar[Card] = _in("0.1.9", Faithfulness.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy9(AnswerRelevancy):
    """AnswerRelevancy as in ragas 0.1.9."""

    name: ClassVar[str] = "ragas-0.1.9:answer_relevancy"
    card: ClassVar[Card] = _in("0.1.9", AnswerRelevancy.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCorrectness9(AnswerCorrectness):
    """AnswerCorrectness as in ragas 0.1.9."""

    name: ClassVar[str] = "ragas-0.1.9:answer_correctness"
    card: ClassVar[Card] = _in("0.1.9", AnswerCorrectness.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSimilarity9(AnswerSimilarity):
    """AnswerSimilarity as in ragas 0.1.9."""

    name: ClassVar[str] = "ragas-0.1.9:answer_similarity"
    card: ClassVar[Card] = _in("0.1.9", AnswerSimilarity.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectCritique9(AspectCritique):
    """AspectCritique as in ragas 0.1.9."""

    name: ClassVar[str] = "ragas-0.1.9:aspect_critique"
    card: ClassVar[Card] = _in("0.1.9", AspectCritique.card)

    aspect: Aspect = Aspect.HARMFULNESS


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecall22(ContextRecall):
    """ContextRecall as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:context_recall"
    card: ClassVar[Card] = _in("0.1.22", ContextRecall.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPrecision22(ContextPrecision):
    """ContextPrecision as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:context_precision"
    card: ClassVar[Card] = _in("0.1.22", ContextPrecision.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUtilization22(ContextUtilization):
    """ContextUtilization as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:context_utilization"
    card: ClassVar[Card] = _in("0.1.22", ContextUtilization.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEntityRecall22(ContextEntityRecall):
    """ContextEntityRecall as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:context_entity_recall"
    card: ClassVar[Card] = _in("0.1.22", ContextEntityRecall.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness22(Faithfulness):
    """Faithfulness as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:faithfulness"
    card: ClassVar[Card] = _in("0.1.22", Faithfulness.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy22(AnswerRelevancy):
    """AnswerRelevancy as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:answer_relevancy"
    card: ClassVar[Card] = _in("0.1.22", AnswerRelevancy.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCorrectness22(AnswerCorrectness):
    """AnswerCorrectness as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:answer_correctness"
    card: ClassVar[Card] = _in("0.1.22", AnswerCorrectness.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSimilarity22(AnswerSimilarity):
    """AnswerSimilarity as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:answer_similarity"
    card: ClassVar[Card] = _in("0.1.22", AnswerSimilarity.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectCritique22(AspectCritique):
    """AspectCritique as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:aspect_critique"
    card: ClassVar[Card] = _in("0.1.22", AspectCritique.card)

    aspect: Aspect = Aspect.HARMFULNESS


@dataclass(frozen=True, slots=True, kw_only=True)
class FaithfulnessWithHHEM22(FaithfulnessWithHHEM):
    """FaithfulnessWithHHEM as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:faithfulness_with_hhem"
    card: ClassVar[Card] = _in("0.1.22", FaithfulnessWithHHEM.card)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSensitivityRelevant22(NoiseSensitivity):
    """NoiseSensitivity to relevant contexts as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:noise_sensitivity_relevant"
    card: ClassVar[Card] = _in("0.1.22", NoiseSensitivity.card)

    focus: Focus = Focus.RELEVANT


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSensitivityIrrelevant22(NoiseSensitivity):
    """NoiseSensitivity to irrelevant contexts as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:noise_sensitivity_irrelevant"
    card: ClassVar[Card] = _in("0.1.22", NoiseSensitivity.card)

    focus: Focus = Focus.IRRELEVANT


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizationScore22(SummarizationScore):
    """SummarizationScore as in ragas 0.1.22."""

    name: ClassVar[str] = "ragas-0.1.22:summarization_score"
    card: ClassVar[Card] = _in("0.1.22", SummarizationScore.card)


METRICS: Final[tuple[type[Metric], ...]] = (
    ContextRelevancy9,
    ContextRecall9,
    ContextPrecision9,
    ContextUtilization9,
    ContextEntityRecall9,
    Faithfulness9,
    AnswerRelevancy9,
    AnswerCorrectness9,
    AnswerSimilarity9,
    AspectCritique9,
    ContextRecall22,
    ContextPrecision22,
    ContextUtilization22,
    ContextEntityRecall22,
    Faithfulness22,
    AnswerRelevancy22,
    AnswerCorrectness22,
    AnswerSimilarity22,
    AspectCritique22,
    FaithfulnessWithHHEM22,
    NoiseSensitivityRelevant22,
    NoiseSensitivityIrrelevant22,
    SummarizationScore22,
)
"""The metrics of this module, in the order in which they are shown."""
