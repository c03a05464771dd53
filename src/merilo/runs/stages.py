"""Answers of the judges of a cascade, read from a run's store; the stored questions carry the roles of these judges.

The rows of the cascade itself hold only its final answers. The judge that gave each answer, and its raw replies, are in
the rows of its judges.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from merilo.judges.cascade import stage_role
from merilo.runs.database import ERRORS, places, read_only
from merilo.runs.records import question_text
from merilo.runs.schema import STORE_SCHEMA
from merilo.runs.store_errors import store_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.runs.records import StoredQuestion
    from merilo.runs.store import Store


@dataclass(frozen=True, slots=True)
class StageAnswer:
    """One question to a judge in one role, and the judge's answer."""

    key: bytes
    kind: str
    question: str
    """The stored text without its role. It identifies the question among those of its kind, whichever judge was
    asked."""
    verdict: str | None
    """The verdict as JSON; None for a failure."""


def answers_in(store: Path, role: str) -> Iterator[StageAnswer]:
    """Yield all committed answers to questions in this role, in the order in which they were answered.

    Raises RunError if the store cannot be read.
    """
    opening = _opening(role)
    statement = "SELECT key, kind, question, verdict FROM answers WHERE substr(question, 1, ?) = ? ORDER BY rowid"
    try:
        with closing(read_only(store, STORE_SCHEMA)) as db:
            for key, kind, question, verdict in db.execute(statement, (len(opening), opening)):
                yield StageAnswer(key, kind, question[len(opening) :], verdict)
    except ERRORS as error:
        raise store_error(store, error) from error


def answered_by(path: Path, store: Store, asked: Sequence[StoredQuestion], judges: int) -> list[StoredQuestion]:
    """Return questions to a cascade of this many judges, each with the replies of the judge that answered it.

    Key, role and answer stay those of the cascade. A question without a matching answer of a judge is returned
    unchanged. Raises RunError if the store cannot be read.
    """
    texts = {
        (
            each.question.kind,
            question_text(replace(each.question, role=stage_role(each.question.role, place)), _nothing),
        ): each
        for each in asked
        for place in range(judges)
    }
    found: dict[bytes, StoredQuestion] = {}
    for kind, text, key in _answered(path, [text for _, text in texts]):
        cascaded, own = texts.get((kind, text)), store.asked(key)
        if cascaded is not None and own is not None and own.answer == cascaded.answer:
            found.setdefault(cascaded.key, replace(own, key=cascaded.key, question=cascaded.question))
    return [found.get(each.key, each) for each in asked]


def given_to(path: Path, store: Store, questions: Sequence[Question[Any]]) -> list[Answer | None]:
    """Return the stored answers to questions that were asked alone, in order; None for one without an answer.

    Raises RunError if the store cannot be read.
    """
    texts = {(each.kind, question_text(each, _nothing)): each for each in questions}
    found: dict[tuple[str, str], Answer] = {}
    for kind, text, key in _answered(path, [text for _, text in texts]):
        conversation = store.conversation(key)
        own = store.asked(key)
        if (kind, text) in texts and own is not None and conversation is not None and len(conversation.asked) == 1:
            found.setdefault((kind, text), own.answer)
    return [found.get((each.kind, question_text(each, _nothing))) for each in questions]


def _opening(role: str) -> str:
    """Return the first characters of the stored text of every question in this role."""
    return f'{{"role":{json.dumps(role, ensure_ascii=False)},'


def _nothing(digest: bytes, text: str | tuple[str, ...]) -> None:
    """Ignore a text, since it is in the store already."""
    del digest, text


def _answered(path: Path, texts: Sequence[str]) -> list[tuple[str, str, bytes]]:
    """Return kind, stored text and key of the answered questions with these texts, in the order of their answers."""
    among = f"question IN ({places(len(texts))})"
    statement = f"SELECT kind, question, key FROM answers WHERE {among} ORDER BY rowid"  # noqa: S608  our own constants
    try:
        with closing(read_only(path, STORE_SCHEMA)) as db:
            return db.execute(statement, texts).fetchall()
    except ERRORS as error:
        raise store_error(path, error) from error
