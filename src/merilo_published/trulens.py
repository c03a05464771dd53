"""TruLens: ratings of chunks, sentences and answers, read from a reply that may be JSON, a list or plain text."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.json_types import as_list, as_object
from merilo.metrics.base import EvidenceTarget, Metric, Score, Undefined
from merilo.metrics.formulas import mean
from merilo.metrics.variants import variant
from merilo_published.asking import Asker, ReplyFault, RequestTemplate, json_array
from merilo_published.definition import Published, joined, scaled_rating

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


_TEMPERATURE: Final = 0.0
_NUMBER: Final = re.compile(r"[+-]?([0-9]++)(\.?)[0-9]*+")
_MARKER: Final = re.compile(r"^\s*(?:[-*•]|\(?\d{1,3}[.)])\s+")
_NO_RATING: Final = -1.0
_BAD_SCORE: Final = "a score that is no number was taken as -1"
_ALL_KEPT: Final = "the list of sentences to rate could not be read, so all were rated"
_LIKELY: Final = "1"


class Scale(StrEnum):
    """The lowest and the highest rating."""

    TO_3 = "0-3"
    TO_10 = "0-10"
    TO_1 = "0-1"

    @property
    def ends(self) -> tuple[int, int]:
        """The two ratings."""
        low, _, high = self.value.partition("-")
        return int(low), int(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rating(Published):
    """A rating of TruLens. Value: mean of (rating − lowest) / (highest − lowest).

    Use: To compare with numbers of TruLens.
    Not: Where the judge explains itself in plain text: any number in its words may become the rating.
    Source: TruLens, git 97f531a: feedback prompts and the reading of ratings

    Reading of a reply: a JSON object with a "score", which may have a fraction and must lie on the scale; a JSON
    list, the mean of its numbers on the scale; else the numbers in the text, each cut to a whole one, and of those
    that lie on the scale then the lowest. Failed where there is none. A JSON score that is not a number, or a list
    without a number on the scale, is the rating −1, which makes the value negative: the range reaches down to
    −1 for the scale from 0 to 1 (−1/3 for 0 to 3).

    In plain text "2 of 3" is 2, "not 0 but 3" is 0, "-1" is 1 and "3.9" is 3 on the scale to 3.
    """

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    scale: Scale = Scale.TO_3

    def _rated(
        self, rubric: str, asked: Sequence[Mapping[str, str]], about: EvidenceTarget, texts: Sequence[str] = ()
    ) -> Plan[Score]:
        """Return the mean of the ratings that one request for each of these fillings gives."""
        low, high = self.scale.ends
        asker = Asker("trulens", temperature=_TEMPERATURE)
        scale = {"lowest": str(low), "highest": str(high)}
        template = RequestTemplate(rubric, _LIKELY, lambda reply: self._read(reply.text))
        replies = yield from asker.read_each(template, [{**values, **scale} for values in asked])
        ratings = [reply.value for reply in replies]
        values = [scaled_rating(rating, high, low) for rating in ratings]
        return Score(
            mean(values),
            evidence=tuple(
                reply.evidence(about, at, reply.value, texts[at] if texts else "") for at, reply in enumerate(replies)
            ),
            counts={"rated": len(ratings)},
            flags=(_BAD_SCORE,) if _NO_RATING in ratings else (),
        )

    def _read(self, reply: str) -> float:
        """Return the rating in a reply, as the class says. Raises ReplyFault."""
        low, high = self.scale.ends
        try:
            loaded: object = json.loads(reply)
        except (ValueError, RecursionError):
            return self._in_text(reply)
        fields, items = as_object(loaded), as_list(loaded)
        if items is not None:
            numbers = [number for number in map(_number, items) if number is not None and low <= number <= high]
            return mean(numbers) if numbers else _NO_RATING
        if fields is None or "score" not in fields:
            return self._in_text(reply)
        score = _number(fields["score"])
        if score is None:
            return _NO_RATING
        if not low <= score <= high:
            raise ReplyFault(f"The reply gives the score {score:g}, outside the scale {self.scale}.")
        return score

    def _in_text(self, reply: str) -> float:
        low, high = self.scale.ends
        numbers = [float(int(number)) for number in map(float, _unsigned(reply)) if isfinite(number)]
        ratings = [number for number in numbers if low <= number <= high]
        if not ratings:
            raise ReplyFault(f"The reply holds no number on the scale {self.scale}.")
        return min(ratings)


def _unsigned(reply: str) -> Iterator[str]:
    """Yield the numbers in a text: fractions with their sign, whole numbers without, each leading 0 as a number."""
    for found in _NUMBER.finditer(reply):
        whole = found[1].lstrip("0")
        if found[2]:
            yield found[0]
        else:
            yield from "0" * (len(found[1]) - len(whole))
            if whole:
                yield whole


def _number(value: object) -> float | None:
    """Return a JSON value as a finite number; None if it is not one."""
    if not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevance(_Rating):
    """Mean rated relevance of the contexts (TruLens).

    Formula: Mean over the contexts of a rating from 0 to 3, divided by 3.
    Questions: One request for each context.
    Undefined: no context was retrieved
    See: context_relevance | umbrela:relevance
    """

    name: ClassVar[str] = "trulens:context_relevance"
    needs = frozenset({"user_input", "retrieved_contexts"})
    rubric: ClassVar[str] = "context_relevance"

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        question, contexts = sample.require("user_input"), sample.contexts
        if not contexts:
            return Undefined("no context was retrieved")
        asked = [{"question": question, "context": context.text} for context in contexts]
        return (yield from self._rated(self.rubric, asked, EvidenceTarget.CONTEXT))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevance(_Rating):
    """Rated relevance of the response to the user input (TruLens).

    Formula: A rating from 0 to 3, divided by 3.
    Questions: One request.
    See: answer_relevancy
    """

    name: ClassVar[str] = "trulens:relevance"
    needs = frozenset({"user_input", "response"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "blank texts are rated"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        asked = {"prompt": sample.require("user_input"), "response": sample.require("response")}
        return (yield from self._rated("relevance", [asked], EvidenceTarget.TEXT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Groundedness(_Rating):
    """Mean rated support of the response's sentences by the contexts (TruLens).

    Formula: Mean over the sentences that say something of a rating from 0 to 3, divided by 3.
    Questions: One request for the sentences to rate, then one for each of them.
    See: faithfulness

    Sentences lose their list markers; one request names those that say something, and each of these is rated by
    itself. TruLens cuts sentences by NLTK, here they are merilo's own; that is the one step that is not as published.
    Where the list of sentences to keep cannot be read, all are rated, with a flag. A response without a sentence to
    rate scores 0.
    """

    name: ClassVar[str] = "trulens:groundedness"
    needs = frozenset({"response", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "nothing to rate scores 0"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        source = joined(sample)
        whole = [_MARKER.sub("", sentence).strip() for sentence in sample.sentences("response")]
        sentences, flags = [sentence for sentence in whole if sentence], tuple[str, ...]()
        if sentences:
            sentences, flags = yield from self._worth_rating(sentences)
        if not sentences:
            return Score(0.0, counts={"rated": 0})
        asked = [{"source": source, "statement": sentence} for sentence in sentences]
        rated = yield from self._rated("groundedness", asked, EvidenceTarget.STATEMENT, sentences)
        return replace(rated, flags=(*flags, *rated.flags))

    def _worth_rating(self, sentences: list[str]) -> Plan[tuple[list[str], tuple[str, ...]]]:
        """Return the sentences that say something, as the judge lists them, at most all of them; and a flag."""
        shown = json_array(sentences)
        template = RequestTemplate("groundedness.telling", shown, lambda reply: _texts_in(reply.text))
        reply = yield from Asker("trulens", temperature=_TEMPERATURE).read(template, {"statements": shown})
        kept = reply.value
        return (sentences, (_ALL_KEPT,)) if kept is None else (kept[: len(sentences)], ())


def _texts_in(reply: str) -> list[str] | None:
    """Return the texts of a list in a reply, written as in JSON or in Python; None if there is no list."""
    start, end = reply.find("["), reply.rfind("]")
    for read in (json.loads, ast.literal_eval):
        try:
            items = as_list(read(reply[start : end + 1]))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if items is not None and all(isinstance(item, str) for item in items):
            texts = [str(item) for item in items if str(item).strip()]
            # halves of characters are joined, and a single half is replaced
            return [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
    return None


METRICS: Final[tuple[type[Metric], ...]] = (
    ContextRelevance,
    variant(
        ContextRelevance,
        "trulens:context_relevance_with_cot_reasons",
        "`ContextRelevance` with criteria and supporting evidence in the reply, which are not scored.",
        rubric="context_relevance.reasons",
    ),
    Groundedness,
    AnswerRelevance,
)
