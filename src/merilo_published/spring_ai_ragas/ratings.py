"""spring-ai-ragas' ratings, with the wording of context relevance; its metrics of what was retrieved and of criteria.

The table of all its metrics is at the end.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.json_types import as_list, as_object
from merilo.metrics.base import Evidence, EvidenceTarget, Metric, Score, ScoreWords, Undefined
from merilo.metrics.formulas import average_precision, mean
from merilo_published.asking import Fields, ReadReply, ReplyFault, RequestTemplate
from merilo_published.definition import Focus, noisy, scaled_rating
from merilo_published.spring_ai_ragas import response
from merilo_published.spring_ai_ragas.models import (
    DISAGREE,
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
    text_or_blank,
    texts_of,
    whole_or_none,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


@cache
def wordings() -> Mapping[str, Mapping[str, Any]]:
    """Return the wording by primary language tag; all other languages use English."""
    return tomllib.loads(files("merilo_published.spring_ai_ragas").joinpath("wording.toml").read_text("utf-8"))


def words(language: str) -> Mapping[str, Any]:
    """Return the wording of a language (BCP 47); English if there is none."""
    known = wordings()
    return known.get(re.split("[-_]", language)[0].lower(), known["en"])


def band(score: float, language: str) -> tuple[str, str]:
    """Return the meaning of a score in [0, 1], `Medium — mixed relevance of contexts`, and the name of its result.

    The score is not rounded.
    """
    bands: Sequence[tuple[float, str, str, str]] = words(language)["bands"]
    _, title, meaning, result = next((each for each in bands if score >= each[0]), bands[-1])
    return f"{title} — {meaning}", result


def result_line(score: float, language: str) -> str:
    """Return a score in [0, 1] as one line: `0.5 (50%) — Mixed relevance`.

    Numbers are truncated: rounding could move the shown score into the next band.
    """
    return f"{_cut(score, 3)!r} ({_cut(100 * score, 1):g}%) — {band(score, language)[1]}"


def explain_contexts(contexts: Sequence[tuple[Sequence[float], float | None]], language: str) -> list[tuple[str, str]]:
    """Return, for each context, its name and two lines: the names of its ratings, and the ratings with their score.

    `contexts`: for each one the ratings on the scale 0 to 2, one per model, and their score, None without a rating.
    """
    known = words(language)
    rows: list[tuple[str, str]] = []
    for place, (ratings, value) in enumerate(contexts, start=1):
        text: str = known["unscored"]
        if value is not None:
            names = ", ".join(known["ratings"][min(2, max(0, round(rating)))] for rating in ratings)
            raw = ", ".join(f"{rating:g}" for rating in ratings)
            text = f"{names}\n{known['raw']}: {raw}, {known['normalised']}: {_cut(value, 3)!r}"
        rows.append((f"{known['context']} {place}", text))
    return rows


def _cut(number: float, digits: int) -> float:
    """Return the number truncated to `digits` decimals; a rounding error of floats does not lower the last digit."""
    scale = 10.0**digits
    return math.floor(number * scale + 1e-9) / scale


_LOST_CONTEXT: Final = "a context got no score and was left out"
_NO_CONTEXT: Final = "no context was retrieved"
_SHORTCUTS: Final[Mapping[str, str]] = MappingProxyType(
    {"needs": "use_heuristic_shortcuts", "nothing to judge": "use_heuristic_shortcuts"}
)
_EMPTY_RESPONSE: Final = "there is no response and that was scored 0"


def normalised(rating: float) -> float:
    """Return half of a rating on the scale 0 to 2, clipped to [0, 1]."""
    return min(1.0, max(0.0, scaled_rating(rating, 2)))


_Rating = tuple[int | None, str]
"""The rating of one model, None for null, and its reason."""


def _rating(value: object) -> _Rating:
    fields = fields_of(value)
    return whole_or_none(fields, "score"), text_or_blank(fields, "reasoning")


def _rated(replies: Iterable[ReadReply[_Rating]]) -> dict[str, float]:
    """Return scores in [0, 1] by role; a model that rated null is left out."""
    return {each.role: normalised(each.value[0]) for each in replies if each.value[0] is not None}


def _evidence(replies: Iterable[ReadReply[_Rating]], about: EvidenceTarget, index: int) -> list[Evidence]:
    return [each.evidence(about, index, value=float(each.value[0])) for each in replies if each.value[0] is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated(SeveralModels):
    """A rating metric of spring-ai-ragas.

    - `temperature`: sent with every request, before the judge's own; the published code records it only.
    """

    temperature: float = 0.1

    def ratings(self, panel: Panel, rubric: str, values: Mapping[str, str]) -> Plan[tuple[ReadReply[_Rating], ...]]:
        """Return the rating of each model, in order; a lost one is left out."""
        template = json_template(rubric, '{"score": 1, "reasoning": "A reason of about one sentence."}', _rating)
        return tuple((yield from panel.ask(template, self.names, values)).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevance(Rated):
    """Mean relevance of the contexts, each rated 0, 1 or 2 by one or several models.

    Formula: Mean over contexts of the mean over models of rating / 2, cut to [0, 1].
    Questions: One request for each context and model.
    Undefined: no context was retrieved | the user input is empty | ...
    Use: To compare with scores of spring-ai-ragas, with its words and bands in English or Russian.
    Not: To see which sentences are relevant. Take context_relevance.
    See: context_relevance | nvidia:context_relevance | spring-ai-ragas:context_precision
    Source: spring-ai-ragas 0.3.3, ContextRelevanceMetric.

    spring-ai-ragas always averages the models; here `aggregator` applies to each context. Contexts are judged one
    after another, each by all models side by side.

    A model that fails, or rates null, leaves the mean of that context only; a context without any rating leaves the
    denominator, both flagged. Failed when no context has a rating.
    """

    name: ClassVar[str] = "spring-ai-ragas:context_relevance"
    needs = frozenset({"user_input", "retrieved_contexts"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        if not user_input:
            return Undefined("the user input is empty")
        if not contexts:
            return Undefined(_NO_CONTEXT)
        panel = self.panel(sample, temperature=self.temperature)
        scores: list[float] = []
        evidence: list[Evidence] = []
        for index, context in enumerate(contexts):
            values = {"user_input": user_input, "context": context.text}
            replies = yield from self.ratings(panel, "context_relevance", values)
            evidence += _evidence(replies, EvidenceTarget.CONTEXT, index)
            if not (rated := _rated(replies)):
                panel.flags[_LOST_CONTEXT] = None
                continue
            value = self.combined(rated.values())
            if value is None:
                return Undefined(DISAGREE)
            scores.append(value)
        if not scores:
            panel.fail("No model gave a score for any context.")
        counts = {"contexts": len(contexts), "scored": len(scores)}
        return Score(mean(scores), tuple(evidence), counts, tuple(panel.flags))

    def in_words(self, score: float, language: str) -> ScoreWords:
        known = words(language)
        lines = result_line(score, language), f"{known['interpretation']}: {band(score, language)[0]}"
        return ScoreWords(known["relevance"], lines, known["user_input"])

    def contexts_in_words(self, outcome: Score, sample: Sample) -> list[tuple[str, str]]:
        raw: list[list[float]] = [[] for _ in sample.retrieved_contexts or ()]
        for piece in outcome.evidence:
            if piece.about is EvidenceTarget.CONTEXT and piece.value is not None:
                raw[piece.index].append(piece.value)
        ratings = [(x, self.combined([*map(normalised, x)]) if x else None) for x in raw]
        return explain_contexts(ratings, sample.resolved_language)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseGroundedness(Rated):
    """How far the response rests on the contexts, rated 0, 1 or 2 by one or several models.

    Formula: Mean over models of rating / 2, clipped to [0, 1]; 1 if the response occurs in the contexts.
    Questions: One request for each model; none if the response occurs in the contexts.
    Undefined: no context was retrieved | the response is empty (use_heuristic_shortcuts=false) | ...
    Not: To see which statement is not supported. Take faithfulness.
    See: faithfulness | nvidia:response_groundedness | spring-ai-ragas:hallucination
    Source: spring-ai-ragas 0.3.3, ResponseGroundednessMetric.

    The contexts are judged together, joined by blank lines. Failed when no model gives a rating.

    - `use_heuristic_shortcuts`: without a question, a response that is one of the contexts, or occurs in them, scores
      1, whatever its letter case, and so does a blank one, which every text holds; a missing or empty one scores 0,
      flagged. Off, a missing or empty response has no score.
    """

    name: ClassVar[str] = "spring-ai-ragas:response_groundedness"
    needs = frozenset({"response", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = _SHORTCUTS

    use_heuristic_shortcuts: bool = True

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if self.use_heuristic_shortcuts and not sample.response:
            return Score(0.0, counts={"shortcuts": 1}, flags=(_EMPTY_RESPONSE,))
        response, contexts = sample.require("response"), [context.text for context in sample.contexts]
        if not response:
            return Undefined("the response is empty")
        if not contexts:
            return Undefined(_NO_CONTEXT)
        joined = "\n\n".join(contexts)
        if self.use_heuristic_shortcuts and response.strip().lower() in joined.lower():
            return Score(1.0, counts={"shortcuts": 1})
        panel = self.panel(sample, temperature=self.temperature)
        replies = yield from self.ratings(panel, "response_groundedness", {"response": response, "context": joined})
        return self.outcome(panel, _rated(replies), _evidence(replies, EvidenceTarget.TEXT, 0), {"shortcuts": 0})


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAccuracy(Rated):
    """Agreement of the response with the reference, rated 0, 1 or 2 by one or several models.

    Formula: Mean over models of rating / 2, cut to [0, 1].
    Questions: One request for each model, two with use_dual_judge.
    Undefined: the response is empty | the reference is empty | ...
    Not: Where the question decides what the answer has to say: it is not shown to the models.
    See: nvidia:answer_accuracy | spring-ai-ragas:answer_correctness
    Source: spring-ai-ragas 0.3.3, AnswerAccuracyMetric.

    The user input is not looked at. Failed when no model gives a rating.

    - `use_dual_judge`: a second request shows all models the mean rating, rounded (halves upwards), and the reason of
      the first model; what they say then replaces the first ratings, unless none of them says anything.
    """

    name: ClassVar[str] = "spring-ai-ragas:answer_accuracy"
    needs = frozenset({"response", "reference"})

    use_dual_judge: bool = False

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        response, reference = sample.require("response"), sample.require("reference")
        if not response or not reference:
            return Undefined(f"the {'reference' if response else 'response'} is empty")
        panel = self.panel(sample, temperature=self.temperature)
        values = {"response": response, "reference": reference}
        replies = yield from self.ratings(panel, "answer_accuracy", values)
        scores, evidence = _rated(replies), _evidence(replies, EvidenceTarget.TEXT, 0)
        if self.use_dual_judge and scores:
            first = next(each for each in replies if each.role in scores)
            shown = math.floor(2 * mean(scores.values()) + 0.5)
            values |= {"rating": str(shown), "reasoning": first.value[1]}
            replies = yield from self.ratings(panel, "answer_accuracy.confirmation", values)
            evidence += _evidence(replies, EvidenceTarget.TEXT, 0)
            scores = _rated(replies) or scores
        return self.outcome(panel, scores, evidence, {})


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

    mode: Focus = Focus.RELEVANT

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
            errors = noisy(right, relevant, of_response, from_relevant=self.mode is Focus.RELEVANT)
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


METRICS: Final[tuple[type[Metric], ...]] = (
    ContextRelevance,
    ResponseGroundedness,
    AnswerAccuracy,
    ContextPrecision,
    ContextRecall,
    ContextEntityRecall,
    response.Faithfulness,
    NoiseSensitivity,
    response.ResponseRelevancy,
    response.Hallucination,
    response.FactualCorrectness,
    response.SemanticSimilarity,
    response.AnswerCorrectness,
    AspectCritic,
    SimpleCriteriaScore,
)
