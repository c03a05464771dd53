"""NVIDIA's three ratings, as ragas carries them: two prompts, two ratings, their mean.

The module is long because it holds the three metrics and their variants in three versions of ragas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.ask import AskFailed
from merilo.judging.verdicts import FailureKind
from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined
from merilo.metrics.variants import D, variant
from merilo_published.asking import (
    REASKS,
    Asker,
    Reask,
    RequestTemplate,
    integer_in,
    object_in,
    object_of,
    strict_integer_in,
)
from merilo_published.definition import Published, joined, scaled_rating

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.base import Metric
    from merilo_published.asking import ReadReply, Reply

_SYSTEM: Final = "nvidia"
_TEMPERATURE: Final = 0.1
_COLLECTIONS_TEMPERATURE: Final = 0.01
_CUT_CHARACTERS: Final = 7_000
_EMPTY: Final = "an input is empty"
_BLANK: Final = "an input is blank and was scored 0 unasked"


class NanRule(StrEnum):
    """The effect of one unreadable rating on the score."""

    ASYMMETRIC = "asymmetric"
    """Without the first there is no score; without the second the first is the score."""
    SYMMETRIC = "symmetric"
    """The other one is the score."""


class SecondPrompt(StrEnum):
    """The prompt of the second rating."""

    OWN = "own"
    FIRST = "first"
    """The first once more: an error of ragas 0.2.14 to 0.3.2."""


class Shortcuts(StrEnum):
    """The inputs that are scored without a question."""

    ALL = "all"
    """Blank ones, and those of which one holds the other."""
    BLANK = "blank"


class Reading(StrEnum):
    """The way to find a rating in a reply."""

    ANYWHERE = "anywhere"
    """The first of `ratings`, in their order, that occurs anywhere: "0 out of 2" is 2 if 2 comes first."""
    JSON = "json"
    """The field "rating" of a JSON object, which must be one of `ratings`; an unreadable reply is asked for again."""


@dataclass(frozen=True, slots=True)
class _Rating:
    """A rating from 0 to 1 with its reply, or why there is none."""

    value: float | None = None
    evidence: tuple[Evidence, ...] = ()
    fault: AskFailed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _TwoRatings(Published):
    """The mean of two ratings, each divided by the top of its scale.

    Parameters of all three metrics:

    - `tries`: maximum number of requests for each rating.
    - `reading`, `ratings`: how to find a rating in a reply, and the digits to search for, in this order.
    - `nan_rule`: the value if one of the two ratings is missing.
    - `second_prompt`: the wording of the second prompt.
    - `retries_failures`: a failed request counts as a try. False: it fails the metric.
    - `refuses_empty`: an empty input is undefined (collections).
    - `temperature`: of every request, 0.1 (0.01 in the collections).
    - `reasks`: with reading=json, the number of re-asks per try after an unreadable reply, in the same conversation;
      none reads free text leniently (collections, see `instructor`).
    """

    rubric: ClassVar[str]
    top: ClassVar[int] = 2

    tries: int = 5
    ratings: str = "210"
    reading: Reading = Reading.ANYWHERE
    nan_rule: NanRule = NanRule.ASYMMETRIC
    second_prompt: SecondPrompt = SecondPrompt.OWN
    retries_failures: bool = False
    refuses_empty: bool = False
    temperature: float = _TEMPERATURE
    reasks: int | None = None

    def __post_init__(self) -> None:
        Published.__post_init__(self)
        if self.reasks is not None and self.reasks < 0:
            raise UsageError(f"Metric {self.name!r} takes reasks of at least 0, got reasks={self.reasks}.")
        allowed = "01234"[: self.top + 1]
        if not self.ratings or not set(self.ratings) <= set(allowed):
            raise UsageError(f"Metric {self.name!r} takes ratings of the digits {allowed}, got {self.ratings!r}.")

    def max_questions(self, sample: Sample) -> int:
        del sample
        return 2 * self.tries * (1 + (self.reasks or 0))

    def _scored(self, first: Mapping[str, str], second: Mapping[str, str]) -> Plan[Score | Undefined]:
        """Return the mean of both ratings; `first` and `second` are the values of their prompts."""
        asker = Asker(_SYSTEM, temperature=self.temperature)
        prompt = "second" if self.second_prompt is SecondPrompt.OWN else "first"
        ratings = (
            (yield from self._rated(asker, f"{self.rubric}_first", first)),
            (yield from self._rated(asker, f"{self.rubric}_{prompt}", second)),
        )
        found = [rating.value for rating in ratings if rating.value is not None]
        lost = [rating.fault for rating in ratings if rating.fault is not None]
        if lost and (not found or (ratings[0].fault and self.nan_rule is NanRule.ASYMMETRIC)):
            raise lost[0]
        evidence = tuple(each for rating in ratings for each in rating.evidence)
        flags = ("one rating could not be read and the other stands alone",) if lost else ()
        return Score(sum(found) / len(found), evidence, {"ratings": len(found)}, flags)

    def _rated(self, asker: Asker, rubric: str, values: Mapping[str, str]) -> Plan[_Rating]:
        """Return one rating after at most `tries` tries.

        Raises AskFailed for a request that fails, unless it is retried.
        """
        in_json = self.reading is Reading.JSON
        likely = f'{{"rating": {self.top}}}' if in_json else str(self.top)
        filled = {**values, "form": "json" if in_json else "digit"}
        fault: AskFailed | None = None
        for _ in range(self.tries):
            try:
                read = yield from self._once(asker, rubric, filled, likely)
            except AskFailed as failed:
                fault = failed
                unread = self.reading is Reading.JSON and failed.failure.kind is FailureKind.UNREADABLE
                if not (self.retries_failures or unread):
                    raise
                continue
            if read.value is not None:
                value = scaled_rating(read.value, self.top)
                return _Rating(value, (read.evidence(EvidenceTarget.TEXT, 0, value),))
            fault = read.reply.unreadable(f"The reply holds none of the ratings {self.ratings}.")
        return _Rating(fault=fault)

    def _once(self, asker: Asker, rubric: str, filled: Mapping[str, str], likely: str) -> Plan[ReadReply[int | None]]:
        """Return the rating of one try, None for none of those allowed. Raises AskFailed."""
        if self.reading is not Reading.JSON or self.reasks is None:
            return (
                yield from asker.read(RequestTemplate(rubric, likely, lambda reply: self._found(reply.text)), filled)
            )
        template = RequestTemplate(rubric, likely, self._structured)
        return (yield from asker.read(template, filled, recovery=Reask(asker, template, self.reasks)))

    def _structured(self, reply: Reply) -> int | None:
        rating = strict_integer_in(object_of(reply.verdict.text), "rating")
        return rating if str(rating) in tuple(self.ratings) else None

    def _found(self, text: str) -> int | None:
        if self.reading is Reading.ANYWHERE:
            return next((int(digit) for digit in self.ratings if digit in text), None)
        try:
            found = str(integer_in(object_in(text), "rating"))
        except ValueError:
            return None
        return int(found) if found in tuple(self.ratings) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RatedContexts(_TwoRatings):
    """Two ratings of the joined contexts, for which blank or copied inputs may be scored without a question."""

    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "a blank input scores 0"})

    shortcuts: Shortcuts = Shortcuts.ALL
    cut_characters: int | None = None

    def __post_init__(self) -> None:
        _TwoRatings.__post_init__(self)
        cut = self.cut_characters
        if cut is not None and cut < 1:
            raise UsageError(f"Metric {self.name!r} shows at least 1 character, got cut_characters={cut}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevance(_RatedContexts):
    """How relevant all contexts together are to the user input, by two ratings.

    Formula: Mean of two ratings from 0 to 2, divided by 2.
    Questions: Two requests in different words, each repeated up to 5 times until a rating can be read.
    Undefined: an input is empty (collections)
    Use: To compare with NVIDIA's context relevance in ragas 0.2.14 and later.
    Not: To find out which context is of use: all are rated as one text.
    See: context_relevance | ragas-0.4.3:nv_context_relevance
    Source: ragas 0.4.3, metrics/_nv_metrics.py, contributed by NVIDIA (2025)

    Never undefined; fails when the ratings cannot be read (`nan_rule`).

    Quirks: those of both ratings (see `_TwoRatings`); `shortcuts`: 0 without a question for a blank input, and where
    the user input holds the contexts. `cut_characters`: the most characters of the joined contexts that are shown
    (7000 up to 0.3.4), none for all; shortcuts look at the whole.
    """

    name: ClassVar[str] = "nvidia:context_relevance"
    needs = frozenset({"user_input", "retrieved_contexts"})
    rubric: ClassVar[str] = "context_relevance"

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        shown = joined(sample)
        if self.refuses_empty and not (user_input and contexts):
            return Undefined(_EMPTY)
        if not (user_input.strip() and shown.strip()):
            return Score(0.0, flags=(_BLANK,))
        if self.shortcuts is Shortcuts.ALL and shown.strip() in user_input.strip():
            return Score(0.0, flags=("the contexts stand in the user input and were scored 0 unasked",))
        values = {"user_input": user_input, "contexts": shown[: self.cut_characters]}
        return (yield from self._scored(values, values))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseGroundedness(_RatedContexts):
    """How far all contexts together support the response, by two ratings.

    Formula: Mean of two ratings from 0 to 2, divided by 2.
    Questions: None, or two requests in different words, each repeated up to 5 times until a rating can be read.
    Undefined: an input is empty (collections)
    Use: To compare with NVIDIA's response groundedness in ragas 0.2.14 and later.
    Not: To find out which statement is not supported: the response is rated as one.
    See: faithfulness | ragas-0.4.3:nv_response_groundedness
    Source: ragas 0.4.3, metrics/_nv_metrics.py, contributed by NVIDIA (2025)

    Never undefined; fails when the ratings cannot be read (`nan_rule`).

    Quirks: those of both ratings (see `_TwoRatings`); `shortcuts`: 0 without a question for a blank input, and 1
    if the response occurs in the contexts, character by character. `cut_characters` as in `ContextRelevance`.
    """

    name: ClassVar[str] = "nvidia:response_groundedness"
    needs = frozenset({"response", "retrieved_contexts"})
    rubric: ClassVar[str] = "response_groundedness"

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        response, contexts = sample.require("response"), sample.contexts
        shown = joined(sample)
        if self.refuses_empty and not (response and contexts):
            return Undefined(_EMPTY)
        if not (response.strip() and shown.strip()):
            return Score(0.0, flags=(_BLANK,))
        if self.shortcuts is Shortcuts.ALL and response.strip() in shown.strip():
            return Score(1.0, flags=("the response stands in the contexts and was scored 1 unasked",))
        values = {"response": response, "contexts": shown[: self.cut_characters]}
        return (yield from self._scored(values, values))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAccuracy(_TwoRatings):
    """How far the response says what the reference says, by two ratings.

    Formula: Mean of two ratings from 0 to 4, divided by 4.
    Questions: Two requests in different words, each repeated up to 5 times until a rating can be read.
    Undefined: an input is empty (collections)
    Use: To compare with NVIDIA's answer accuracy in ragas 0.2.14 and later.
    Not: To find out what is wrong in the response.
    See: ragas-0.4.3:nv_accuracy | ragas-0.4.3:answer_correctness
    Source: ragas 0.4.3, metrics/_nv_metrics.py, contributed by NVIDIA (2025)

    In full: (rating 1 / 4 + rating 2 / 4) / 2; the second prompt shows the reference first. Never undefined; fails
    when the ratings cannot be read (`nan_rule`).

    Quirks: those of both ratings (see `_TwoRatings`); `ratings` takes 1 and 3, which were not asked for, and looks
    for 0 first, so that "4.0" is 0. Empty texts are judged. `swapped_labels`: the second prompt calls the reference
    the user's answer and the other way round (collections).
    """

    name: ClassVar[str] = "nvidia:answer_accuracy"
    needs = frozenset({"user_input", "response", "reference"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "refuses_empty"})
    rubric: ClassVar[str] = "answer_accuracy"
    top: ClassVar[int] = 4

    ratings: str = "01234"
    swapped_labels: bool = False

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        response, reference = sample.require("response"), sample.require("reference")
        if self.refuses_empty and not (user_input and response and reference):
            return Undefined(_EMPTY)
        first = {"user_input": user_input, "answer": response, "reference": reference}
        swapped = {"user_input": user_input, "answer": reference, "reference": response}
        return (yield from self._scored(first, swapped if self.swapped_labels else first))


# -- the same metrics by the names of ragas -----------------------------------------------------------

_EARLIER: Final[Mapping[str, object]] = {"cut_characters": _CUT_CHARACTERS}
"""Changes of 0.3.0 in the metrics that show contexts."""
_STRUCTURED: Final[Mapping[str, object]] = {
    "version": 2,
    "breaks": MappingProxyType[str, str]({}),
    "reading": Reading.JSON,
    "nan_rule": NanRule.SYMMETRIC,
    "retries_failures": True,
    "refuses_empty": True,
    "temperature": _COLLECTIONS_TEMPERATURE,
    "reasks": REASKS,
}
"""Changes of the collections, which ask for structured output."""


def _row(base: D, name: str, difference: str = "", class_name: str = "", /, **changes: object) -> D:
    """Return a metric of NVIDIA as one release of ragas has it."""
    questions = base.card.questions
    if changes.get("second_prompt") is SecondPrompt.FIRST:
        questions = questions.replace("in different words", "in the same words")
    if changes.get("reasks"):
        questions = f"{questions[:-1]}; each try is re-asked up to `reasks` times (2)."
    card = replace(base.card, questions=questions)
    return variant(base, name, f"As `{base.__name__}`{difference}.", class_name, card=card, **changes)


METRICS: Final[tuple[type[Metric], ...]] = (
    ContextRelevance,
    ResponseGroundedness,
    AnswerAccuracy,
    _row(ContextRelevance, "ragas-0.4.3:nv_context_relevance"),
    _row(ResponseGroundedness, "ragas-0.4.3:nv_response_groundedness"),
    _row(AnswerAccuracy, "ragas-0.4.3:nv_accuracy"),
    _row(
        ContextRelevance,
        "ragas-0.4.3:collections.context_relevance",
        ", from structured output; one rating is enough, and a lost request is one more try",
        **_STRUCTURED,
    ),
    _row(
        ResponseGroundedness,
        "ragas-0.4.3:collections.response_groundedness",
        ", from structured output; a response that occurs in the contexts is judged too",
        **_STRUCTURED,
        shortcuts=Shortcuts.BLANK,
    ),
    _row(
        AnswerAccuracy,
        "ragas-0.4.3:collections.answer_accuracy",
        ", from structured output; ratings of 1 and 3 are refused",
        **_STRUCTURED,
        ratings="024",
        swapped_labels=True,
    ),
    _row(
        ContextRelevance,
        "ragas-0.3.0:nv_context_relevance",
        "; 0.3.0 sends the first prompt twice and shows 7000 characters",
        "EarlierNvContextRelevance",
        **_EARLIER,
        second_prompt=SecondPrompt.FIRST,
    ),
    _row(
        ResponseGroundedness,
        "ragas-0.3.0:nv_response_groundedness",
        "; 0.3.0 shows 7000 characters",
        "EarlierNvResponseGroundedness",
        **_EARLIER,
    ),
    _row(AnswerAccuracy, "ragas-0.3.0:nv_accuracy", "", "EarlierNvAccuracy"),
)
