"""The requests of ragas 0.2 to 0.4: JSON, requests to repair it, or re-asks in the same conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from merilo.errors import UsageError
from merilo.metrics.base import Undefined
from merilo.metrics.formulas import f_measure
from merilo_published.asking import (
    Asker,
    Fields,
    Recovery,
    Reply,
    ReplyFault,
    RequestTemplate,
    UnreadableReply,
    UnrecoverableFault,
    fields_of,
    given,
    integer_in,
    items_of,
    json_array,
    object_of,
    partial_json,
    read_reply,
    reasks,
    strict_integer_in,
    text_in,
    texts_in,
    without_halves,
)
from merilo_published.definition import Published, by_parameters, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.base import Score
    from merilo_published.asking import ReadReply

T = TypeVar("T")
Whole = Callable[[Fields, str], int]
"""Reads the whole number in a field: as `whole_in`, or as `strict_integer_in` for structured output."""

SYSTEM: Final = "ragas-0.4"
EMPTY: Final = "an input is empty"
SAMPLING_TEMPERATURE: Final = 0.3
"""Of a request for several samples."""
EARLIER_TEMPERATURE: Final = 1e-8
"""Of a request for one reply in 0.3.0; 0.01 in 0.4.3."""
_WHOLE_WITH_POINT: Final = re.compile(r"\s*([+-]?\d+)\.0*\s*")
_FENCE: Final = re.compile(r"```(?:json)?(.*)", re.DOTALL)
_MAX_TAIL: Final = 500
"""Maximum number of characters to remove from the end of a damaged reply; upstream removes any number."""
_CLOSING: Final = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class RagasV04ReplySchema(Generic[T]):
    """The fields of a reply: how they are described to a judge that has to repair one, and how they are read."""

    described: str
    read: Callable[[Fields, Whole], T]
    likely: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """A statement with the integer that the judge gave it."""

    statement: str
    value: int


Judgements = tuple[Judgement, ...]


def _repair(asker: Asker, schema: RagasV04ReplySchema[T], times: int) -> Recovery[T]:
    """Return the recovery of ragas 0.2 to 0.4: the judge is shown an unreadable reply and its form, and repairs it.

    A repair is a reply too: `{"text": ...}`, whose text is the repaired reply. One that is not of this form is sent to
    repair in its turn, so that texts may be nested. A text that cannot be read is not repaired again.
    """

    def again(reply: Reply, fault: str, number: int) -> Plan[tuple[Reply, Callable[[Reply], T]]]:
        del fault
        likely = schema.likely
        for _ in range(number + 1):
            likely = json.dumps({"text": likely})
        values = {"form": _REPAIRED if number else schema.described, "reply": reply.text}
        return (yield from asker.ask("repair", values, likely=likely)), lambda reply: _unwrapped(schema, reply, number)

    return Recovery(times, again)


def _unwrapped(schema: RagasV04ReplySchema[T], reply: Reply, depth: int) -> T:
    """Return what a repair says: its text is a reply of the form asked for, or `depth` times the repair of one."""
    text = text_in(fields_of(first_json(reply.text)), "text")
    try:
        for _ in range(depth):
            text = text_in(fields_of(whole_json(without_halves(text))), "text")
        return schema.read(fields_of(whole_json(without_halves(text))), whole_in)
    except ValueError as fault:
        raise UnrecoverableFault(f"The repaired reply cannot be read either. {fault}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedMetric(Published):
    """A metric of ragas 0.2 to 0.4 that asks a judge.

    The judge is asked up to three times to repair a reply that cannot be read. The collections re-ask instead:
    `reasks` is how often a structured reply that cannot be read is asked for again, with what was wrong, in the same
    conversation; `none` reads replies as free text, which is repaired. Several replies are sampled at 0.3.
    """

    collected: ClassVar[bool] = False
    """True for the metrics of the collections, which have other rules."""
    repairs: ClassVar[int] = 3
    temperature: ClassVar[float] = 0.01
    """Of a request for one reply."""
    per_request = by_parameters(lambda metric: 1 + (metric.repairs if metric.reasks is None else metric.reasks), 4)

    reasks: int | None = None

    def __post_init__(self) -> None:
        Published.__post_init__(self)
        if not 0 < (beta := getattr(self, "beta", 1.0)) < inf:  # a parameter of two metrics
            raise UsageError(f"Metric {self.name!r} takes a finite beta above 0, got beta={beta}.")

    def asker(self) -> Asker:
        """Return what asks about one sample, each request for one reply at the temperature of this metric."""
        return Asker(SYSTEM, temperature=self.temperature)

    def ask(
        self, asker: Asker, rubric: str, values: Mapping[str, str], schema: RagasV04ReplySchema[T]
    ) -> Plan[ReadReply[T]]:
        """Return what the reply to one request says. Raises AskFailed if there is none, or none that can be read."""
        template = self._template(rubric, schema)
        return (yield from asker.read(template, values, recovery=self._recovery(asker, template, schema)))

    def samples(
        self, asker: Asker, rubric: str, values: Mapping[str, str], schema: RagasV04ReplySchema[T], count: int
    ) -> Plan[tuple[ReadReply[T], ...]]:
        """Return what several replies to one request say; each is repaired separately, in order. Raises AskFailed."""
        template = self._template(rubric, schema)
        several = Asker(SYSTEM, temperature=SAMPLING_TEMPERATURE if count > 1 else self.temperature)
        found: list[ReadReply[T]] = []
        for reply in (yield from several.samples(rubric, values, count, likely=schema.likely)):
            read = yield from read_reply(template, reply, self._recovery(asker, template, schema))
            if isinstance(read, UnreadableReply):
                raise read
            found.append(read)
        return tuple(found)

    def ask_statements(self, asker: Asker, user_input: str, answer: str) -> Plan[ReadReply[tuple[str, ...]]]:
        """Return the statements that an answer to this input makes."""
        return (yield from self.ask(asker, "statements", {"user_input": user_input, "answer": answer}, STATEMENTS))

    def ask_verdicts(self, asker: Asker, statements: Sequence[str], text: str) -> Plan[ReadReply[Judgements]]:
        """Return verdicts on statements, not 0 if the text supports one; as many as the judge returns."""
        return (yield from self.ask(asker, "verdicts", {"text": text, "statements": json_array(statements)}, VERDICTS))

    def _template(self, rubric: str, schema: RagasV04ReplySchema[T]) -> RequestTemplate[T]:
        def read(reply: Reply) -> T:
            if self.reasks is None:
                return schema.read(fields_of(first_json(reply.text)), whole_in)
            return schema.read(object_of(reply.verdict.text), strict_integer_in)

        return RequestTemplate(rubric, schema.likely, read)

    def _recovery(self, asker: Asker, template: RequestTemplate[T], schema: RagasV04ReplySchema[T]) -> Recovery[T]:
        if self.reasks is None:
            return _repair(asker, schema, self.repairs)
        return reasks(asker, template, self.reasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusesEmpty(JudgedMetric):
    """A metric for which the collections have no value if an input is empty, while the classes judge it."""

    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "empty inputs are judged"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        texts = texts_of(sample, self.needed)
        empty = [name for name, text in texts.items() if not (sample.contexts if name == "contexts" else text)]
        if self.collected and empty:
            return Undefined(EMPTY)
        return (yield from self.judged(sample, texts))

    def judged(self, sample: Sample, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        """Return the outcome for a sample; `texts`: see `texts_of`."""
        raise NotImplementedError  # each metric has its own


def f_of_counts(true: int, false: int, missing: int, beta: float) -> float:
    """Return the F measure of these counts; a fraction of nothing is 0."""
    precision = true / (true + false) if true + false else 0.0
    recall = true / (true + missing) if true + missing else 0.0
    return f_measure(precision, recall, beta=beta)


def first_json(text: str) -> object:
    """Return the JSON value that ragas takes from a reply. Raises ReplyFault.

    Where the text has a "```json" fence, what is before it is left out. From the first bracket on, brackets of
    this one kind are counted, also those inside texts, until they balance. Where they never do, the whole text is
    taken, and what it leaves open is closed.
    """
    text = text[max(text.find("```json"), 0) :]
    start = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=-1)
    return whole_json(text if start < 0 else _balanced(text, start))


def whole_json(text: str) -> object:
    """Return the JSON value that a text is, in a fence or not; closes what it leaves open. Raises ReplyFault."""
    try:
        return partial_json(text, quote_is_dropped=False, tail=_MAX_TAIL)
    except ReplyFault:
        fence = _FENCE.search(text)
        if fence is None:
            raise
        return partial_json(fence[1], quote_is_dropped=False, tail=_MAX_TAIL)


def _balanced(text: str, start: int) -> str:
    opening, closing, depth = text[start], _CLOSING[text[start]], 0
    for at in range(start, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if not depth:
            return text[start : at + 1]
    return text


def whole_in(fields: Fields, name: str) -> int:
    """Return the whole number in this field, as pydantic reads one: "1.0" is 1 too. Raises ReplyFault."""
    value = given(fields, name)
    if isinstance(value, str) and (found := _WHOLE_WITH_POINT.fullmatch(value)):
        fields = {name: found[1]}
    return integer_in(fields, name)


# -- the forms of reply -------------------------------------------------------------------------------


def _verdict(fields: Fields, whole: Whole) -> int:
    text_in(fields, "reason")
    return whole(fields, "verdict")


def _judgements(label: str, *, under: str) -> Callable[[Fields, Whole], Judgements]:
    def read(fields: Fields, whole: Whole) -> tuple[Judgement, ...]:
        found: list[Judgement] = []
        for item in items_of(given(fields, under)):
            entry = fields_of(item)
            text_in(entry, "reason")
            found.append(Judgement(text_in(entry, "statement"), whole(entry, label)))
        return tuple(found)

    return read


def _texts(name: str) -> Callable[[Fields, Whole], tuple[str, ...]]:
    def read(fields: Fields, whole: Whole) -> tuple[str, ...]:
        del whole
        return texts_in(fields, name)

    return read


VERDICT: Final = RagasV04ReplySchema(
    '{"reason": text, "verdict": integer}', _verdict, '{"reason": "It does.", "verdict": 1}'
)
VERDICTS: Final = RagasV04ReplySchema(
    '{"statements": [{"statement": text, "reason": text, "verdict": integer}, ...]}',
    _judgements("verdict", under="statements"),
    '{"statements": [{"statement": "A statement.", "reason": "It follows.", "verdict": 1}]}',
)
ATTRIBUTED: Final = RagasV04ReplySchema(
    '{"classifications": [{"statement": text, "reason": text, "attributed": integer}, ...]}',
    _judgements("attributed", under="classifications"),
    '{"classifications": [{"statement": "A sentence.", "reason": "It stands there.", "attributed": 1}]}',
)
STATEMENTS: Final = RagasV04ReplySchema(
    '{"statements": [texts]}', _texts("statements"), '{"statements": ["A statement."]}'
)
CLAIMS: Final = RagasV04ReplySchema('{"claims": [texts]}', _texts("claims"), '{"claims": ["A claim."]}')
ENTITIES: Final = RagasV04ReplySchema('{"entities": [texts]}', _texts("entities"), '{"entities": ["Paris"]}')
_REPAIRED: Final = '{"text": text}'
