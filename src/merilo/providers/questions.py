"""Requests that carry the question object itself, for providers that answer questions instead of texts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.judging.verdicts import Failure
from merilo.providers.base import Message, Request

if TYPE_CHECKING:
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question

_FAILURE: Final = '{"failure":'


@dataclass(frozen=True, slots=True)
class QuestionRequest(Request):
    """A request with the question itself in addition to its text, which is empty if no code reads it."""

    max_reply_characters: ClassVar[int | None] = None
    question: Question[Any] | None = None

    @classmethod
    def of(cls, question: Question[Any]) -> QuestionRequest:
        """Return the request for one question; its message is the question as JSON, for readers of the record."""
        text = json.dumps({"kind": question.kind, **asdict(question)}, ensure_ascii=False)
        return cls(messages=(Message("user", text),), question=question)


def answer_text(answer: Answer) -> str:
    """Return the answer as the text of a reply. Raises ValueError for a verdict with half a surrogate pair."""
    if isinstance(answer, Failure):
        return f"{_FAILURE} {json.dumps(answer.to_fields(), ensure_ascii=False)}}}"
    return answer.to_json()


def answer_in(text: str, question: Question[Any]) -> Answer:
    """Return the answer to the question that `answer_text` wrote."""
    if text.startswith(_FAILURE):
        return Failure.from_fields(json.loads(text)["failure"])
    return type(question).verdict.from_json(text)
