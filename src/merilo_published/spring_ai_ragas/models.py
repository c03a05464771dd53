"""The models of spring-ai-ragas: which are asked, which drop out, and how their scores become one."""

from __future__ import annotations

import json
import math
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn, Self, TypeVar

from merilo.errors import UsageError
from merilo.judging.ask import AskFailed, Plan, together
from merilo.metrics.base import Evidence, Score, Undefined
from merilo.metrics.formulas import mean
from merilo_published.asking import (
    Asker,
    Fields,
    ReadReply,
    Reply,
    ReplyFault,
    RequestTemplate,
    items_of,
    no_constant,
    on_statements,
    without_halves,
)
from merilo_published.asking import fields_of as fields_of_any
from merilo_published.definition import Published, by_parameters, fraction

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from merilo.data.sample import Sample

# The readers of spring-ai-ragas: JSON at the beginning of a reply, mapped to fields as Jackson does.
#
# A field that is null is not an error. A whole reply of null is a success without a result there: most metrics then
# break for the sample (`NULL`), and some read it as an object without fields (`or_nothing`).

_THINKING: Final = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,10}")
_SMALLEST, _LARGEST = -(2**31), 2**31 - 1
"""Of an Integer in Java."""
_NOT_FINITE: Final = ("NaN", "INF", "Infinity", "-INF", "-Infinity")
_LARGEST_DOUBLE: Final = sys.float_info.max
NULL: Final = "The reply has null where the published code breaks, which fails the whole sample."
_FENCE: Final = re.compile(r"```(?:json)?(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)


def json_of(text: str) -> object:
    """Return the JSON value with which a reply begins, without thinking and code fence. Raises ReplyFault."""
    cleaned = _without_thinking(without_halves(text)).strip()
    fenced = _FENCE.match(cleaned)
    try:
        found: object = _DECODER.raw_decode(fenced[1].strip() if fenced else cleaned)[0]
    except (ValueError, RecursionError):
        raise ReplyFault("The reply does not begin with JSON.") from None
    return found


def fields_of(value: object) -> Fields:
    """Return a value as a JSON object. Raises ReplyFault, with `NULL` for null."""
    if value is None:
        raise ReplyFault(NULL)
    return fields_of_any(value)


def or_nothing(value: object) -> object:
    """Return a value, or an object without fields in place of null."""
    return {} if value is None else value


def whole_or_none(fields: Fields, name: str) -> int | None:
    """Return the whole number in a field: a number, its fraction cut off, or digits as text. None if null or missing.

    Raises ReplyFault, also for a number of more than 32 bits.
    """
    value = _given(fields, name)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and _SMALLEST <= value <= _LARGEST:
        return int(value)
    if value is None:
        return None
    raise ReplyFault(f'The reply gives {json.dumps(value)} as "{name}" where a whole number was asked for.')


def _given(fields: Fields, name: str) -> object:
    """Return the value of a field, stripped if it is text; None for a text that is blank or "null"."""
    value = fields.get(name)
    if not isinstance(value, str):
        return value
    return None if value.strip() in {"", "null"} else value.strip()


def flag_or_none(fields: Fields, name: str) -> bool | None:
    """Return the truth value in a field, also as 0, 1 or text; None if it is null or missing. Raises ReplyFault."""
    value = _given(fields, name)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value != 0
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    raise ReplyFault(f'The reply gives {json.dumps(value)} as "{name}" where true or false was asked for.')


def number_or_none(fields: Fields, name: str) -> float | None:
    """Return the number in a field, also as text; None if it is null, missing or not finite. Raises ReplyFault."""
    value = _given(fields, name)
    if value is None or value in _NOT_FINITE:
        return None
    number: float | None = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value) if abs(value) <= _LARGEST_DOUBLE else math.inf
    elif isinstance(value, str) and any(map(str.isdigit, value)):  # float() also reads "inf" and "nan"
        with suppress(ValueError):
            number = float(value)
    if number is None:
        raise ReplyFault(f'The reply gives {json.dumps(value)} as "{name}" where a number was asked for.')
    return number if math.isfinite(number) else None


def text_or_blank(fields: Fields, name: str) -> str:
    """Return the text in a field, or its JSON if it is something else; blank if it is null or missing."""
    value = fields.get(name)
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def objects_in(value: object, name: str) -> tuple[Fields, ...]:
    """Return the objects of the list in a field of a reply; none if it is null or missing. Raises ReplyFault."""
    listed = fields_of(value).get(name)
    return () if listed is None else tuple(fields_of(item) for item in items_of(listed))


def texts_of(value: object, name: str) -> tuple[str, ...]:
    """Return the texts of the list in a field of a reply; none if it is null or missing. Raises ReplyFault."""
    listed = fields_of(value).get(name)
    if listed is None:
        return ()
    return tuple(text_or_blank({name: item}, name) for item in items_of(listed))


