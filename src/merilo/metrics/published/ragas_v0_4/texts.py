"""Metrics without a judge in ragas 0.2 to 0.4: contexts by their spelling or ids, responses by their spelling."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.base import Card, Kinds, MetricDefaults, Score, Undefined, choice
from merilo.metrics.formulas import average_precision, smoothed_average_precision
from merilo.metrics.published.ragas_v0_4.distances import Distance, similarity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Context, Sample
    from merilo.judging.ask import Plan

_NOTHING: Final = Kinds()
_NO_REFERENCE: Final = "there is no reference context"
_NOTHING_RETRIEVED: Final = "nothing was retrieved"


class Comparison(StrEnum):
    """The comparison of a similarity with the threshold."""

    AT_LEAST = ">="
    ABOVE = ">"


class _Unasked(MetricDefaults):
    """A metric that asks nothing."""

    __slots__ = ()

    name: ClassVar[str]
    version: ClassVar[int] = 1
    asks = _NOTHING

    def max_questions(self, sample: Sample) -> int:
        """Return the maximum: no question."""
        del sample
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _ByLetters(_Unasked):
    """Compares retrieved and reference contexts by their letters.

    `distance`: the measure; similarity is 1 minus it. `threshold` and `comparison`: which similarities count.
    """

    needs = frozenset({"retrieved_contexts", "reference_contexts"})

    distance: Distance = Distance.LEVENSHTEIN
    threshold: float = 0.5
    comparison: Comparison = Comparison.AT_LEAST

    def __post_init__(self) -> None:
        distance = choice(Distance, self.distance, metric=self.name, parameter="distance")
        comparison = choice(Comparison, self.comparison, metric=self.name, parameter="comparison")
        object.__setattr__(self, "distance", distance)
        object.__setattr__(self, "comparison", comparison)

    def _found(self, context: Context, among: Sequence[Context]) -> bool:
        """Return True if one of these contexts, at least one, is similar enough."""
        best = max(similarity(self.distance, context.text, other.text) for other in among)
        return best >= self.threshold if self.comparison is Comparison.AT_LEAST else best > self.threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class NonLLMPrecision(_ByLetters):
    """Average precision of the contexts that are spelled like a reference context, in [0, 1).

    Formula: as `PrecisionWithReference`, v is 1 where the best similarity to a reference context is at least
    `threshold`. 0 when nothing was retrieved; undefined without reference contexts (upstream raises). Source:
    ragas 0.4.3, NonLLMContextPrecisionWithReference; since 0.2.

    Quirks: at the threshold itself a context counts (`comparison=">="`), which in the recall it does not;
    `smoothed` as in `PrecisionWithReference`.
    """

    name: ClassVar[str] = "ragas-0.4.3:non_llm_context_precision_with_reference"
    ranked: ClassVar[bool] = True
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "nothing retrieved scores 0"})
    card: ClassVar[Card] = Card(
        summary="Ranking: contexts spelled like reference contexts should come before the others, as ragas scores it.",
        formula="Sum over ranks k of v_k (v_1 + ... + v_k) / k, divided by (sum of all v + 1e-10).",
        questions="None.",
        undefined=(_NO_REFERENCE,),
        when="Where the reference contexts are the very texts of the index.",
        when_not="Where texts were cut differently: spelling is all that counts.",
        relatives=("context_precision", "ragas-0.4.3:id_based_context_precision"),
        sources=("ragas 0.4.3, metrics/_context_precision.py",),
        family="ragas-0.4.3",
    )

    smoothed: bool = True

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        yield from ()
        contexts, references = sample.contexts, sample.require("reference_contexts")
        if contexts and not references:
            return Undefined(_NO_REFERENCE)
        found = [self._found(context, references) for context in contexts]
        value = smoothed_average_precision(found) if self.smoothed else average_precision(found)
        return Score(value, counts={"contexts": len(found), "found": sum(found)})


@dataclass(frozen=True, slots=True, kw_only=True)
class NonLLMRecall(_ByLetters):
    """Share of the reference contexts that a retrieved context is spelled like, in [0, 1].

    Formula: reference contexts whose best similarity to a retrieved one is above `threshold` / reference
    contexts. Undefined without reference contexts, and when nothing was retrieved (upstream raises). Source:
    ragas 0.4.3, NonLLMContextRecall; since 0.2.

    Quirk: at the threshold itself a context does not count (`comparison=">"`), which in the precision it does.
    """

    name: ClassVar[str] = "ragas-0.4.3:non_llm_context_recall"
    card: ClassVar[Card] = Card(
        summary="Which share of the reference contexts was retrieved, by spelling, as ragas scores it.",
        formula="Reference contexts with a similar retrieved one / reference contexts.",
        questions="None.",
        undefined=(_NO_REFERENCE, _NOTHING_RETRIEVED),
        when="Where the reference contexts are the very texts of the index.",
        when_not="Where texts were cut differently: spelling is all that counts.",
        relatives=("context_recall", "ragas-0.4.3:id_based_context_recall"),
        sources=("ragas 0.4.3, metrics/_context_recall.py",),
        family="ragas-0.4.3",
    )

    comparison: Comparison = Comparison.ABOVE

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        yield from ()
        contexts, references = sample.contexts, sample.require("reference_contexts")
        if not references:
            return Undefined(_NO_REFERENCE)
        if not contexts:
            return Undefined(_NOTHING_RETRIEVED)
        found = sum(self._found(reference, contexts) for reference in references)
        return Score(found / len(references), counts={"references": len(references), "found": found})


@dataclass(frozen=True, slots=True, kw_only=True)
class IDBasedPrecision(_Unasked):
    """Share of the different retrieved ids that are reference ids, in [0, 1].

    Formula: |retrieved and reference| / |retrieved|, over sets of ids as texts. Undefined when nothing was
    retrieved. Source: ragas 0.4.3, IDBasedContextPrecision.
    """

    name: ClassVar[str] = "ragas-0.4.3:id_based_context_precision"
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    card: ClassVar[Card] = Card(
        summary="Which share of the retrieved ids are reference ids.",
        formula="|retrieved and reference| / |retrieved|, over sets.",
        questions="None.",
        undefined=(_NOTHING_RETRIEVED,),
        when="Where contexts have ids that stay.",
        when_not="Where the same text has several ids.",
        relatives=("context_precision", "ragas-0.4.3:id_based_context_recall"),
        sources=("ragas 0.4.3, metrics/_context_precision.py",),
        family="ragas-0.4.3",
    )

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        yield from ()
        retrieved = set(sample.require("retrieved_context_ids"))
        found = retrieved & set(sample.require("reference_context_ids"))
        if not retrieved:
            return Undefined(_NOTHING_RETRIEVED)
        return Score(len(found) / len(retrieved), counts={"retrieved": len(retrieved), "found": len(found)})


@dataclass(frozen=True, slots=True, kw_only=True)
class IDBasedRecall(_Unasked):
    """Share of the different reference ids that were retrieved, in [0, 1].

    Formula: |retrieved and reference| / |reference|, over sets of ids as texts. Undefined without reference
    ids. Source: ragas 0.4.3, IDBasedContextRecall.
    """

    name: ClassVar[str] = "ragas-0.4.3:id_based_context_recall"
    needs = frozenset({"retrieved_context_ids", "reference_context_ids"})
    card: ClassVar[Card] = Card(
        summary="Which share of the reference ids was retrieved.",
        formula="|retrieved and reference| / |reference|, over sets.",
        questions="None.",
        undefined=("there is no reference id",),
        when="Where contexts have ids that stay.",
        when_not="Where the same text has several ids.",
        relatives=("context_recall", "ragas-0.4.3:id_based_context_precision"),
        sources=("ragas 0.4.3, metrics/_context_recall.py",),
        family="ragas-0.4.3",
    )

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        yield from ()
        retrieved = set(sample.require("retrieved_context_ids"))
        references = set(sample.require("reference_context_ids"))
        if not references:
            return Undefined("there is no reference id")
        found = len(retrieved & references)
        return Score(found / len(references), counts={"references": len(references), "found": found})


@dataclass(frozen=True, slots=True, kw_only=True)
class StringSimilarity(_Unasked):
    """Similarity of the spelling of response and reference, in [0, 1]; 1 for two empty texts.

    Formula: 1 minus the normalised `distance`. Source: ragas 0.4.3, NonLLMStringSimilarity; since 0.2.
    """

    name: ClassVar[str] = "ragas-0.4.3:non_llm_string_similarity"
    needs = frozenset({"response", "reference"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "two empty texts are alike"})
    card: ClassVar[Card] = Card(
        summary="How alike response and reference are spelled.",
        formula="1 - distance / longest possible distance.",
        questions="None.",
        when="Where the response should be the reference to the letter, but for slips.",
        when_not="To compare meanings.",
        relatives=("ragas-0.4.3:exact_match", "ragas-0.4.3:semantic_similarity"),
        sources=("ragas 0.4.3, metrics/_string.py",),
        family="ragas-0.4.3",
    )

    distance: Distance = Distance.LEVENSHTEIN

    def __post_init__(self) -> None:
        member = choice(Distance, self.distance, metric=self.name, parameter="distance")
        object.__setattr__(self, "distance", member)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        yield from ()
        return Score(similarity(self.distance, sample.require("reference"), sample.require("response")))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactMatch(_Unasked):
    """1 when response and reference are the same letter by letter, else 0. Source: ragas 0.4.3, ExactMatch."""

    name: ClassVar[str] = "ragas-0.4.3:exact_match"
    needs = frozenset({"response", "reference"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "two empty texts are equal"})
    card: ClassVar[Card] = Card(
        summary="Tests that response and reference are the same, character by character.",
        formula="1 if response = reference, else 0.",
        questions="None.",
        when="For answers of one word or number.",
        when_not="Where case or spaces may differ: nothing is folded.",
        relatives=("ragas-0.4.3:string_presence",),
        sources=("ragas 0.4.3, metrics/_string.py",),
        family="ragas-0.4.3",
    )

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        yield from ()
        return Score(float(sample.require("reference") == sample.require("response")))


@dataclass(frozen=True, slots=True, kw_only=True)
class StringPresence(_Unasked):
    """1 if the response contains the reference exactly, otherwise 0; every response contains an empty reference.

    Source: ragas 0.4.3, StringPresence.
    """

    name: ClassVar[str] = "ragas-0.4.3:string_presence"
    needs = frozenset({"response", "reference"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "an empty text occurs in any"})
    card: ClassVar[Card] = Card(
        summary="Tests that the response contains the reference, character by character.",
        formula="1 if the reference is a part of the response, else 0.",
        questions="None.",
        when="For references of one word or number.",
        when_not="Where case or spaces may differ: nothing is folded.",
        relatives=("ragas-0.4.3:exact_match",),
        sources=("ragas 0.4.3, metrics/_string.py",),
        family="ragas-0.4.3",
    )

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        yield from ()
        return Score(float(sample.require("reference") in sample.require("response")))
