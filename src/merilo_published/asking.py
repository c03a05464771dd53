"""The protocol by which published definitions ask: a filled rubric out, a free text back, and what is read from it.

A definition gives a `RequestTemplate`: the rubric, a likely reply, and the function that reads a reply. The policies in
which the published systems differ are chosen by the caller:

- fail: `Asker.read` raises AskFailed for a lost request or an unreadable reply;
- drop: `Asker.try_read` returns that error as a value, for systems that score or leave out a lost reply;
- repair or re-ask: a `Recovery` sends up to `times` more requests after an unreadable reply;
- vote: `Asker.samples` asks for several replies to one request, which `read_reply` reads one by one;
- panel: `role` says which judge a request goes to, and `together` sends the requests side by side.

`reasks` is the recovery of the package instructor, through which ragas' collections send every request in JSON mode,
with its default `max_retries=3`. Up to instructor 1.15.1 that is 3 requests in all, from 1.15.3 on 4. A reply that is
not JSON, or that pydantic refuses in its strict mode, is sent back as the assistant's turn, followed by a turn of the
user that says what was wrong.

The first part reads JSON somewhere in a text, and its fields. Each system has its own rules, in its own module.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Self, TypeVar

from merilo.judging.ask import AskFailed, Plan, ask, ask_each, attempt, draws, together
from merilo.judging.json_types import as_list, as_object
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.metrics.base import Evidence, EvidenceTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from merilo.judging.kinds.measured import MatrixVerdict, Similarities


Fields = Mapping[str, object]
"""The fields of a JSON object."""

_FENCE: Final = re.compile(r"```(?:json)?(.*?)```", re.DOTALL | re.IGNORECASE)
_WHOLE_NUMBER: Final = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")
_LARGEST: Final = 10**15
"""Of a whole number that can be counted with; what is larger is not a rating, vote or index."""


_HALVES: Final = re.compile(
    r"(?P<kept>\\(?:[^u]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))|\\u[dD][89a-fA-F][0-9a-fA-F]{2}",
    re.DOTALL,
)
"""An escape that is whole or of another kind, which is `kept`; or half of a pair."""


class ReplyFault(ValueError):
    """A reply that does not have the form asked for; the message is a whole sentence."""


class Listed(str):
    """A list as the text that a prompt shows. `items` are its elements, for the prompts of other packages."""

    __slots__ = ("items",)
    items: tuple[object, ...]

    @classmethod
    def of(cls, text: str, items: Sequence[object]) -> Self:
        """Return a text with its items."""
        made = cls(text)
        made.items = tuple(items)
        return made


def json_array(texts: Sequence[str]) -> str:
    """Return texts as a JSON array, so that their limits stay visible."""
    return json.dumps(list(texts), ensure_ascii=False)


def numbered(texts: Sequence[str]) -> str:
    """Return the texts one per line, numbered from 1."""
    return "\n".join(f"{place}. {text}" for place, text in enumerate(texts, start=1))


def without_halves(text: str) -> str:
    """Replace each JSON escape that is half of a character, which no request or file can hold, by U+FFFD."""
    if "\\u" not in text:
        return text
    return _HALVES.sub(lambda found: found["kept"] or "\N{REPLACEMENT CHARACTER}", text)


def json_in(text: str) -> object:
    """Return the first JSON object or array in a text, inside code fences or not. Raises ReplyFault."""
    fenced = _FENCE.search(text)
    for part in (fenced[1].strip(), text) if fenced else (text,):
        for start in (at for at, sign in enumerate(part) if sign in "{["):
            try:
                found: object = _DECODER.raw_decode(part, start)[0]
            except (ValueError, RecursionError):
                break  # what the first bracket opens decides; a later one would be a part of it
            return found
    raise ReplyFault("The reply holds no JSON object or array.")


class UnmatchedBrackets(ReplyFault):
    """A bracket closes what is not open."""


def partial_json(text: str, *, quote_is_dropped: bool, tries: int | None = None, tail: int | None = None) -> object:
    """Return the JSON value of a text, as langchain reads it: what is open is closed, and what spoils it is dropped.

    The value is that of the longest beginning that is JSON once its open brackets are closed. `quote_is_dropped`: the
    quote that ends an open string goes with the first characters dropped; otherwise each beginning gets it. `tries`:
    the maximum number of beginnings; `tail`: the maximum number of characters dropped. Raises ReplyFault, and
    UnmatchedBrackets.
    """
    text = text.strip(" \n\r\t`")
    try:
        return _loaded(text)
    except ValueError:
        quote, brackets = _missing_end(text)
    text, closing = (text + quote, brackets) if quote_is_dropped else (text, quote + brackets)
    end, least = len(text), 0 if tail is None else len(text) - tail
    while end > max(0, least) and tries != 0:
        try:
            return _loaded(text[:end] + closing)
        except json.JSONDecodeError as error:
            # no beginning that keeps the faulty character can be JSON, and white space at its end changes nothing
            end = len(text[: min(end - 1, error.pos)].rstrip())
        except ValueError:
            break
        tries = None if tries is None else tries - 1
    raise ReplyFault("The reply holds no JSON that can be read.")


def _loaded(text: str) -> object:
    try:
        value: object = json.loads(text, strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _missing_end(text: str) -> tuple[str, str]:
    """Return the quote that ends an open string, and the brackets that close a text. Raises UnmatchedBrackets."""
    expected: list[str] = []
    inside = escaped = False
    for sign in text:
        if inside:
            inside = escaped or sign != '"'
            escaped = sign == "\\" and not escaped
        elif sign == '"':
            inside, escaped = True, False
        elif sign in "{[":
            expected.append("}" if sign == "{" else "]")
        elif sign in "}]" and (not expected or expected.pop() != sign):
            raise UnmatchedBrackets("The reply holds JSON whose brackets do not match.")
    return '"' * inside, "".join(reversed(expected))


def object_in(text: str) -> Fields:
    """Return the JSON object that a text holds. Raises ReplyFault."""
    return fields_of(json_in(text))


def fields_of(value: object) -> Fields:
    """Return a value as a JSON object. Raises ReplyFault."""
    fields = as_object(value)
    if fields is None:
        raise ReplyFault(f"The reply holds {_shown(value)} where an object was asked for.")
    return fields


def items_of(value: object) -> list[object]:
    """Return a value as a JSON array. Raises ReplyFault."""
    items = as_list(value)
    if items is None:
        raise ReplyFault(f"The reply holds {_shown(value)} where a list was asked for.")
    return items


def given(fields: Fields, name: str) -> object:
    """Return the field with this name. Raises ReplyFault if there is none."""
    if name not in fields:
        raise ReplyFault(f'The reply has no "{name}".')
    return fields[name]


def text_in(fields: Fields, name: str) -> str:
    """Return the text in this field. Raises ReplyFault."""
    value = given(fields, name)
    if not isinstance(value, str):
        raise ReplyFault(f'The reply gives {_shown(value)} as "{name}" where a text was asked for.')
    return value


def texts_in(fields: Fields, name: str) -> tuple[str, ...]:
    """Return the list of texts in this field. Raises ReplyFault."""
    items = items_of(given(fields, name))
    if not all(isinstance(item, str) for item in items):
        raise ReplyFault(f'The reply gives something else than texts in "{name}".')
    return tuple(str(item) for item in items)


def integer_in(fields: Fields, name: str) -> int:
    """Return the whole number in this field: a number without a fraction, true or false, or digits (0 to 9) as text.

    What pydantic takes for an `int` field when it is not strict, up to 10^15 either way. Raises ReplyFault.
    """
    value = given(fields, name)
    whole = (
        isinstance(value, (bool, int))
        or (isinstance(value, float) and value.is_integer())
        or (isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value) is not None)
    )
    if whole and isinstance(value, (int, float, str)):
        number = int(value)
        if abs(number) <= _LARGEST:
            return number
        raise ReplyFault(f'The reply gives a number as "{name}" that is too large to count with.')
    raise ReplyFault(f'The reply gives {_shown(value)} as "{name}" where a whole number was asked for.')


def _shown(value: object) -> str:
    try:
        shown = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "something nested too deeply"
    return shown if len(shown) <= 60 else f"{shown[:60]}..."


def no_constant(name: str) -> object:
    """Refuse a constant that Python's decoder reads beyond JSON, such as NaN. Raises ReplyFault."""
    raise ReplyFault(f"The reply holds {name}, which is not a JSON value.")


