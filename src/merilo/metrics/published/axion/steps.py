"""How axion asks: a batch in one request, each item by itself where that fails, and replies read as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from merilo.judging.ask import AskFailed, attempt, together
from merilo.judging.questions import Completion
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import About, Evidence, Kinds, Ordinary, Score, Undefined, choice
from merilo.metrics.published.asking import Asker, Heard
from merilo.metrics.published.replies import ReplyFault, object_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.data.sample import Sample, TextField
    from merilo.judging.ask import Plan

R = TypeVar("R", bound=BaseModel)
W = TypeVar("W", bound=BaseModel)

SYSTEM: Final = "axion"
SOURCE: Final = "axion, revision 7ab96dc of 15 August 2026: the metric's module and the analysis engine."
PAGE: Final = "The project's documentation page of the metric differs from the code; the numbers are the code's."

LOST: Final = "a judge call failed and was scored all the same"
SHORT: Final = "the judge gave fewer verdicts than it was asked for; the rest left the denominator"
NO_CONTEXT: Final = "nothing was retrieved and that was scored 0"
NO_CLAIM: Final = "the response makes no statement and that was scored 1"


class Mode(StrEnum):
    """The evaluation mode that axion records."""

    GRANULAR = "granular"
    HOLISTIC = "holistic"


class RelevancyMode(StrEnum):
    """What is relevant to a question."""

    TASK = "task"
    """What answers it, and what is closely related and needed for the task behind it."""
    STRICT = "strict"
    """Only what answers it directly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxionMetric(Ordinary):
    """What the metrics built on axion's analysis engine have in common.

    `mode` is recorded in the metric's text and moves no number, as in axion's code. `force_granular` and
    `allow_fallback` are options of the engine that every metric takes; they matter to recall, utilization and
    faithfulness, which alone can be judged in a batch or item by item.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    asks = Kinds({Completion})

    mode: Mode = Mode.GRANULAR
    failure_scored: bool = True
    """A judge call that fails is scored, with a flag, as published; False: the outcome is Failed."""
    force_granular: bool = False
    """Ask item by item from the start."""
    allow_fallback: bool = True
    """Ask item by item where the batch fails; False: the outcome is Failed then."""

    def __post_init__(self) -> None:
        settle(self)


def settle(metric: AxionMetric) -> None:
    """Turn the texts given for enumerations into their members, in a constructor. Raises UsageError."""
    for each in fields(metric):
        if isinstance(each.default, StrEnum):
            given: str = getattr(metric, each.name)
            member = choice(type(each.default), given, metric=metric.name, parameter=each.name)
            object.__setattr__(metric, each.name, member)


def blank(sample: Sample, *names: TextField) -> str | None:
    """What is blank among these texts, as a reason; axion takes a blank text for a missing one. Raises MissingField."""
    texts = {name: sample.require(name) for name in names}
    return next((f"{_CALLED[name]} is blank" for name, text in texts.items() if not text.strip()), None)


def joined(sample: Sample) -> str:
    """The retrieved contexts as one text, as axion joins them."""
    return "\n".join(context.text for context in sample.contexts)


def no_context(*, empty_scored: bool) -> Score | Undefined:
    """The outcome where nothing was retrieved."""
    if not empty_scored:
        return Undefined("nothing was retrieved")
    return Score(0.0, counts={"contexts": 0}, flags=(NO_CONTEXT,))


def listed(texts: Sequence[str]) -> str:
    """Texts as a JSON array, in which each keeps its bounds."""
    return json.dumps(list(texts), ensure_ascii=False)


def most_statements(text: str | None) -> int:
    """How many statements of a text may be asked about one by one: plenty, and never without end."""
    return 0 if text is None else 8 + len(text) // 4


_CALLED: Final[Mapping[str, str]] = {
    "user_input": "the user input",
    "response": "the response",
    "reference": "the reference",
}


# -- replies ------------------------------------------------------------------------------------------


class StatementsReply(BaseModel):
    """The statements of a text."""

    statements: list[str]


class RelevancyReply(BaseModel):
    """Whether one text is relevant."""

    verdict: Literal["yes", "no", "idk"]
    reason: str = ""


class RelevancyReplies(BaseModel):
    """A verdict for each text."""

    verdicts: list[RelevancyReply]


@dataclass(frozen=True, slots=True)
class Read(Generic[R]):
    """A reply that could be read."""

    heard: Heard
    reply: R

    def about(self, about: About, index: int, value: float, text: str = "") -> Evidence:
        """The evidence that this reply is, with the number read from it."""
        return Evidence(about, index, self.heard.verdict, text, value)


@dataclass(frozen=True, slots=True)
class Query(Generic[R]):
    """One request: its rubric, what it is filled with, and what is to come back."""

    rubric: str
    values: Mapping[str, str]
    form: type[R]
    likely: object
    """A reply of the likely form, before it is written as JSON."""


def put(asker: Asker, query: Query[R]) -> Plan[Read[R] | AskFailed]:
    """The reply to a request; AskFailed, not raised, where there is none or it has another form."""
    question = asker.question(query.rubric, query.values, likely=json.dumps(query.likely, ensure_ascii=False))
    answer = yield from attempt(question)
    if isinstance(answer, Failure):
        return AskFailed(question, answer)
    heard = Heard(question, answer)
    try:
        return Read(heard, query.form.model_validate(object_in(heard.text)))
    except ValidationError as error:
        return heard.unreadable(f"The reply has not the form asked for ({_first_fault(error)}).")
    except ReplyFault as fault:
        return heard.unreadable(str(fault))


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def statements_in(asker: Asker, text: str) -> Plan[Read[StatementsReply] | AskFailed]:
    """The statements that a text makes."""
    query = Query("statements", {"text": text}, StatementsReply, {"statements": [text]})
    return (yield from put(asker, query))


def relevancy_of(
    asker: Asker, user_input: str, texts: Sequence[str], mode: RelevancyMode
) -> Plan[Read[RelevancyReplies] | AskFailed]:
    """Verdicts on texts in one request; the same words for contexts and statements, and for every metric."""
    likely = {"verdicts": [{"verdict": "yes", "reason": ""} for _ in texts]}
    values = {"user_input": user_input, "texts": listed(texts)}
    return (yield from put(asker, Query(f"relevancy_{mode}", values, RelevancyReplies, likely)))


# -- a batch, or each item by itself ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a list of items is judged, and what is done when that fails."""

    force_granular: bool
    """Ask about each item by itself from the start."""
    allow_fallback: bool
    """Ask about each item by itself where the batch fails; else the metric fails."""
    most: int
    """How many items may be asked about by themselves."""


