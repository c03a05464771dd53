"""The requests of ragas 0.1: JSON, repaired once if unreadable, and several replies that vote."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self, TypeVar

from merilo.judging.ask import ask
from merilo.judging.json_types import as_object
from merilo.judging.kinds.sentences import Sentences
from merilo_published.asking import (
    Asker,
    ReadReply,
    Recovery,
    ReplyFault,
    RequestTemplate,
    UnmatchedBrackets,
    UnreadableReply,
    fields_of,
    given,
    items_of,
    on_statements,
    partial_json,
    read_reply,
)
from merilo_published.definition import JudgesBlank, majority

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.judging.ask import Plan
    from merilo.metrics.base import Evidence
    from merilo_published.asking import Fields, Reply

# The readers of ragas 0.1: JSON, in code fences or truncated, into fields that are coerced if possible.
#
# It reads through a lenient JSON parser and checks by pydantic 1, so a verdict may be `1`, `"1"`, `true` or `1.7`.

_FENCE: Final = "```"
_ROOT: Final = "__root__"
_MAX_TRIES: Final = 100
"""Maximum number of characters to remove from the end of a damaged reply; common damage takes fewer than ten."""


@dataclass(frozen=True, slots=True)
class JudgedStatement:
    """A statement as the judge repeats it, with its verdict: 0 is no, any other number yes."""

    text: str
    value: int


def json_value(text: str) -> object:
    """Return the JSON value of a reply; None if its brackets do not match. Raises ReplyFault if there is none.

    A reply is JSON from its first character, or from a code fence on. What was cut off is closed, and text
    behind the value is left out; but brackets in such a text spoil it.
    """
    whole = text.strip()
    fence = whole.find(_FENCE)
    inside = whole[fence + len(_FENCE) :].removeprefix("json") if fence >= 0 else ""
    for part in (whole, inside):
        try:
            return partial_json(part, quote_is_dropped=True, tries=_MAX_TRIES)
        except UnmatchedBrackets:
            return None
        except ReplyFault:
            continue
    raise ReplyFault("The reply holds no JSON where it begins or in a code fence.")


def read_statements(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the statements of each sentence. Raises ReplyFault."""
    found: list[tuple[str, ...]] = []
    for item in _items(text):
        fields = fields_of(item)
        _integer(fields, "sentence_index")
        found.append(_texts(fields, "simpler_statements"))
    return tuple(found)


def read_judged(key: str) -> Callable[[str], tuple[JudgedStatement, ...]]:
    """Return a reader of a list of statements with verdicts under this key; it raises ReplyFault."""

    def read(text: str) -> tuple[JudgedStatement, ...]:
        found: list[JudgedStatement] = []
        for item in _items(text):
            fields = fields_of(item)
            _text(fields, "reason")
            found.append(JudgedStatement(_text(fields, "statement"), _integer(fields, key)))
        return tuple(found)

    return read


def read_verdict(text: str) -> int:
    """Return the one verdict of a reply, a number that a float can hold. Raises ReplyFault."""
    fields = fields_of(json_value(text))
    _text(fields, "reason")
    number = _integer(fields, "verdict")
    try:
        float(number)
    except OverflowError:
        raise ReplyFault("The reply gives a verdict that is too large for a number.") from None
    return number


def read_generated(text: str) -> tuple[str, bool]:
    """Return the generated question, and whether the answer is noncommittal. Raises ReplyFault."""
    fields = fields_of(json_value(text))
    return _text(fields, "question"), _integer(fields, "noncommittal") != 0


def read_sorted_statements(text: str) -> tuple[int, ...]:
    """Return the numbers of statements in both texts, in the response and in the reference alone. Raises ReplyFault."""
    fields = fields_of(json_value(text))
    counts: list[int] = []
    for name in ("TP", "FP", "FN"):
        items = items_of(given(fields, name))
        if any(as_object(item) is None for item in items):
            raise ReplyFault(f'The reply gives something else than objects in "{name}".')
        counts.append(len(items))
    return tuple(counts)


def read_texts(key: str) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of the list of texts under this key; it raises ReplyFault."""
    return lambda text: _texts(fields_of(json_value(text)), key)


def _items(text: str) -> list[object]:
    value = json_value(text)
    fields = as_object(value)
    return items_of(fields[_ROOT] if fields is not None and fields.keys() == {_ROOT} else value)


def _texts(fields: Fields, name: str) -> tuple[str, ...]:
    return tuple(_as_text(item, name) for item in items_of(given(fields, name)))


def _text(fields: Fields, name: str) -> str:
    return _as_text(given(fields, name), name)


def _as_text(value: object, name: str) -> str:
    """Return a text, or a number as Python writes it. Raises ReplyFault."""
    if isinstance(value, str | int | float):
        return str(value)
    raise ReplyFault(f'The reply gives no text in "{name}".')


def _integer(fields: Fields, name: str) -> int:
    """Return the field as Python's int reads it, without a fraction. Raises ReplyFault."""
    value = given(fields, name)
    if isinstance(value, str | int | float):
        try:
            return int(value)
        except (ValueError, OverflowError):
            pass
    raise ReplyFault(f'The reply gives no whole number in "{name}".')


T = TypeVar("T")

SYSTEM: Final = "ragas-0.1"
"""The folder of the rubrics; the versions ask alike."""
SPLITTER: Final = "pysbd"

_STEADY: Final = 1e-8
_SEVERAL: Final = 0.3
_REPAIR: Final = "repair"


MaybeRead = ReadReply[T] | UnreadableReply
"""A reply or its repair, or the repair that cannot be read either."""


