"""Conversion of questions, answers and conversations to the text stored in a run, and back."""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import accumulate, chain
from json.encoder import encode_basestring
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from merilo.judging.json_types import compact
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Failure, Verdict, later_fields, per_type
from merilo.runs.database import MAX_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.providers.base import Reply
_USUAL: Final = {"role": "judge", "draw": 0, "language": "en"}
"""The defaults of the fields that every question has, which are not stored."""
_RAW: Final = -15
"""Deflate with the largest window, without header and checksum."""
_FREQUENT: Final = rb"""{"statements":[{"text":"","sentence":0},{"text":"],"probability":null}{"at":[0]}
statements
{"statement":"The ","contexts":{"texts":[[1],[2],[3],[4],[5]]},"user_input":{"at":[0]}}
relevance
{"user_input":{"at":[0]},"sentences":{"texts":[[1,0,{"grade":1,"evidence":[0],"reason":"The ","probability":null}
support
{"label":"supported","evidence":[0],"reason":"","probability":null,"tells_contradicted":true,"sentences":[[0,0]]}
[{"texts":["{\"verdicts\": [{\"number\": 1, \"reason\": \"The \", \"label\": \"supported\", \"sentences\": [1, 3]}]}"],
"finish":"stop","path":"json_schema","model":"","usage":{"input_tokens":"""
"""Text that conversations often contain, at its end the most frequent."""
_LEAST: Final = 12
"""Characters below which a text is shorter than its place."""


class CorruptRow(ValueError):
    """A stored row that merilo did not write like this; the message is a phrase that names the problem."""


class Exchange(NamedTuple):
    """The replies and cost of one conversation with a judge."""

    judge: str
    rubric: str
    replies: tuple[Reply | Failure, ...] = ()
    cost_usd: float | None = None
    """Cost in USD; None if the price is unknown, 0.0 if it is free."""


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """A stored question with its answer and the raw replies that the answer is based on."""

    key: bytes
    question: Question[Any]
    answer: Answer
    cached: bool
    judge: str
    rubric: str
    replies: tuple[dict[str, Any], ...]  # Any: replies as they were recorded


@dataclass(frozen=True, slots=True)
class Conversation:
    """A stored conversation with a judge, and all questions asked in it, in order."""

    judge: str
    rubric: str
    replies: tuple[dict[str, Any], ...]  # Any: replies as they were recorded
    asked: tuple[StoredQuestion, ...]
    cached: bool
    """True if the answer came from the cache, so that the judge and the replies are not known here."""


def packed(text: str) -> bytes:
    """Return a text compressed, as stores hold samples and conversations."""
    pack = zlib.compressobj(1, zlib.DEFLATED, _RAW, 8, zlib.Z_DEFAULT_STRATEGY, _FREQUENT)
    return pack.compress(text.encode()) + pack.flush()


def unpacked(data: bytes) -> str:
    """Return the text that `packed` compressed. Raises CorruptRow."""
    unpack = zlib.decompressobj(_RAW, _FREQUENT)
    try:
        text = unpack.decompress(data, MAX_VALUE).decode()
    except (zlib.error, TypeError, UnicodeDecodeError) as error:
        raise CorruptRow(f"a value cannot be read: {error}") from error
    if not unpack.eof:
        raise CorruptRow("a value is incomplete or too long")
    return text


class Line(NamedTuple):
    """A question with its answer, as a conversation holds it."""

    kind: str
    question: str
    answer: str
    """JSON of the verdict or failure."""


def conversation_text(replies: str, asked: Iterable[Line]) -> str:
    """Return a conversation as text: a line with its replies, and three for each question. No JSON has line breaks."""
    return "\n".join([replies, *chain.from_iterable(asked)])


def conversation_from(data: bytes) -> tuple[str, list[Line]]:
    """Return the replies and the questions of a packed conversation. Raises CorruptRow."""
    replies, *lines = unpacked(data).split("\n")
    try:
        return replies, [Line(*each) for each in zip(lines[::3], lines[1::3], lines[2::3], strict=True)]
    except ValueError as error:
        raise CorruptRow("a conversation is incomplete") from error


class SampleTexts:
    """The texts of a stored sample, which the questions about it refer to instead of repeating them."""

    def __init__(self, row: int, record: str) -> None:
        self.row = row
        self.texts = tuple(_texts_in(json.loads(record)))
        self._joined = "\0".join(self.texts)
        self._starts = [*accumulate((len(text) + 1 for text in self.texts), initial=0)]
        self.fields: dict[str | tuple[str, ...], str] = {}
        """JSON of the values of questions that were written before."""

    def place(self, text: str) -> list[int] | None:
        """Return the number of a text, with start and end if this is only a part of it; None if no text contains it."""
        size = len(text)
        at = self._joined.find(text) if size >= _LEAST else -1
        if at < 0:
            return None
        number = bisect_right(self._starts, at) - 1
        start, end = at - self._starts[number], self._starts[number + 1] - self._starts[number] - 1
        # a text with a zero character may be found across two
        if start + size > end:
            return None
        return [number] if size == end else [number, start, start + size]

    def places(self, texts: tuple[str, ...]) -> list[list[int] | str]:
        """Return the place of each text, or the text itself. Parts of one text that follow each other are one place."""
        found: list[list[int] | str] = []
        part, whole = list[int](), ""
        for text in texts:
            # sentences follow each other in their context, so the end of the last one is the place to look
            if part and (at := whole.find(text, part[-1])) >= 0:
                part += (at, at + len(text))
            else:
                place = self.place(text)
                found.append(place or text)
                part = place if place and place[1:] else []
                whole = self.texts[part[0]] if part else ""
        return found

    def at(self, place: Sequence[int] | str) -> list[str]:
        """Return the texts at a place, or the text itself. Raises IndexError or TypeError for a damaged place."""
        if isinstance(place, str):
            return [place]
        text, ends = self.texts[place[0]], place[1:]
        return [text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True)] or [text]