_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=no_constant)


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_NO_TEXT: Final = "(no text)"
"""In place of a blank reply in a re-ask: some servers refuse a turn without text."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as free text, with the question that it answers."""

    question: Completion
    verdict: CompletionVerdict

    @property
    def text(self) -> str:
        """The reply; an escape of JSON that is half of a character is U+FFFD, since no request or file can hold it."""
        return without_halves(self.verdict.text)

    def unreadable(self, what: str) -> UnreadableReply:
        """Return the error for a reply that cannot be read, to raise if the published system has no number either.

        `what`: a sentence, such as "The reply holds no JSON.".
        """
        return UnreadableReply(self, what)

    def evidence(self, about: EvidenceTarget, index: int, value: float | None = None, text: str = "") -> Evidence:
        """Return this reply as evidence."""
        return Evidence(about, index, self.verdict, text=text, value=value)


class UnreadableReply(AskFailed):
    """A reply that cannot be read: raised, or returned to a caller that drops it or scores it."""

    value: Final = None

    def __init__(self, reply: Reply, what: str) -> None:
        super().__init__(reply.question, Failure(FailureKind.UNREADABLE, what))
        self.reply = reply

    def or_raise(self) -> NoReturn:
        """Raise this error. See `ReadReply.or_raise`."""
        raise self