def put_batch(
    asker: Asker,
    whole: Query[W],
    singles: Sequence[Query[R]],
    split: Callable[[W], Sequence[R]],
    strategy: Strategy,
) -> Plan[tuple[Read[R] | AskFailed, ...]]:
    """What came back about each item, in order; fewer than items where the batch reply was short, never more.

    Raises AskFailed when the batch fails and nothing may be tried after it, or when there are too many items.
    """
    if not singles:
        return ()
    if not strategy.force_granular:
        found = yield from put(asker, whole)
        if isinstance(found, Read):
            return tuple(Read(found.heard, reply) for reply in split(found.reply)[: len(singles)])
        if not strategy.allow_fallback:
            raise found
    if len(singles) > strategy.most:
        question = asker.question(singles[0].rubric, singles[0].values, likely="{}")
        message = f"{len(singles)} statements were named of a text that can make at most {strategy.most}."
        raise AskFailed(question, Failure(FailureKind.UNREADABLE, message))
    return (yield from together([put(asker, query) for query in singles]))


# -- what is scored although it went wrong ------------------------------------------------------------


@dataclass(slots=True)
class Notes:
    """The flags of one score; made anew in every plan."""

    failure_scored: bool = True
    short_list_accepted: bool = True
    _flags: dict[str, None] = field(default_factory=dict[str, None])

    @property
    def flags(self) -> tuple[str, ...]:
        """Each phrase once, in order of appearance."""
        return tuple(self._flags)

    def add(self, flag: str) -> None:
        """Note something."""
        self._flags[flag] = None

    def lost(self, error: AskFailed) -> None:
        """Note a failed call. Raises it where a failure is not scored."""
        if not self.failure_scored:
            raise error
        self.add(LOST)

    def length(self, heard: Heard, got: int, wanted: int) -> None:
        """Note a list of verdicts that is too short. Raises AskFailed where that is not accepted."""
        if got >= wanted:
            return
        if not self.short_list_accepted:
            raise heard.unreadable(f"The reply gives {got} verdicts where {wanted} were asked for.")
        self.add(SHORT)
