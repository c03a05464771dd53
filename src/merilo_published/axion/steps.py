"""The requests of axion: a batch in one request, each item separately if that fails, and replies read as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from merilo.judging.ask import AskFailed, together
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Score
from merilo_published.asking import Asker, Flags, ReadReply, Reply, ReplyFault, RequestTemplate, json_array, object_in
from merilo_published.definition import Published

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample, TextField
    from merilo.judging.ask import Plan

R = TypeVar("R", bound=BaseModel)

SYSTEM: Final = "axion"

LOST: Final = "a judge call failed and was scored all the same"
SHORT: Final = "the judge gave fewer verdicts than it was asked for; the rest left the denominator"
LEFT_OUT: Final = "empty texts were not sent, and the verdicts count for the first texts"
NO_CONTEXT: Final = "nothing was retrieved and that was scored 0"
NO_CLAIM: Final = "the response makes no statement and that was scored 1"
NOTHING_CLAIMED: Final = Score(1.0, counts={"statements": 0}, flags=(NO_CLAIM,))


class Mode(StrEnum):
    """The evaluation mode that axion records."""

    GRANULAR = "granular"
    HOLISTIC = "holistic"


class RelevancyMode(StrEnum):
    """The rule for what is relevant to a question."""

    TASK = "task"
    """A text that answers it, or is closely related and needed for its task."""
    STRICT = "strict"
    """Only what answers it directly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxionMetric(Published):
    """A metric built on axion's analysis engine.

    Use: To compare with numbers of axion.
    Source: axion, revision 7ab96dc of 15 August 2026: the metric's module and the analysis engine.

    axion's serialiser leaves empty texts (not blank ones) out of a list that it sends, so fewer verdicts come than
    there are texts, and they count for the first texts. Items without a verdict leave the denominator.

    `mode` is recorded in the metric's text and moves no number, as in axion's code. `force_granular` and
    `allow_fallback` are options of the engine that every metric takes; they matter to recall, utilization and
    faithfulness, which alone can be judged in a batch or item by item.
    """

    version: ClassVar[int] = 2

    mode: Mode = Mode.GRANULAR
    failure_scored: bool = True
    """A judge call that fails is scored, with a flag, as published; False: the outcome is Failed."""
    force_granular: bool = False
    """Ask item by item from the start."""
    allow_fallback: bool = True
    """Ask item by item where the batch fails; False: the outcome is Failed then."""


def blank(sample: Sample, *names: TextField) -> str | None:
    """Return the first blank text among these, as a reason: axion treats it as missing. Raises MissingField."""
    texts = {name: sample.require(name) for name in names}
    return next((f"{_CALLED[name]} is blank" for name, text in texts.items() if not text.strip()), None)


def no_context() -> Score:
    """Return the outcome if nothing was retrieved."""
    return Score(0.0, counts={"contexts": 0}, flags=(NO_CONTEXT,))


def sent_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts of a list that are sent: those that are not empty."""
    return [text for text in texts if text]


def max_statements(text: str | None) -> int:
    """Return the maximum number of statements of a text to ask about one by one: generous, but bounded."""
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
    """The verdict on the relevance of one text."""

    verdict: Literal["yes", "no", "idk"]
    reason: str = ""


class Verdicts(BaseModel, Generic[R]):
    """A verdict for each item of a list."""

    verdicts: list[R]


def model_template(rubric: str, model: type[R], likely: object) -> RequestTemplate[R]:
    """Return a request for JSON that this model accepts. `likely`: a reply of the likely form, not yet as JSON."""

    def read(reply: Reply) -> R:
        try:
            return model.model_validate(object_in(reply.text))
        except ValidationError as error:
            raise ReplyFault(f"The reply has not the form asked for ({_first_fault(error)}).") from None

    return RequestTemplate(rubric, json.dumps(likely, ensure_ascii=False), read)


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def statements_in(asker: Asker, text: str) -> Plan[ReadReply[StatementsReply] | AskFailed]:
    """Return the statements that a text makes."""
    return (
        yield from asker.try_read(model_template("statements", StatementsReply, {"statements": [text]}), {"text": text})
    )


def relevancy_of(
    asker: Asker, user_input: str, texts: Sequence[str], mode: RelevancyMode
) -> Plan[ReadReply[Verdicts[RelevancyReply]] | AskFailed]:
    """Return verdicts on texts from one request, which is the same for contexts and statements and all metrics."""
    likely = {"verdicts": [{"verdict": "yes", "reason": ""} for _ in texts]}
    values = {"user_input": user_input, "texts": json_array(texts)}
    return (yield from asker.try_read(model_template(f"relevancy_{mode}", Verdicts[RelevancyReply], likely), values))


# -- a batch, or each item by itself ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Strategy:
    """The way to judge a list of items, and the fallback."""

    force_granular: bool
    """Ask about each item by itself from the start."""
    allow_fallback: bool
    """Ask about each item by itself where the batch fails; else the metric fails."""
    most: int
    """The maximum number of items to ask about separately."""


def read_batch(
    asker: Asker,
    rubric: str,
    template: RequestTemplate[R],
    whole: type[Verdicts[R]],
    *,
    item: str,
    texts: Sequence[str],
    sent: Sequence[str],
    fixed: Mapping[str, str],
    strategy: Strategy,
) -> Plan[tuple[ReadReply[R] | AskFailed, ...]]:
    """Return the reply on each text, in order; fewer replies than texts if the batch reply was short, never more.

    `template`: the request about one text, under the name `item`. `rubric`, `whole`: those of the batch, which shows
    the texts `sent`. `fixed`: the values of every request. Raises AskFailed when the batch fails and there is no
    fallback, or when there are too many texts.
    """
    if not texts:
        return ()
    if not strategy.force_granular:
        likely = {"verdicts": [json.loads(template.likely) for _ in sent]}
        values = {f"{item}s": json_array(sent), **fixed}
        found = yield from asker.try_read(model_template(rubric, whole, likely), values)
        if isinstance(found, ReadReply):
            return tuple(ReadReply(found.reply, value) for value in found.value.verdicts[: len(texts)])
        if not strategy.allow_fallback:
            raise found
    singles = [{item: text, **fixed} for text in texts]
    if len(singles) > strategy.most:
        question = asker.question(template.rubric, singles[0], likely="{}")
        message = f"{len(singles)} statements were named of a text that can make at most {strategy.most}."
        raise AskFailed(question, Failure(FailureKind.UNREADABLE, message))
    return (yield from together([asker.try_read(template, values) for values in singles]))


# -- what is scored although it went wrong ------------------------------------------------------------


@dataclass(slots=True)
class Notes:
    """The flags of one score; one for each plan."""

    failure_scored: bool = True
    _flags: Flags = field(default_factory=Flags)

    @property
    def flags(self) -> tuple[str, ...]:
        """Each phrase once, in order of appearance."""
        return self._flags.phrases

    def add(self, flag: str) -> None:
        """Note something."""
        self._flags.add(flag)

    def lost(self, error: AskFailed) -> None:
        """Note a failed call. Raises it where a failure is not scored."""
        if not self.failure_scored:
            raise error
        self.add(LOST)

    def length(self, got: int, wanted: int, texts: int) -> None:
        """Note a list of verdicts that is too short. `wanted`: one verdict for each of `texts` that was sent."""
        if wanted < texts:
            self.add(LEFT_OUT)
        if got < wanted:
            self.add(SHORT)