@dataclass(frozen=True, slots=True)
class ReadReply(Generic[T_co]):
    """A reply, or the repair of one, and the value read from it."""

    reply: Reply
    value: T_co

    def or_raise(self) -> T_co:
        """Return the value; an `UnreadableReply` in its place raises itself."""
        return self.value

    def evidence(self, about: EvidenceTarget, index: int, value: float | None = None, text: str = "") -> Evidence:
        """Return this reply as evidence."""
        return self.reply.evidence(about, index, value, text)

    @property
    def role(self) -> str:
        """The judge that replied."""
        return self.reply.question.role


@dataclass(frozen=True, slots=True)
class RequestTemplate(Generic[T_co]):
    """A rubric, and how the replies to it are read."""

    rubric: str
    likely: str
    """A reply of the likely form, so that a dry run completes."""
    read: Callable[[Reply], T_co]
    """Raises ReplyFault or another ValueError for an unreadable reply."""
    shape: str = ""
    """The JSON asked for, in words, for a request that repairs a reply."""
    schema: str = ""
    """The text of a JSON Schema that the provider is asked to enforce; empty for free text."""


@dataclass(frozen=True, slots=True)
class Recovery(Generic[T]):
    """The requests that follow an unreadable reply."""

    times: int
    """The maximum number of requests."""
    again: Callable[[Reply, str, int], Plan[tuple[Reply, Callable[[Reply], T]]]]
    """Sends request `number`, from 0, after a fault in a reply; returns the next reply and how to read it."""


class UnrecoverableFault(ReplyFault):
    """A fault after which the published system sends no further request."""


def read_reply(
    template: RequestTemplate[T], reply: Reply, recovery: Recovery[T] | None = None
) -> Plan[ReadReply[T] | UnreadableReply]:
    """Return what a reply, or one that follows it, says; the last unreadable reply if no reply can be read.

    Raises AskFailed when a request of the recovery is lost.
    """
    read, number = template.read, 0
    while True:
        try:
            return ReadReply(reply, read(reply))
        except ValueError as error:
            fault = error
        if recovery is None or number == recovery.times or isinstance(fault, UnrecoverableFault):
            return reply.unreadable(str(fault))
        following: tuple[Reply, Callable[[Reply], T]] = yield from recovery.again(reply, str(fault), number)
        reply, read = following
        number += 1


