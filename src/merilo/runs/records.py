"""Conversion of questions, answers and conversations to the text stored in a run, and back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from json.encoder import encode_basestring
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from merilo.judging.digests import TEXTS, TUPLES, digest_text, digest_texts
from merilo.judging.json_types import compact
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Failure, later_fields, per_type

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict
    from merilo.providers.base import Reply
_WORDS = frozenset({"role", "language"})  # short texts that are stored in the record itself


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


def question_text(
    question: Question[Any], keep: Callable[[bytes, str | tuple[str, ...]], None], known: Container[bytes] = ()
) -> str:
    """Return the question as JSON with a digest for each text; those not known are passed to `keep` with the text."""
    text = _opening(question.role, question.draw, question.language)
    names, values = _own_fields(type(question))
    for (name, later), value in zip(names, values(question), strict=False):
        if later and not value:
            continue
        kind: object = value.__class__  # exact types: this runs for every question of a run
        if kind is str:
            digest = TEXTS[value]
            text += f',"{name}":{{"text":"{digest.hex()}"}}'
        elif kind is tuple:
            digest = TUPLES[value]  # the only tuples that questions have are of texts
            text += f',"{name}":{{"texts":"{digest.hex()}"}}'
        else:
            text += f',"{name}":{compact(value)}'
            continue
        if digest not in known:
            keep(digest, value)
    return text + "}"


def question_from(kind: str, record: str, text_of: Callable[[bytes], str]) -> Question[Any]:
    """Return the question that `question_text` wrote; `text_of` returns the stored text of a digest.

    Raises CorruptRow.
    """
    try:
        values: dict[str, Any] = json.loads(record)  # Any: the fields of the question type named by `kind`
        for name, value in values.items():
            if isinstance(value, dict):
                ((form, digest),) = cast("dict[str, str]", value).items()
                values[name] = _text_from(bytes.fromhex(digest), form, text_of)
        question: Question[Any] = KINDS[kind](**values)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptRow(f"a question cannot be read: {error}") from error
    return question


def _text_from(digest: bytes, form: str, text_of: Callable[[bytes], str]) -> str | tuple[str, ...]:
    text = text_of(digest)
    if form == "text":
        found: str | tuple[str, ...] = text
        right = digest_text(text) == digest
    else:
        found = tuple(json.loads(text))
        right = digest_texts(found) == digest
    if not right:
        raise CorruptRow("a text does not match its digest")
    return found


def answer_texts(answer: Answer) -> tuple[str | None, str | None]:
    """Return the verdict's JSON or the failure's, with None for the other."""
    if type(answer) is Failure:
        return None, json.dumps(answer.to_fields(), ensure_ascii=False)
    return answer.to_json(), None


def answer_from(verdict: str | None, failure: str | None, kind: type[Verdict]) -> Answer:
    """Return the answer that `answer_texts` wrote. Raises CorruptRow."""
    try:
        return Failure.from_fields(json.loads(failure or "")) if verdict is None else kind.from_json(verdict)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptRow(f"an answer cannot be read: {error}") from error


def replies_text(replies: Sequence[Reply | Failure | None]) -> str:
    """Return raw replies as JSON; null for a parallel request that has no reply yet."""
    return "[" + ",".join(["null" if reply is None else _reply_text(reply) for reply in replies]) + "]"


NOT_SENT = "null"
"""The `replies` of conversations without any request, which share one row."""


def replies_from(text: str) -> tuple[dict[str, Any], ...] | None:  # Any: replies as they were recorded
    """Return the replies that `replies_text` wrote, as JSON objects; None for NOT_SENT. Raises CorruptRow."""
    try:
        found = json.loads(text)
        return None if found is None else tuple(found)
    except (TypeError, ValueError) as error:
        raise CorruptRow(f"replies cannot be read: {error}") from error


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
        f'{{"texts":{texts_text(reply.texts)},"finish":"{reply.finish}","path":"{reply.path}",'
        f'"model":{_word(reply.model)},"usage":{{"input_tokens":{"null" if read is None else read},'
        f'"output_tokens":{"null" if written is None else written}}}{truncated}}}'
    )


def texts_text(texts: tuple[str, ...]) -> str:
    """Return texts as JSON."""
    return f"[{', '.join(map(encode_basestring, texts))}]"


@lru_cache(maxsize=256)
def _word(text: str) -> str:
    return compact(text)


@lru_cache(maxsize=256)
def _opening(role: str, draw: int, language: str) -> str:
    return f'{{"role":{compact(role)},"draw":{draw},"language":{compact(language)}'


@per_type
def _own_fields(question: type[Any]) -> tuple[list[tuple[str, bool]], attrgetter[tuple[Any, ...]]]:
    """Return the fields, each with True if it is omitted while empty, and what returns their values and one more."""
    names = [field.name for field in fields(question) if field.name not in _WORDS | {"draw"}]
    later = later_fields(question)
    return [(name, name in later) for name in names], attrgetter(*names, "draw")


class SavedReplies(NamedTuple):
    """The replies received before a session was interrupted."""

    replies: tuple[Reply | Failure | None, ...]
    """None for a parallel request that had no reply yet."""
    cost_usd: float | None
    """Cost in USD; None if the price is unknown."""


def saved_replies_from(row: tuple[str, float | None] | None) -> SavedReplies:
    """Return the partial replies in a row. Raises CorruptRow if there is no row, and ValueError for other content."""
    from merilo.judges.recorded_replies import saved_reply

    if row is None:
        raise CorruptRow("the replies of an interrupted conversation are missing")
    return SavedReplies(tuple(None if each is None else saved_reply(each) for each in json.loads(row[0])), row[1])
