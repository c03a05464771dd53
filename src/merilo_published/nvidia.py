"""NVIDIA's three ratings, as ragas carries them: two prompts, two ratings, their mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import AskFailed, Plan
from merilo.metrics.base import Evidence, EvidenceTarget, Metric, Score, Undefined
from merilo.metrics.formulas import mean
from merilo.metrics.variants import D, variant
from merilo_published.asking import (
    REASKS,
    Asker,
    RequestTemplate,
    integer_in,
    object_in,
    object_of,
    reasks,
    strict_integer_in,
)
from merilo_published.definition import Published, joined, scaled_rating

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample, TextField
    from merilo_published.asking import Reply

_CUT_CHARACTERS: Final = 7_000
_EMPTY: Final = "an input is empty"
_BLANK: Final = "an input is blank and was scored 0 unasked"


@dataclass(frozen=True, slots=True, kw_only=True)
class _TwoRatings(Published):
    """The mean of two ratings, each divided by the top of its scale.

    A rating is the first of `ratings`, in their order, that occurs anywhere in a reply: "0 out of 2" is 2 if 2 comes
    first. A lost request fails the metric. Without the first rating there is no score; without the second the first is
    the score. The collections read the field "rating" of a JSON object, which must be one of `ratings`, take a lost
    request for one more try, and are content with either rating.

    Parameters of all three metrics:

    - `tries`: maximum number of requests for each rating.
    - `reasks`: of the collections, the number of re-asks per try after an unreadable reply, in the same conversation;
      none reads replies leniently.
    """

    rubric: ClassVar[str]
    top: ClassVar[int] = 2
    collected: ClassVar[bool] = False
    """True for the metrics of ragas' collections, which ask for structured output."""
    second: ClassVar[str] = "second"
    """The prompt of the second rating. In ragas 0.2.14 to 0.3.2 the first once more: an error."""

    ratings: ClassVar[str] = "210"
    """The digits to search for, in this order."""
    temperature: ClassVar[float] = 0.1

    tries: int = 5
    reasks: int | None = None

    def _scored(self, first: Mapping[str, str], second: Mapping[str, str]) -> Plan[Score | Undefined]:
        """Return the mean of both ratings; `first` and `second` are the values of their prompts."""
        asker = Asker("nvidia", temperature=self.temperature)
        one = yield from self._rated(asker, f"{self.rubric}_first", first)
        two = yield from self._rated(asker, f"{self.rubric}_{self.second}", second)
        if isinstance(one, AskFailed) and (not self.collected or isinstance(two, AskFailed)):
            raise one
        evidence = tuple(each for each in (one, two) if not isinstance(each, AskFailed))
        flags = ("one rating could not be read and the other stands alone",) if len(evidence) < 2 else ()
        return Score(mean(each.value or 0.0 for each in evidence), evidence, {"ratings": len(evidence)}, flags)

    def _rated(self, asker: Asker, rubric: str, values: Mapping[str, str]) -> Plan[Evidence | AskFailed]:
        """Return one rating from 0 to 1 after at most `tries` tries, or why there is none.

        Raises AskFailed for a request that fails, unless it is retried.
        """
        likely = f'{{"rating": {self.top}}}' if self.collected else str(self.top)
        filled = {**values, "form": "json" if self.collected else "digit"}
        template = RequestTemplate(rubric, likely, self._read)
        recovery = None if self.reasks is None else reasks(asker, template, self.reasks)
        faults: list[AskFailed] = []
        for _ in range(self.tries):
            try:
                read = yield from asker.read(template, filled, recovery=recovery)
            except AskFailed as failed:
                if not self.collected:
                    raise
                faults.append(failed)
                continue
            if read.value is not None:
                return read.evidence(EvidenceTarget.TEXT, 0, scaled_rating(read.value, self.top))
            faults.append(read.reply.unreadable(f"The reply holds none of the ratings {self.ratings}."))
        return faults[-1]

    def _read(self, reply: Reply) -> int | None:
        """Return the rating in a reply; None for none of those allowed. Raises ReplyFault."""
        if not self.collected:
            return next((int(digit) for digit in self.ratings if digit in reply.text), None)
        if self.reasks is None:
            rating = integer_in(object_in(reply.text), "rating")
        else:
            rating = strict_integer_in(object_of(reply.verdict.text), "rating")
        return rating if str(rating) in tuple(self.ratings) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RatedContexts(_TwoRatings):
    """Two ratings of the joined contexts, for which blank or copied inputs are scored without a question."""

    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "a blank input scores 0"})
    shown: ClassVar[int | None] = None
    """The maximum number of characters of the joined contexts that are shown; None for all."""
    rated: ClassVar[TextField]
    """The text that is rated with the contexts."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        text, contexts = sample.require(self.rated), sample.contexts
        whole = joined(sample)
        if self.collected and not (text and contexts):
            return Undefined(_EMPTY)
        if not (text.strip() and whole.strip()):
            return Score(0.0, flags=(_BLANK,))
        if (known := self.copied(text.strip(), whole.strip())) is not None:
            return known
        values = {self.rated: text, "contexts": whole[: self.shown]}
        return (yield from self._scored(values, values))

    def copied(self, text: str, contexts: str) -> Score | None:
        """Return the score if one of the texts, which are not blank, holds the other; None if the judge is asked."""
        raise NotImplementedError  # each metric has its own


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

    Quirks: those of both ratings (see `_TwoRatings`); 0 without a question for a blank input, and where the user input
    holds the contexts. Up to 0.3.4 7000 characters of the joined contexts are shown.
    """

    name: ClassVar[str] = "nvidia:context_relevance"
    needs = frozenset({"user_input", "retrieved_contexts"})
    rubric: ClassVar[str] = "context_relevance"
    rated = "user_input"

    def copied(self, text: str, contexts: str) -> Score | None:
        flag = "the contexts stand in the user input and were scored 0 unasked"
        return Score(0.0, flags=(flag,)) if contexts in text else None


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

    Quirks: those of both ratings (see `_TwoRatings`); 0 without a question for a blank input, and 1 if the response
    occurs in the contexts, character by character (not in the collections). Cut up to 0.3.4 as `ContextRelevance`.
    """

    name: ClassVar[str] = "nvidia:response_groundedness"
    needs = frozenset({"response", "retrieved_contexts"})
    rubric: ClassVar[str] = "response_groundedness"
    rated = "response"

    def copied(self, text: str, contexts: str) -> Score | None:
        flag = "the response stands in the contexts and was scored 1 unasked"
        return Score(1.0, flags=(flag,)) if text in contexts and not self.collected else None


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

    The second prompt shows the reference first.

    Quirks: those of both ratings (see `_TwoRatings`); `ratings` takes 1 and 3, which were not asked for, and looks
    for 0 first, so that "4.0" is 0. Empty texts are judged. In the collections the second prompt calls the reference
    the user's answer and the other way round.
    """

    name: ClassVar[str] = "nvidia:answer_accuracy"
    needs = frozenset({"user_input", "response", "reference"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "empty texts are judged"})
    rubric: ClassVar[str] = "answer_accuracy"
    top: ClassVar[int] = 4

    ratings: ClassVar[str] = "01234"

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        response, reference = sample.require("response"), sample.require("reference")
        if self.collected and not (user_input and response and reference):
            return Undefined(_EMPTY)
        first = {"user_input": user_input, "answer": response, "reference": reference}
        swapped = {"user_input": user_input, "answer": reference, "reference": response}
        return (yield from self._scored(first, swapped if self.collected else first))