def _texts_in(value: Any) -> list[str]:  # Any: JSON
    """Return all texts of a JSON value, in order."""
    if value.__class__ is str:  # exact types, as JSON has no others: this runs for every sample
        return [value]
    inner = value if value.__class__ is list else value.values() if value.__class__ is dict else ()
    return [text for each in inner for text in ((each,) if each.__class__ is str else _texts_in(each))]


NO_SAMPLE: Final = SampleTexts(0, "{}")
"""For questions that are about no stored sample."""


def question_text(question: Question[Any], sample: SampleTexts) -> str:
    """Return the question as JSON, with places instead of the texts of its sample."""
    parts = _opening(question.role, question.draw, question.language)
    names, values = _own_fields(type(question))
    known = sample.fields if sample.row else {}
    for (name, later), value in zip(names, values(question), strict=False):
        if later and not value:
            continue
        kind: object = value.__class__  # exact types: this runs for every question of a run
        if kind is str or kind is tuple:
            text = known.get(value)
            if text is None:
                found = sample.places(value if kind is tuple else (value,))
                text = known[value] = compact({"texts": found} if kind is tuple else {"text": found[0]})
        else:
            text = compact(value)
        parts += (f'"{name}":{text}',)
    return f"{{{','.join(parts)}}}"


def question_from(kind: str, record: str, sample: SampleTexts) -> Question[Any]:
    """Return the question that `question_text` wrote. Raises CorruptRow."""
    try:
        values: dict[str, Any] = json.loads(record)  # Any: the fields of the question type named by `kind`
        for name, value in values.items():
            if isinstance(value, dict):
                ((form, found),) = cast("dict[str, Any]", value).items()  # Any: a place, a text, or a list of them
                texts = [each for part in (found if form == "texts" else [found]) for each in sample.at(part)]
                values[name] = tuple(texts) if form == "texts" else texts[0]
        question: Question[Any] = KINDS[kind](**values)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise CorruptRow(f"a question cannot be read: {error}") from error
    return question


def answer_text(answer: Answer) -> str:
    """Return the verdict's JSON or the failure's."""
    return compact(answer.to_fields()) if type(answer) is Failure else answer.to_json()


def answer_from(text: str, kind: type[Verdict], *, failed: bool) -> Answer:
    """Return the answer that `answer_text` wrote. Raises CorruptRow."""
    try:
        return Failure.from_fields(json.loads(text)) if failed else kind.from_json(text)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptRow(f"an answer cannot be read: {error}") from error


def replies_text(replies: Sequence[Reply | Failure | None]) -> str:
    """Return raw replies as JSON; null for a parallel request that has no reply yet."""
    return "[" + ",".join(["null" if reply is None else _reply_text(reply) for reply in replies]) + "]"


def tokens_of(replies: Sequence[Reply | Failure]) -> tuple[int | None, int | None]:
    """Return the sums of input and output tokens; None if any number is unknown."""
    read: int | None = 0
    written: int | None = 0
    for reply in replies:
        if type(reply) is not Failure:
            more = reply.usage
            read = None if read is None or more.input_tokens is None else read + more.input_tokens
            written = None if written is None or more.output_tokens is None else written + more.output_tokens
    return read, written


def _reply_text(reply: Reply | Failure) -> str:
    if type(reply) is Failure:
        return compact({"failure": reply.to_fields()})
    read, written = reply.usage.input_tokens, reply.usage.output_tokens
    truncated = f',"truncated":{compact([asdict(each) for each in reply.truncated])}' if reply.truncated else ""
    return (
        f'{{"texts":[{", ".join(map(encode_basestring, reply.texts))}],"finish":"{reply.finish}","path":"{reply.path}",'
        f'"model":{_word(reply.model)},"usage":{{"input_tokens":{"null" if read is None else read},'
        f'"output_tokens":{"null" if written is None else written}}}{truncated}}}'
    )


@lru_cache(maxsize=256)
def _word(text: str) -> str:
    return compact(text)


@lru_cache(maxsize=256)
def _opening(role: str, draw: int, language: str) -> tuple[str, ...]:
    values = {"role": role, "draw": draw, "language": language}
    return tuple(f'"{name}":{compact(value)}' for name, value in values.items() if value != _USUAL[name])


@per_type
def _own_fields(question: type[Any]) -> tuple[list[tuple[str, bool]], attrgetter[tuple[Any, ...]]]:
    """Return the fields, each with True if it is omitted while empty, and what returns their values and one more."""
    names = [field.name for field in fields(question) if field.name not in _USUAL]
    later = later_fields(question)
    return [(name, name in later) for name in names], attrgetter(*names, "draw")


class SavedReplies(NamedTuple):
    """The replies received before a session was interrupted."""

    replies: tuple[Reply | Failure | None, ...]
    """None for a parallel request that had no reply yet."""
    cost_usd: float | None
    """Cost in USD; None if the price is unknown."""


def saved_replies_from(row: tuple[bytes, float | None] | None) -> SavedReplies:
    """Return the partial replies in a row. Raises CorruptRow if there is no row, and ValueError for other content."""
    from merilo.judges.llm import saved_reply

    if row is None:
        raise CorruptRow("the replies of an interrupted conversation are missing")
    replies = json.loads(conversation_from(row[0])[0])
    return SavedReplies(tuple(None if each is None else saved_reply(each) for each in replies), row[1])
