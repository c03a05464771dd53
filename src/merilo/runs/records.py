"""Questions, answers and conversations as the text that a store holds, and back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from merilo.judging.digests import digest_text, digest_texts
from merilo.judging.questions import KINDS, Question, later_fields
from merilo.judging.untyped import compact
from merilo.judging.verdicts import Failure, Verdict
from merilo.runs.database import seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from merilo.judging.ask import Answer
    from merilo.providers.base import Reply

_WORDS = frozenset({"role", "language"})  # short texts that stand in the record itself


class Damaged(ValueError):
    """A stored row that is not what we wrote; the message says what is wrong with it, as a phrase."""


class Exchange(NamedTuple):
    """What was sent and received to get some answers: one conversation with a judge."""

    judge: str
    rubric: str
    replies: tuple[Reply | Failure, ...] = ()
    cost_usd: float | None = None
    """None when the price is unknown; 0.0 when it is free."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as stored, with its answer and the raw replies behind it."""

    key: bytes
    question: Question[Any]
    answer: Answer
    cached: bool
    judge: str
    rubric: str
    replies: tuple[dict[str, Any], ...]  # Any: replies as they were recorded


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with a judge as stored, and all that was asked in it, in its order."""

    judge: str
    rubric: str
    replies: tuple[dict[str, Any], ...]  # Any: replies as they were recorded
    asked: tuple[Asked, ...]
    cached: bool
    """The answer was taken from the cache: who was asked, and how, is not known here."""


def question_text(question: Question[Any], keep: Callable[[bytes, str | tuple[str, ...]], None]) -> str:
    """The question as JSON in which each text is its digest; `keep` is told of every digest and what it stands for."""
    pieces = [_opening(question.role, question.draw, question.language)]
    later = later_fields(type(question))
    for name in _own_fields(type(question)):
        value = getattr(question, name)
        if name in later and not value:
            continue
        if isinstance(value, str):
            digest = digest_text(value)
            keep(digest, value)
            pieces.append(f',"{name}":{{"text":"{digest.hex()}"}}')
        elif isinstance(value, tuple):
            texts = cast("tuple[str, ...]", value)  # the only tuples that questions have
            digest = digest_texts(texts)
            keep(digest, texts)
            pieces.append(f',"{name}":{{"texts":"{digest.hex()}"}}')
        else:
            pieces.append(f',"{name}":{compact(value)}')
    pieces.append("}")
    return "".join(pieces)


def question_from(kind: str, record: str, text_of: Callable[[bytes], str]) -> Question[Any]:
    """The question that `question_text` wrote; `text_of` gives the stored text for a digest. Raises Damaged."""
    try:
        values: dict[str, Any] = json.loads(record)  # Any: the fields of the question type named by `kind`
        for name, value in values.items():
            if isinstance(value, dict):
                ((form, digest),) = cast("dict[str, str]", value).items()
                values[name] = _text_from(bytes.fromhex(digest), form, text_of)
        question: Question[Any] = KINDS[kind](**values)
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"a question cannot be read: {error}") from error
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
        raise Damaged("a text is not the one that was asked about")
    return found


def answer_texts(answer: Answer) -> tuple[str | None, str | None]:
    """The verdict's JSON or the failure's, None for the other."""
    if isinstance(answer, Failure):
        return None, json.dumps(answer.to_fields(), ensure_ascii=False)
    return answer.to_json(), None


def answer_from(
    key: bytes, verdict: str | None, failure: str | None, sealed: int | None, kind: type[Verdict]
) -> Answer:
    """The answer that `answer_texts` wrote; `sealed` is its seal, None in a store that has none. Raises Damaged."""
    text, failed = (failure or "", True) if verdict is None else (verdict, False)
    if sealed is not None and seal(key, text, failure=failed) != sealed:
        raise Damaged("an answer does not match its seal")
    try:
        if not failed:
            return kind.from_json(text)
        return Failure.from_fields(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Damaged(f"an answer cannot be read: {error}") from error


def replies_text(replies: Sequence[Reply | Failure | None]) -> str:
    """Raw replies as JSON; null for one that has not come, of requests side by side."""
    return "[" + ",".join("null" if reply is None else _reply_text(reply) for reply in replies) + "]"


NOT_SENT = "null"
"""Stands for the replies of conversations in which nothing was sent, which share one row."""


def replies_from(text: str) -> tuple[dict[str, Any], ...] | None:  # Any: replies as they were recorded
    """The replies that `replies_text` wrote, as JSON objects; None for NOT_SENT. Raises Damaged."""
    try:
        found = json.loads(text)
        return None if found is None else tuple(found)
    except (TypeError, ValueError) as error:
        raise Damaged(f"replies cannot be read: {error}") from error


def total(numbers: Iterator[int | None]) -> int | None:
    """The sum; None where a number is unknown."""
    found = 0
    for number in numbers:
        if number is None:
            return None
        found += number
    return found


def _reply_text(reply: Reply | Failure) -> str:
    if isinstance(reply, Failure):
        return compact({"failure": reply.to_fields()})
    tokens_in, tokens_out = reply.usage.input_tokens, reply.usage.output_tokens
    return (
        f'{{"texts":{texts_text(reply.texts)},"finish":"{reply.finish.value}","path":"{reply.path.value}",'
        f'"model":{_word(reply.model)},"usage":{{"input_tokens":{_number(tokens_in)},'
        f'"output_tokens":{_number(tokens_out)}}}{_truncated_text(reply)}}}'
    )


def _truncated_text(reply: Reply) -> str:
    """The field of a reply that says which of its texts are not whole; empty if all are."""
    return f',"truncated":{compact([asdict(each) for each in reply.truncated])}' if reply.truncated else ""


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)


def texts_text(texts: tuple[str, ...]) -> str:
    """Texts as JSON."""
    return f"[{', '.join(map(encode_basestring, texts))}]"


@lru_cache(maxsize=256)
def _word(text: str) -> str:
    return compact(text)


@lru_cache(maxsize=256)
def _opening(role: str, draw: int, language: str) -> str:
    return f'{{"role":{compact(role)},"draw":{draw},"language":{compact(language)}'


_FIELDS: dict[type, tuple[str, ...]] = {}


def _own_fields(question: type[Question[Any]]) -> tuple[str, ...]:
    found = _FIELDS.get(question)
    if found is None:
        names = (field.name for field in fields(question))
        found = _FIELDS[question] = tuple(name for name in names if name not in _WORDS | {"draw"})
    return found