def json_template(rubric: str, shape: str, likely: str, read: Callable[[str], T]) -> RequestTemplate[T]:
    """Return a request for JSON. `shape`: the JSON in words, for the request that repairs a reply."""
    return RequestTemplate(rubric, likely, lambda reply: read(reply.text), shape)


@dataclass(frozen=True, slots=True)
class Ballot:
    """The verdicts on a list of statements, by the vote of all replies that could be read."""

    items: tuple[JudgedStatement, ...]
    reply: Reply
    """The first reply that could be read; the texts are its."""
    flags: tuple[str, ...] = ()

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The verdict on each statement, 1 for any number but 0."""
        return on_statements(self.reply.verdict, ((float(item.value != 0), item.text) for item in self.items))

    def or_raise(self) -> Self:
        """Return the ballot; an `UnreadableReply` in its place raises itself."""
        return self


@dataclass(slots=True)
class JsonAsker:
    """Asks for JSON about one sample; one for each plan.

    A reply that cannot be read is sent back once with what was asked. One reply is asked for at the
    temperature 1e-8, several at 0.3.
    """

    _one: Asker = field(default_factory=lambda: Asker(SYSTEM, temperature=_STEADY))
    _several: Asker = field(default_factory=lambda: Asker(SYSTEM, temperature=_SEVERAL))

    def ask(self, template: RequestTemplate[T], values: Mapping[str, str]) -> Plan[MaybeRead[T]]:
        """Return one reply. Raises AskFailed if there is none."""
        (read,) = yield from self.samples(template, values, 1)
        return read

    def samples(
        self, template: RequestTemplate[T], values: Mapping[str, str], count: int
    ) -> Plan[tuple[MaybeRead[T], ...]]:
        """Return several replies to one request, in sampling order, repaired one after another. Raises AskFailed."""
        asker = self._one if count == 1 else self._several
        replies = yield from asker.samples(template.rubric, values, count, likely=template.likely)
        read: tuple[MaybeRead[T], ...] = ()
        for reply in replies:
            read = (*read, (yield from read_reply(template, reply, _repair(self._one, template))))
        return read


def _repair(asker: Asker, template: RequestTemplate[T]) -> Recovery[T]:
    """Return the recovery of ragas 0.1: an unreadable reply is sent back once, with what was asked."""

    def again(reply: Reply, fault: str, number: int) -> Plan[tuple[Reply, Callable[[Reply], T]]]:
        del fault, number
        asked = zip(reply.question.names, reply.question.values, strict=True)
        request = "\n\n".join(f"{name}:\n{text}" for name, text in asked)
        values = {"form": template.shape, "request": request, "completion": reply.text}
        return (yield from asker.ask(_REPAIR, values, likely=template.likely)), template.read

    return Recovery(1, again)


@dataclass(frozen=True, slots=True, kw_only=True)
class RagasV01(JudgesBlank):
    """A metric of ragas 0.1, whose unreadable replies are repaired once.

    Undefined: a reply cannot be read, nor can its repair (Failed, where ragas 0.1.9 stops the run and 0.1.22 has
        NaN)
    Use: To understand, or to compare with, numbers of ragas 0.1.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Voting(RagasV01):
    """A metric of ragas 0.1 that can ask for several replies to one request.

    - `reproducibility`: for how many replies; they vote. As ragas' setter does, below 1 is taken as 1 and an even
      number as the next odd one, so that no vote ties.
    """

    reproducibility: int = 1

    @property
    def replies(self) -> int:
        """The number of replies to ask for."""
        return max(1, self.reproducibility | 1)


STATEMENTS: Final = json_template(
    "statements",
    'A list with one object for each sentence: {"sentence_index": its number, "simpler_statements": [texts]}.',
    '[{"sentence_index": 0, "simpler_statements": ["A statement."]}]',
    read_statements,
)
SUPPORT: Final = json_template(
    "support",
    'A list with one object for each statement: {"statement": text, "reason": text, "verdict": 0 or 1}.',
    '[{"statement": "A statement.", "reason": "It is said there.", "verdict": 1}]',
    read_judged("verdict"),
)


def statements_of(asker: JsonAsker, question: str, text: str) -> Plan[MaybeRead[tuple[tuple[str, ...], ...]]]:
    """Return the statements of a text; asks Sentences, then one request that numbers the sentences.

    Only sentences that end with "." are shown, so none of a language that has other full stops. Raises AskFailed.
    """
    pieces = (yield from ask(Sentences(text, SPLITTER))).texts
    kept = [piece for piece in pieces if piece.strip().endswith(".")]
    numbered = "\n".join(f"{number}:{piece}" for number, piece in enumerate(kept))
    return (yield from asker.ask(STATEMENTS, {"user_input": question, "text": text, "sentences": numbered}))


def elected(read: Sequence[MaybeRead[tuple[JudgedStatement, ...]]]) -> Ballot | UnreadableReply:
    """Return the vote of the readable replies, place by place; the first reply if none is readable.

    Ties go to the verdict seen first; where the replies differ in length the first one decides alone.
    """
    votes = [(one.reply, one.value) for one in read if isinstance(one, ReadReply)]
    if not votes and isinstance(read[0], UnreadableReply):
        return read[0]
    lost = len(read) - len(votes)
    flags = (f"{lost} of {len(read)} replies could not be read and were left out of the vote",) if lost else ()
    reply, first = votes[0]
    if len({len(items) for _, items in votes}) > 1:
        return Ballot(first, reply, (*flags, "the replies differ in length, so the first one decided alone"))
    places = zip(*(items for _, items in votes), strict=True)
    agreed = tuple(replace(place[0], value=majority([item.value for item in place])) for place in places)
    return Ballot(agreed, reply, flags)