def _without_thinking(text: str) -> str:
    """Remove everything from an opening tag to the next closing one, in one pass."""
    kept: list[str] = []
    end, opened = 0, -1
    for tag in _THINKING.finditer(text):
        if not tag[1] and opened < 0:
            opened = tag.start()
        elif tag[1] and opened >= 0:
            kept.append(text[end:opened])
            end, opened = tag.end(), -1
    return "".join((*kept, text[end:]))


_DECODER: Final = json.JSONDecoder(parse_constant=no_constant)


R = TypeVar("R")

SYSTEM: Final = "spring-ai-ragas"
TOLERANCE: Final = 0.1
LOST: Final = "a model gave no usable reply and was left out"
DISAGREE: Final = "the models' scores lie further apart than the tolerance"


# -- one score out of several -------------------------------------------------------------------------


class Aggregator(StrEnum):
    """The way in which the scores of several models become one."""

    AVERAGE = "average"
    MEDIAN = "median"
    """The middle one; of an even number the mean of the two in the middle."""
    MIN = "min"
    MAX = "max"
    MAJORITY_VOTING = "majority_voting"
    """1 when more than half of the scores are at least 0.5, else 0."""
    CONSENSUS = "consensus"
    """The mean when highest and lowest lie at most `tolerance` apart, else none."""


_AGGREGATES: Final[Mapping[Aggregator, Callable[[Sequence[float]], float]]] = {
    Aggregator.AVERAGE: mean,
    Aggregator.MEDIAN: lambda scores: float(median(scores)),
    Aggregator.MIN: min,
    Aggregator.MAX: max,
    Aggregator.MAJORITY_VOTING: lambda scores: float(2 * sum(score >= 0.5 for score in scores) > len(scores)),
    Aggregator.CONSENSUS: mean,
}


def aggregate(scores: Sequence[float], aggregator: Aggregator) -> float:
    """Return one score from the scores of several models, in any order. Raises ValueError for no scores.

    Source: spring-ai-ragas 0.3.3, ScoreAggregator.
    """
    return _AGGREGATES[aggregator](scores)


JudgedTexts = tuple[tuple[float, str], ...]
"""Statements or claims, each with the number that a model's verdict on it is worth."""


def judged_texts(value: object, name: str, text: str, worth: Callable[[Fields], float]) -> JudgedTexts:
    """Return the texts of the list `name` in a reply, each with the worth of its fields; none for a reply of null."""
    return tuple((worth(each), text_or_blank(each, text)) for each in objects_in(or_nothing(value), name))


def judged_evidence(replies: Iterable[ReadReply[JudgedTexts]]) -> list[Evidence]:
    """Return each judged text of each reply as evidence."""
    return [piece for reply in replies for piece in on_statements(reply.reply.verdict, reply.value)]


# -- asking all models --------------------------------------------------------------------------------


def json_template(rubric: str, likely: str, read: Callable[[object], R]) -> RequestTemplate[R]:
    """Return a request for JSON. `read` takes the JSON value of a reply and raises ReplyFault if it does not fit."""
    return RequestTemplate(rubric, likely, lambda reply: read(json_of(reply.verdict.text)))


