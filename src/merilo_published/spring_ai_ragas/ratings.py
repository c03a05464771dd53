"""The ratings of spring-ai-ragas, the wording of its context relevance, and the list of its metrics."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.metrics.base import Evidence, EvidenceTarget, Score, ScoreWords, Undefined
from merilo.metrics.formulas import mean
from merilo_published.definition import by_parameters, scaled_rating
from merilo_published.spring_ai_ragas import general, response
from merilo_published.spring_ai_ragas.models import (
    DISAGREE,
    Panel,
    SeveralModels,
    fields_of,
    json_template,
    text_or_blank,
    whole_or_none,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.base import Metric
    from merilo_published.asking import ReadReply


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

    - `temperature`: sent with every request, before the judge's own.
    - `temperature_sent`: off, it is recorded only and the judge's own is used, as the published code does.
    """

    temperature: float = 0.1
    temperature_sent: bool = True

    def models_for(self, sample: Sample) -> Panel:
        """Return the models, asked at the temperature of this metric."""
        return self.panel(sample, temperature=self.temperature if self.temperature_sent else None)

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
    most = 0
    each_context = 1

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        if not user_input:
            return Undefined("the user input is empty")
        if not contexts:
            return Undefined(_NO_CONTEXT)
        panel = self.models_for(sample)
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
        panel = self.models_for(sample)
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
    most = by_parameters(lambda metric: 1 + metric.use_dual_judge, 1)

    use_dual_judge: bool = False

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        response, reference = sample.require("response"), sample.require("reference")
        if not response or not reference:
            return Undefined(f"the {'reference' if response else 'response'} is empty")
        panel = self.models_for(sample)
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


METRICS: Final[tuple[type[Metric], ...]] = (
    ContextRelevance,
    ResponseGroundedness,
    AnswerAccuracy,
    general.ContextPrecision,
    general.ContextRecall,
    general.ContextEntityRecall,
    response.Faithfulness,
    general.NoiseSensitivity,
    response.ResponseRelevancy,
    response.Hallucination,
    response.FactualCorrectness,
    response.SemanticSimilarity,
    response.AnswerCorrectness,
    general.AspectCritic,
    general.SimpleCriteriaScore,
)
