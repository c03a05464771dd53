"""spring-ai-ragas: precision, recall and entities of what was retrieved, noise sensitivity, and the user's criteria."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.json_types import as_list, as_object
from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined
from merilo.metrics.formulas import average_precision
from merilo_published.asking import ReplyFault
from merilo_published.definition import by_parameters, noisy
from merilo_published.spring_ai_ragas.models import (
    NULL,
    Aggregator,
    Panel,
    ScoresEmpty,
    SeveralModels,
    aggregate,
    fields_of,
    flag_or_none,
    json_template,
    judged_texts,
    number_or_none,
    objects_in,
    or_nothing,
    texts_of,
    whole_or_none,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo_published.asking import Fields, ReadReply, RequestTemplate


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
    required = ("retrieved_contexts",)
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "needs": "a reference or a response is needed, either will do",
            "nothing to judge": "it scores 0",
            "failures": "a lost call is a context that is not relevant",
        }
    )

    most = 0
    each_context = 1

    evaluation_strategy: Strategy = Strategy.AUTO

    def judged(self, sample: Sample, panel: Panel) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        reference = sample.reference or ""
        by_reference = self.evaluation_strategy is not Strategy.RESPONSE_BASED and reference.strip()
        against, text = ("reference", reference) if by_reference else ("response", sample.require("response"))
        shared = {"user_input": user_input, against: text}
        template = json_template(f"context_precision.{against}", '{"relevant": true}', _relevant)
        asked = [(role, {**shared, "context": each.text}) for each in contexts for role in self.names]
        replies = yield from panel.read(template, asked)
        if None in replies:
            panel.flags["a model's call failed and was scored as not relevant"] = None
        flags = [each is not None and each.value for each in replies]
        scores = {role: average_precision(flags[at :: len(self.names)]) for at, role in enumerate(self.names)}
        evidence = [
            each.evidence(EvidenceTarget.CONTEXT, index // len(self.names), value=float(each.value))
            for index, each in enumerate(replies)
            if each is not None
        ]
        return self.outcome(panel, scores, evidence, {"contexts": len(contexts), "relevant": sum(flags)})


def _attributed(fields: Fields) -> float:
    if (attributed := whole_or_none(fields, "attributed")) is None:
        raise ReplyFault(NULL)
    return float(attributed)


_ATTRIBUTIONS: Final = json_template(
    "context_recall",
    '{"classifications": [{"statement": "A statement.", "reason": "A reason.", "attributed": 1}]}',
    lambda value: judged_texts(value, "classifications", "statement", _attributed),
)


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
    required = ("reference", "retrieved_contexts", "user_input")
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({**ScoresEmpty.breaks, "range": "a 2 counts twice"})

    def judged(self, sample: Sample, panel: Panel) -> Plan[Score | Undefined]:
        values = {
            "user_input": sample.require("user_input"),
            "context": "\n\n".join(context.text for context in sample.contexts),
            "reference": sample.require("reference"),
        }
        replies = yield from panel.ask(_ATTRIBUTIONS, self.names, values)
        return self.shares(panel, replies, ("statements", "attributed"), what="statement")


def _entities(value: object) -> frozenset[str]:
    return frozenset(text.strip().lower() for text in texts_of(or_nothing(value), "entities") if text.strip())


_ENTITIES: Final = json_template("context_entity_recall", '{"entities": ["An entity"]}', _entities)


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
    most = 2
    needs = frozenset({"retrieved_contexts", "reference"})
    required = ("reference", "retrieved_contexts")

    def judged(self, sample: Sample, panel: Panel) -> Plan[Score | Undefined]:
        texts = (sample.require("reference"), "\n\n".join(context.text for context in sample.contexts))
        replies = yield from panel.read(_ENTITIES, [(role, {"text": text}) for text in texts for role in self.names])
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


_JUDGED: Final[Mapping[str, str]] = MappingProxyType({"nothing to judge": "blank texts are judged like any others"})


def _field(value: object, name: str) -> Fields:
    """Return the object of a reply; a bare value counts as its field `name`."""
    bare = value is not None and as_object(value) is None and as_list(value) is None
    return {name: value} if bare else fields_of(value)


def _meets(value: object) -> float:
    return float(flag_or_none(_field(value, "verdict"), "verdict") or False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Iterated(SeveralModels):
    """A metric that asks each model several times, side by side.

    - `definition`: what is asked for, in words; the published code has no default for it.
    - `strictness`: how often each model is asked, at least once. What fails is left out, flagged; a model of which
      all fail drops out.
    """

    needs = frozenset({"user_input", "response"})
    most = by_parameters(lambda metric: metric.strictness, 1)
    breaks: ClassVar[Mapping[str, str]] = _JUDGED

    definition: str = "The response is correct, complete and helpful."
    strictness: int = 1

    def __post_init__(self) -> None:
        SeveralModels.__post_init__(self)
        if not self.definition.strip():
            raise UsageError(f"Metric {self.name!r} takes definition=TEXT, what is asked of the response; it is blank.")

    def iterated(
        self, sample: Sample, template: RequestTemplate[float], values: Mapping[str, str], voted: Aggregator
    ) -> Plan[Score | Undefined]:
        """Return the outcome of several replies of each model."""
        panel = self.panel(sample)
        asked = [(role, values) for role in self.names for _ in range(self.strictness)]
        replies = [each for each in (yield from panel.read(template, asked)) if each is not None]
        by_role: dict[str, list[float]] = {}
        for each in replies:
            by_role.setdefault(each.role, []).append(each.value)
        scores = {role: aggregate(found, voted) for role, found in by_role.items()}
        evidence = [each.evidence(EvidenceTarget.TEXT, 0, value=each.value) for each in replies]
        return self.outcome(panel, scores, evidence, {"replies": len(replies)})


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectCritic(Iterated):
    """Tests that the response meets a criterion in the user's words, by one or several models.

    Formula: Average over models of 1 if more than half of the model's replies say true, else 0.
    Questions: `strictness` requests for each model.
    Use: To compare with scores of spring-ai-ragas, or for a yes or no in your own words.
    Not: Without a custom definition: the default is only there to be replaced.
    See: spring-ai-ragas:simple_criteria_score
    Source: spring-ai-ragas 0.3.3, AspectCriticMetric.

    A verdict of null is false. Failed when no reply can be read.
    """

    name: ClassVar[str] = "spring-ai-ragas:aspect_critic"

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        values = {
            "definition": self.definition,
            "user_input": sample.require("user_input"),
            "response": sample.require("response"),
        }
        likely = '{"criteria": "c", "verdict": true, "reasoning": "A reason."}'
        template = json_template("aspect_critic", likely, _meets)
        return (yield from self.iterated(sample, template, values, Aggregator.MAJORITY_VOTING))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleCriteriaScore(Iterated):
    """How well the response meets a criterion in the user's words, by one or several models.

    Formula: Average over models of the median of (score - min) / (max - min).
    Questions: `strictness` requests for each model.
    Use: To compare with scores of spring-ai-ragas, or for a grade in your own words.
    Not: Without a custom definition: the default is only there to be replaced.
    See: spring-ai-ragas:aspect_critic
    Source: spring-ai-ragas 0.3.3, SimpleCriteriaScoreMetric.

    In full: average over the models of the median of a model's scores, each cut to the scale and brought from
    [min_score, max_score] to [0, 1]; null counts as 0. The reference is shown where there is one. Failed when no reply
    can be read.

    - `min_score`, `max_score`: the scale that is shown to the models, min below max.
    """

    name: ClassVar[str] = "spring-ai-ragas:simple_criteria_score"

    min_score: float = 0.0
    max_score: float = 5.0

    def __post_init__(self) -> None:
        Iterated.__post_init__(self)
        if not (math.isfinite(self.max_score - self.min_score) and self.min_score < self.max_score):
            raise UsageError(
                f"Metric {self.name!r} takes min_score below max_score, got {self.min_score} and {self.max_score}."
            )

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        values = {
            "definition": self.definition,
            "min_score": f"{self.min_score:g}",
            "max_score": f"{self.max_score:g}",
            "user_input": sample.require("user_input"),
            "response": sample.require("response"),
            "reference": sample.reference or "",
        }
        likely = f'{{"criteria": "c", "score": {self.max_score:g}, "reasoning": "A reason."}}'
        template = json_template("simple_criteria_score", likely, self._read)
        return (yield from self.iterated(sample, template, values, Aggregator.MEDIAN))

    def _read(self, value: object) -> float:
        raw = number_or_none(_field(value, "score"), "score")
        if raw is None:
            return 0.0
        return (min(self.max_score, max(self.min_score, raw)) - self.min_score) / (self.max_score - self.min_score)


_FIELDS: Final = ("user_input", "response", "reference", "retrieved_contexts")
_FEWER: Final = "verdicts are missing and count as not supported"

Statements = tuple[str, ...]
Verdicts = tuple[bool, ...]


class NoiseMode(StrEnum):
    """The contexts that the errors come from."""

    RELEVANT = "relevant"
    """Contexts that support a statement of the reference."""
    IRRELEVANT = "irrelevant"
    """The others; an error that a relevant context supports too is not counted."""


_STATED: Final = json_template(
    "noise_sensitivity.statements", '{"statements": ["A statement."]}', lambda value: texts_of(value, "statements")
)
_VERDICTS: Final = json_template(
    "noise_sensitivity.verdicts",
    '{"verdicts": [{"statement": "A statement.", "verdict": true, "reason": "A reason."}]}',
    lambda value: tuple(flag_or_none(each, "verdict") or False for each in objects_in(or_nothing(value), "verdicts")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSensitivity(ScoresEmpty):
    """Share of the response's statements that are wrong and come from a retrieved context.

    Formula: Average over models of statements that are wrong and supported by a relevant context / statements.
    Questions: 3 + 2 N requests for each model, N contexts.
    Not: On a budget: it asks twice for each context and model.
    See: spring-ai-ragas:faithfulness | ragas-0.4.3:noise_sensitivity
    Source: spring-ai-ragas 0.3.3, NoiseSensitivityMetric.

    A context is relevant if it supports a statement of the reference. Requests for each model: statements of the
    reference, statements of the response, verdicts on the latter against the reference, and then, side by side,
    verdicts on both lists against each context. A model that fails at one of the first three drops out; failed when
    all do.

    A verdict that is missing, also because the call against a context failed, means "not supported", flagged. A
    response or a reference without statements scores 0, the best score here.

    - `mode`: errors from relevant or from irrelevant contexts.
    """

    name: ClassVar[str] = "spring-ai-ragas:noise_sensitivity"
    higher_is_better: ClassVar[bool] = False
    needs = frozenset(_FIELDS)
    required = _FIELDS
    most = 3
    each_context = 2

    mode: NoiseMode = NoiseMode.RELEVANT

    def judged(self, sample: Sample, panel: Panel) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        response, reference = sample.require("response"), sample.require("reference")
        theirs = yield from panel.ask(_STATED, self.names, {"user_input": user_input, "text": reference})
        mine = yield from panel.ask(_STATED, theirs, {"user_input": user_input, "text": response})
        asked = [_against(reference, each) for each in mine.values()]
        judged = {reply.role: reply for reply in (yield from panel.read(_VERDICTS, asked)) if reply is not None}
        roles = tuple(mine)
        asked = [
            _against(context.text, stated[role])
            for context in sample.contexts
            for stated in (theirs, mine)
            for role in roles
        ]
        replies = yield from panel.read(_VERDICTS, asked)
        scores: dict[str, float] = {}
        evidence: list[Evidence] = []
        for place, role in enumerate(roles):
            if role not in judged:
                continue
            rows = replies[place :: len(roles)]
            of_reference = self._filled(panel, rows[::2], theirs[role])
            of_response = self._filled(panel, rows[1::2], mine[role])
            (right,) = self._filled(panel, [judged[role]], mine[role])
            if not theirs[role].value:  # then no context is relevant or irrelevant
                scores[role] = self.share(panel, 0, 0, "statement in the reference")
                continue
            relevant = [any(row) for row in of_reference]
            errors = noisy(right, relevant, of_response, from_relevant=self.mode is NoiseMode.RELEVANT)
            scores[role] = self.share(panel, sum(errors), len(errors), "statement")
            evidence += [
                judged[role].evidence(EvidenceTarget.STATEMENT, index, text=text, value=float(errors[index]))
                for index, text in enumerate(mine[role].value)
            ]
        wrong = sum(piece.value == 1 for piece in evidence)
        return self.outcome(panel, scores, evidence, {"statements": len(evidence), "errors": wrong})

    @staticmethod
    def _filled(
        panel: Panel, replies: Sequence[ReadReply[Verdicts] | None], stated: ReadReply[Statements]
    ) -> list[Verdicts]:
        """Return as many verdicts of each reply as there are statements; those that are missing are False, flagged."""
        size = len(stated.value)
        found = [() if each is None else each.value[:size] for each in replies]
        if any(len(each) < size or reply is None for each, reply in zip(found, replies, strict=True)):
            panel.flags[_FEWER] = None
        return [(*each, *(False,) * (size - len(each))) for each in found]


def _against(text: str, stated: ReadReply[Statements]) -> tuple[str, Mapping[str, str]]:
    """Return the role and the values of the request for verdicts of a text on these statements."""
    return stated.role, {"context": text, "statements": "\n".join(stated.value)}
