"""The metrics of spring-ai-ragas that judge a response by words of the user's: a critic and a score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.json_types import as_list, as_object
from merilo.metrics.base import EvidenceTarget, Score, Undefined
from merilo.metrics.published.spring_ai_ragas.models import (
    Aggregator,
    ModelRequest,
    Panel,
    SeveralModels,
    aggregate,
)
from merilo.metrics.published.spring_ai_ragas.replies import fields_of, flag_or_none, number_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.published.replies import Fields


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

    version: ClassVar[int] = 2
    needs = frozenset({"user_input", "response"})
    breaks: ClassVar[Mapping[str, str]] = _JUDGED

    definition: str = "The response is correct, complete and helpful."
    strictness: int = 1

    def __post_init__(self) -> None:
        SeveralModels.__post_init__(self)
        name = str(getattr(self, "name", ""))
        if self.strictness < 1:
            raise UsageError(f"Metric {name!r} takes a strictness of at least 1, got {self.strictness}.")
        if not self.definition.strip():
            raise UsageError(f"Metric {name!r} takes definition=TEXT, what is asked of the response; it is blank.")

    def max_questions(self, sample: Sample) -> int:
        return len(self.names) * self.strictness if self.needs <= sample.present else 0

    def iterated(
        self,
        panel: Panel,
        ask: tuple[str, Mapping[str, str], str],
        read: Callable[[object], float],
        voted: Aggregator,
    ) -> Plan[Score | Undefined]:
        """Return the outcome of several replies of each model. `ask`: rubric, values and likely reply."""
        asks = [ModelRequest(role, *ask) for role in self.names for _ in range(self.strictness)]
        replies = [each for each in (yield from panel.read(asks, read)) if each is not None]
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
    Undefined: the models' scores lie further apart than the tolerance
    Use: To compare with scores of spring-ai-ragas, or for a yes or no in your own words.
    Not: Without a definition of your own: the default is only there to be replaced.
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
        ask = ("aspect_critic", values, '{"criteria": "c", "verdict": true, "reasoning": "A reason."}')
        return (yield from self.iterated(self.panel(sample), ask, _meets, Aggregator.MAJORITY_VOTING))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleCriteriaScore(Iterated):
    """How well the response meets a criterion in the user's words, by one or several models.

    Formula: Average over models of the median of (score - min) / (max - min).
    Questions: `strictness` requests for each model.
    Undefined: the models' scores lie further apart than the tolerance
    Use: To compare with scores of spring-ai-ragas, or for a grade in your own words.
    Not: Without a definition of your own: the default is only there to be replaced.
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
        ask = ("simple_criteria_score", values, likely)
        return (yield from self.iterated(self.panel(sample), ask, self._read, Aggregator.MEDIAN))

    def _read(self, value: object) -> float:
        raw = number_or_none(_field(value, "score"), "score")
        if raw is None:
            return 0.0
        return (min(self.max_score, max(self.min_score, raw)) - self.min_score) / (self.max_score - self.min_score)