@dataclass(slots=True)
class Panel:
    """The models that are asked about one sample; each plan makes its own.

    A model whose call fails or whose reply cannot be read is left out of that step and noted in `lost`. A reply of
    null fails the sample, unless the metric reads it as an object without fields.
    """

    asker: Asker
    lost: list[AskFailed] = field(default_factory=list[AskFailed])
    flags: dict[str, None] = field(default_factory=dict[str, None])
    """Problems that were scored anyway, each once, in order of appearance."""
    _replies: list[Reply] = field(default_factory=list[Reply])

    def read(
        self, template: RequestTemplate[R], asked: Iterable[tuple[str, Mapping[str, str]]]
    ) -> Plan[tuple[ReadReply[R] | None, ...]]:
        """Return what was read of each reply, in order; None if there is nothing. All are asked side by side.

        `asked`: the role and the values of each request.
        """
        found = yield from together([self.asker.try_read(template, values, role=role) for role, values in asked])
        for each in found:
            if isinstance(each, ReadReply):
                self._replies.append(each.reply)
            elif each.failure.message == NULL:
                raise each
            else:
                self.lose(each)
        return tuple(each if isinstance(each, ReadReply) else None for each in found)

    def ask(
        self, template: RequestTemplate[R], roles: Iterable[str], values: Mapping[str, str]
    ) -> Plan[dict[str, ReadReply[R]]]:
        """Return the reply of each model to the same request, by role; models without a reply are left out."""
        replies = yield from self.read(template, [(role, values) for role in roles])
        return {reply.role: reply for reply in replies if reply is not None}

    def lose(self, failed: AskFailed) -> None:
        """Note a question that got no usable answer."""
        self.lost.append(failed)
        self.flags[LOST] = None

    def fail(self, what: str) -> NoReturn:
        """Raise AskFailed: the first lost reply, otherwise that the last reply holds nothing to score."""
        raise self.lost[0] if self.lost else self._replies[-1].unreadable(what)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralModels(Published):
    """A metric of spring-ai-ragas, judged by one or several models.

    Undefined: the models' scores lie further apart than the tolerance
    Use: To compare with scores of spring-ai-ragas.

    - `models`: names of judges joined by "+"; none asks every judge of the run.
    - `aggregator`: how the models' scores become one; `tolerance` is the spread that consensus takes.
      Undefined when there is no consensus.
    """

    version: ClassVar[int] = 2
    roles = by_parameters(lambda metric: frozenset(metric.names), frozenset({"judge"}))

    models: str | None = None
    aggregator: Aggregator = Aggregator.AVERAGE
    tolerance: float = TOLERANCE
    _bound: tuple[str, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for each in fields(self):
            if isinstance(each.default, StrEnum):  # in upper or lower case
                object.__setattr__(self, each.name, getattr(self, each.name).lower())
        Published.__post_init__(self)
        if self.models is not None and not all(part.strip() for part in self.models.split("+")):
            raise UsageError(f"Metric {self.name!r} takes models=NAME+NAME, names of judges, got {self.models!r}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The roles of the models asked, in order; `judge` where no run has said which judges it has."""
        return self._bound or self._named or ("judge",)

    def for_judges(self, names: Sequence[str]) -> Self:
        """Return this metric for a run with judges of these roles. Raises UsageError if one of `models` is missing."""
        unknown = [name for name in self._named if name not in names]
        if unknown:
            raise UsageError(
                f"Metric {self.name!r} asks the model {unknown[0]!r}, which is no judge of this run; "
                f"there are {', '.join(names)}."
            )
        bound = replace(self)
        object.__setattr__(bound, "_bound", self._named or tuple(names))
        return bound

    @property
    def _named(self) -> tuple[str, ...]:
        return () if self.models is None else tuple(dict.fromkeys(part.strip() for part in self.models.split("+")))

    def panel(self, sample: Sample, *, temperature: float | None = None) -> Panel:
        """Return the models to ask about this sample: in Russian if the sample is Russian, otherwise in English."""
        language = re.split("[-_]", sample.resolved_language)[0].lower()
        return Panel(Asker(SYSTEM, "ru" if language == "ru" else "en", temperature))

    def combined(self, scores: Collection[float]) -> float | None:
        """Return one score from the models' scores, at least one; None if they have no consensus."""
        apart = self.aggregator is Aggregator.CONSENSUS and max(scores) - min(scores) > self.tolerance
        return None if apart else aggregate(tuple(scores), self.aggregator)

    def outcome(
        self, panel: Panel, scores: Mapping[str, float], evidence: Sequence[Evidence], counts: Mapping[str, int | None]
    ) -> Score | Undefined:
        """Return the outcome of scores by model. Raises AskFailed when no model has one."""
        if not scores:
            panel.fail("The reply holds nothing to score.")
        value = self.combined(scores.values())
        return Undefined(DISAGREE) if value is None else Score(value, tuple(evidence), counts, tuple(panel.flags))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresEmpty(SeveralModels):
    """A metric of spring-ai-ragas that scores 0, flagged, if a field is missing or blank or a list is empty."""

    breaks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"needs": "a missing field scores 0", "nothing to judge": "it scores 0"}
    )

    required: ClassVar[tuple[str, ...]] = ()
    """The fields that must hold something, in the order in which they are checked."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        for name in self.required:
            if name not in sample.present:
                return Score(0.0, flags=(f"there is no {name} and that was scored 0",))
            value = sample.require(name)
            if not (value.strip() if isinstance(value, str) else value):
                return Score(0.0, flags=(f"the {name.replace('_', ' ')} is empty and that was scored 0",))
        return (yield from self.judged(sample, self.panel(sample)))

    def judged(self, sample: Sample, panel: Panel) -> Plan[Score | Undefined]:
        """Return the outcome of a sample whose required fields hold something."""
        raise NotImplementedError  # each metric has its own

    def share(self, panel: Panel, part: float, whole: int, what: str) -> float:
        """Return `part` of `whole`; of nothing 0, flagged."""
        if not whole:
            panel.flags[f"a model found no {what} and that was scored 0"] = None
        return fraction(part, whole)

    def shares(
        self,
        panel: Panel,
        replies: Mapping[str, ReadReply[JudgedTexts]],
        names: tuple[str, str],
        *,
        what: str,
    ) -> Score | Undefined:
        """Return the outcome of the share of each model's judged texts; `names`: those of the two counts."""
        parts = {role: sum(value for value, _ in reply.value) for role, reply in replies.items()}
        scores = {role: self.share(panel, parts[role], len(reply.value), what) for role, reply in replies.items()}
        evidence = judged_evidence(replies.values())
        counts = {names[0]: len(evidence), names[1]: int(sum(parts.values()))}
        return self.outcome(panel, scores, evidence, counts)