@dataclass(slots=True)
class Asker:
    """Asks the rubrics of one published system about one sample; each plan makes its own.

    Rubrics are in `rubrics/<language>/published/<system>/<rubric>.v1.md` and are filled with the named texts.
    A request that this plan has sent before is sent as the next draw, since the published system repeats it too.
    """

    system: str
    language: str = "en"
    temperature: float | None = None
    """Sent before the judge's own; None leaves it to the judge."""
    _asked: Counter[Completion] = field(default_factory=Counter[Completion])

    def question(
        self, rubric: str, values: Mapping[str, str], *, likely: str, role: str = "judge", schema: str = ""
    ) -> Completion:
        """Return the question, at the next draw that this plan has not asked yet."""
        question = Completion(
            f"{self.language}/published/{self.system}/{rubric}.v1",
            tuple(values),
            tuple(values.values()),
            self.temperature,
            likely=likely,
            role=role,
            language=self.language,
            schema=schema,
        )
        return self.at_next_draw(question)

    def ask(self, rubric: str, values: Mapping[str, str], *, likely: str) -> Plan[Reply]:
        """Return the reply to one request, unread. Raises AskFailed when there is none."""
        question = self.question(rubric, values, likely=likely)
        return Reply(question, (yield from ask(question)))

    def read(
        self, template: RequestTemplate[T], values: Mapping[str, str], *, recovery: Recovery[T] | None = None
    ) -> Plan[ReadReply[T]]:
        """Return a reply and what was read from it. Raises AskFailed when there is none, or none that can be read."""
        found = yield from self.try_read(template, values, recovery=recovery)
        if isinstance(found, AskFailed):
            raise found
        return found

    def read_each(
        self, template: RequestTemplate[T], asked: Iterable[Mapping[str, str]]
    ) -> Plan[tuple[ReadReply[T], ...]]:
        """Return the replies to requests sent side by side, and what was read from each.

        Raises AskFailed for the first lost request, otherwise for the first unreadable reply.
        """
        replies = yield from together([self.ask(template.rubric, values, likely=template.likely) for values in asked])
        found: list[ReadReply[T]] = []
        for reply in replies:
            read = yield from read_reply(template, reply)
            found.append(ReadReply(reply, read.or_raise()))
        return tuple(found)

    def try_read(
        self,
        template: RequestTemplate[T],
        values: Mapping[str, str],
        *,
        role: str = "judge",
        recovery: Recovery[T] | None = None,
    ) -> Plan[ReadReply[T] | AskFailed]:
        """Return a reply and what was read from it, or the error that `read` would raise."""
        question = self.question(template.rubric, values, likely=template.likely, role=role, schema=template.schema)
        answer = yield from attempt(question)
        if isinstance(answer, Failure):
            return AskFailed(question, answer)
        return (yield from read_reply(template, Reply(question, answer), recovery))

    def samples(self, rubric: str, values: Mapping[str, str], count: int, *, likely: str) -> Plan[tuple[Reply, ...]]:
        """Return several replies to one request, in sampling order. Raises AskFailed for the first that is missing."""
        question = self.question(rubric, values, likely=likely)
        self._asked[replace(question, draw=0)] += count - 1
        answers = yield from draws(question, count)
        replies: list[Reply] = []
        for draw, answer in enumerate(answers, start=question.draw):
            asked = replace(question, draw=draw)
            if isinstance(answer, Failure):
                raise AskFailed(asked, answer)
            replies.append(Reply(asked, answer))
        return tuple(replies)

    def at_next_draw(self, question: Completion) -> Completion:
        """Return a question at the next draw that this plan has not asked yet."""
        draw = self._asked[question]
        self._asked[question] += 1
        return replace(question, draw=draw)