# -- the same metrics by the names of ragas -----------------------------------------------------------

_STRUCTURED: Final[Mapping[str, object]] = {
    "version": 2,
    "breaks": MappingProxyType[str, str]({}),
    "collected": True,
    "temperature": 0.01,
    "reasks": REASKS,
}
"""Changes of the collections, which ask for structured output: one rating is enough, a lost request is one more try."""


def _row(base: D, name: str, **changes: object) -> D:
    """Return a metric of NVIDIA as one release of ragas has it."""
    questions = base.card.questions
    if changes.get("second") == "first":
        questions = questions.replace("in different words", "in the same words")
    if changes.get("reasks"):
        questions = f"{questions[:-1]}; each try is re-asked up to `reasks` times (2)."
    return variant(base, name, card=replace(base.card, questions=questions), **changes)


_EARLIER: Final = {"shown": _CUT_CHARACTERS}
"""Up to 0.3.4."""
METRICS: Final[tuple[type[Metric], ...]] = (
    ContextRelevance,
    ResponseGroundedness,
    AnswerAccuracy,
    _row(ContextRelevance, "ragas-0.4.3:nv_context_relevance"),
    _row(ResponseGroundedness, "ragas-0.4.3:nv_response_groundedness"),
    _row(AnswerAccuracy, "ragas-0.4.3:nv_accuracy"),
    _row(ContextRelevance, "ragas-0.4.3:collections.context_relevance", **_STRUCTURED),
    _row(ResponseGroundedness, "ragas-0.4.3:collections.response_groundedness", **_STRUCTURED),
    _row(AnswerAccuracy, "ragas-0.4.3:collections.answer_accuracy", **_STRUCTURED, ratings="024"),
    _row(ContextRelevance, "ragas-0.3.0:nv_context_relevance", **_EARLIER, second="first"),
    _row(ResponseGroundedness, "ragas-0.3.0:nv_response_groundedness", **_EARLIER),
    _row(AnswerAccuracy, "ragas-0.3.0:nv_accuracy"),
)
