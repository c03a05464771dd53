"""The metrics of spring-ai-ragas that judge what was retrieved: precision, recall, and recall of entities."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from merilo.metrics.base import EvidenceTarget, Score, Undefined
from merilo.metrics.formulas import average_precision
from merilo_published.replies import ReplyFault
from merilo_published.spring_ai_ragas.models import (
    NULL,
    JudgedText,
    ModelRequest,
    ScoresEmpty,
    fields_of,
    flag_or_none,
    objects_in,
    or_nothing,
    text_or_blank,
    texts_of,
    whole_or_none,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


class Strategy(StrEnum):
    """The text that a context is compared with."""

    AUTO = "auto"
    """The reference, or the response where the reference is missing or blank."""
    REFERENCE_BASED = "reference_based"
    """As `auto`: it falls back to the response too."""
    RESPONSE_BASED = "response_based"


def _relevant(value: object) -> bool:
    return flag_or_none(fields_of(value), "relevant") or False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPrecision(ScoresEmpty):
    """Average precision of the contexts, each found relevant or not by one or several models.

    Formula: Average over models of the mean, over the ranks of relevant contexts, of precision at that rank.
    Questions: One request for each context and model.
    Undefined: there is neither a reference nor a response | ...
    Not: With judges that may fail: a lost call counts as an irrelevant context.
    See: context_precision | spring-ai-ragas:context_relevance
    Source: spring-ai-ragas 0.3.3, ContextPrecisionMetric.

    No epsilon. All contexts are judged side by side. A call that fails means "not relevant", flagged, so a model that
    always fails scores 0 and still counts.

    - `evaluation_strategy`: what a context is judged against, see `Strategy`.
    """

    name: ClassVar[str] = "spring-ai-ragas:context_precision"
    ranked: ClassVar[bool] = True
    needs = frozenset({"user_input", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "needs": "a reference or a response is needed, either will do",
            "nothing to judge": "it scores 0",
            "failures": "a lost call is a context that is not relevant",
        }
    )

    evaluation_strategy: Strategy = Strategy.AUTO

    def max_questions(self, sample: Sample) -> int:
        return len(self.names) * len(sample.retrieved_contexts or ())

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self.nothing(sample, ("retrieved_contexts",))) is not None:
            return nothing
        user_input, contexts = sample.require("user_input"), sample.contexts
        reference = sample.reference or ""
        by_reference = self.evaluation_strategy is not Strategy.RESPONSE_BASED and reference.strip()
        against, text = ("reference", reference) if by_reference else ("response", sample.require("response"))
        shared = {"user_input": user_input, against: text}
        panel = self.panel(sample)
        asks = [
            ModelRequest(
                role, f"context_precision.{against}", {**shared, "context": context.text}, '{"relevant": true}'
            )
            for context in contexts
            for role in self.names
        ]
        replies = yield from panel.read(asks, _relevant)
        if None in replies:
            panel.flags.add("a model's call failed and was scored as not relevant")
        flags = [each is not None and each.value for each in replies]
        scores = {role: average_precision(flags[at :: len(self.names)]) for at, role in enumerate(self.names)}
        evidence = [
            each.evidence(EvidenceTarget.CONTEXT, index // len(self.names), value=float(each.value))
            for index, each in enumerate(replies)
            if each is not None
        ]
        return self.outcome(panel, scores, evidence, {"contexts": len(contexts), "relevant": sum(flags)})


def _attributions(value: object) -> tuple[JudgedText, ...]:
    found: list[JudgedText] = []
    for fields in objects_in(or_nothing(value), "classifications"):
        attributed = whole_or_none(fields, "attributed")
        if attributed is None:
            raise ReplyFault(NULL)
        found.append(JudgedText(text_or_blank(fields, "statement"), float(attributed)))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecall(ScoresEmpty):
    """Share of the reference's statements that the contexts account for, by one or several models.

    Formula: Average over models of sum of attributed / classifications.
    Questions: One request for each model.
    Not: Where nothing to judge must not look like a bad score. Take context_recall.
    See: context_recall | spring-ai-ragas:context_entity_recall
    Source: spring-ai-ragas 0.3.3, ContextRecallMetric.

    One request a model splits the reference and judges its statements, against the contexts joined by blank lines. In
    [0, 1] as long as the models keep to 0 and 1: the numbers are summed as they are, so that a 2 counts twice. Failed
    when no reply can be read.
    """

    name: ClassVar[str] = "spring-ai-ragas:context_recall"
    needs = frozenset({"user_input", "retrieved_contexts", "reference"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({**ScoresEmpty.breaks, "range": "a 2 counts twice"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self.nothing(sample, ("reference", "retrieved_contexts", "user_input"))) is not None:
            return nothing
        panel = self.panel(sample)
        values = {
            "user_input": sample.require("user_input"),
            "context": "\n\n".join(context.text for context in sample.contexts),
            "reference": sample.require("reference"),
        }
        likely = '{"classifications": [{"statement": "A statement.", "reason": "A reason.", "attributed": 1}]}'
        replies = yield from panel.ask(self.names, "context_recall", values, likely=likely, read=_attributions)
        return self.shares(panel, replies, ("statements", "attributed"), what="statement")


def _entities(value: object) -> frozenset[str]:
    return frozenset(text.strip().lower() for text in texts_of(or_nothing(value), "entities") if text.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEntityRecall(ScoresEmpty):
    """Share of the reference's entities that the contexts name, by one or several models.

    Formula: Average over models of |entities in both| / |entities of the reference|.
    Questions: Two requests for each model.
    Not: If one thing has several spellings: texts are compared character by character, ignoring case.
    See: spring-ai-ragas:context_recall | context_recall
    Source: spring-ai-ragas 0.3.3, ContextEntityRecallMetric.

    In full: average over the models of |entities in both| / |entities of the reference|, compared as sets of stripped,
    lower-cased texts, without an epsilon. Two requests a model, side by side: the reference, then the contexts joined
    by blank lines. Failed when no model answers both.
    """

    name: ClassVar[str] = "spring-ai-ragas:context_entity_recall"
    most: ClassVar[int] = 2
    needs = frozenset({"retrieved_contexts", "reference"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self.nothing(sample, ("reference", "retrieved_contexts"))) is not None:
            return nothing
        panel = self.panel(sample)
        texts = (sample.require("reference"), "\n\n".join(context.text for context in sample.contexts))
        likely = '{"entities": ["An entity"]}'
        asks = [
            ModelRequest(role, "context_entity_recall", {"text": text}, likely) for text in texts for role in self.names
        ]
        replies = yield from panel.read(asks, _entities)
        half = len(self.names)
        scores: dict[str, float] = {}
        counts = {"entities": 0, "found": 0}
        for role, wanted, found in zip(self.names, replies[:half], replies[half:], strict=True):
            if wanted is not None and found is not None:
                both = wanted.value & found.value
                scores[role] = self.share(panel, len(both), len(wanted.value), "entity in the reference")
                counts = {"entities": counts["entities"] + len(wanted.value), "found": counts["found"] + len(both)}
        evidence = [each.evidence(EvidenceTarget.TEXT, 0, value=float(len(each.value))) for each in replies if each]
        return self.outcome(panel, scores, evidence, counts)