def on_statements(verdict: Verdict, judged: Iterable[tuple[float | None, str]]) -> tuple[Evidence, ...]:
    """Return a verdict as evidence on each statement, given as value and text; the index is its place."""
    return tuple(
        Evidence(EvidenceTarget.STATEMENT, at, verdict, text, value) for at, (value, text) in enumerate(judged)
    )


def evidence_of(
    about: EvidenceTarget, replies: Iterable[Reply | ReadReply[object]], values: Iterable[float]
) -> tuple[Evidence, ...]:
    """Return each reply as evidence with its value; the index is its place."""
    pairs = enumerate(zip(replies, values, strict=True))
    return tuple(reply.evidence(about, index, float(value)) for index, (reply, value) in pairs)


REASKS: Final = 2
"""Re-asks after an unreadable reply by instructor up to 1.15.1; 3 from 1.15.3 on."""


def reasks(asker: Asker, template: RequestTemplate[T], times: int) -> Recovery[T]:
    """Return the recovery of instructor, which sends back a reply and what was wrong with it, as two more turns."""

    def again(reply: Reply, fault: str, number: int) -> Plan[tuple[Reply, Callable[[Reply], T]]]:
        del number
        correction = f"{fault} Correct it, and reply with the whole JSON object only."
        earlier = (*reply.question.earlier, reply.verdict.text.strip() or _NO_TEXT, correction)
        question = asker.at_next_draw(replace(reply.question, draw=0, earlier=earlier))
        return Reply(question, (yield from ask(question))), template.read

    return Recovery(times, again)


def object_of(text: str) -> Fields:
    """Return the JSON object from the first `{` to the last `}`, or the whole text. Raises ReplyFault.

    As pydantic reads JSON: no control characters in texts, no comma too many, no half of a character.
    """
    start, end = text.find("{"), text.rfind("}")
    part = text[start : end + 1] if start >= 0 and end >= 0 else text
    try:
        value: object = json.loads(part)
    except (ValueError, RecursionError):
        raise ReplyFault("The reply is not one valid JSON object.") from None
    if without_halves(part) != part:
        raise ReplyFault("The reply holds half of a character.")
    return fields_of(value)


def strict_integer_in(fields: Fields, name: str) -> int:
    """Return the JSON integer in this field: no text, no number with a point, no truth value. Raises ReplyFault."""
    value = given(fields, name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ReplyFault(f'The reply gives something else than a JSON integer as "{name}".')
    if abs(value) > _LARGEST:
        raise ReplyFault(f'The reply gives a number as "{name}" that is too large to count with.')
    return value


# -- similarities, as cross-encoders and classifiers give them

_ROUNDING: Final = 1e-6
_MAX_PAIRS: Final = 1_000_000
"""Maximum pairs of texts in one question. Two replies of thousands of lines have tens of millions."""


def ask_similarities(
    questions: Iterable[Similarities],
) -> Plan[list[tuple[list[list[float]], MatrixVerdict]]]:
    """Return the similarities for each question, each in [0, 1], one row for each left text; and their verdict.

    Raises AskFailed if there are none, for more than a million pairs, or if a number is outside 0 to 1: a cosine or a
    logit is not a probability.
    """
    asked = tuple(questions)
    for each in asked:
        if len(each.left) * len(each.right) > _MAX_PAIRS:
            what = f"The replies list too many texts to compare: {len(each.left):,} and {len(each.right):,}."
            raise AskFailed(each, Failure(FailureKind.UNREADABLE, what))
    matrices = yield from ask_each(asked)
    found: list[tuple[list[list[float]], MatrixVerdict]] = []
    for question, matrix in zip(asked, matrices, strict=True):
        rows = [matrix.row(index) for index in range(matrix.rows)]
        for number in (number for row in rows for number in row):
            if not -_ROUNDING <= number <= 1 + _ROUNDING:
                what = f"The model for similarities gave {number:g}, where a number from 0 to 1 was asked for."
                raise AskFailed(question, Failure(FailureKind.UNREADABLE, what))
        found.append(([[min(1.0, max(0.0, number)) for number in row] for row in rows], matrix))
    return found
