"""What the judges of a cascade said in a run: rows of its store whose questions carry their roles.

A cascade's own rows hold its answers alone; who gave them, and the raw replies, stand with its judges.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from merilo.judges.cascade import stage_role
from merilo.runs.database import ERRORS, places, read_only
from merilo.runs.records import question_text
from merilo.runs.telling import told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.runs.records import Asked
    from merilo.runs.store import Store


@dataclass(frozen=True, slots=True)
class Said:
    """One question to a judge in one role, and what it said."""

    key: bytes
    kind: str
    question: str
    """What identifies the question among those of its kind, whoever was asked."""
    verdict: str | None
    """As JSON; None where there is a failure."""


def said_in(store: Path, role: str) -> Iterator[Said]:
    """Everything that was asked in this role, in the order in which it was answered; only what is committed is seen.

    Raises RunError where the store cannot be read.
    """
    opening = _opening(role)
    statement = "SELECT key, kind, question, verdict FROM answers WHERE substr(question, 1, ?) = ? ORDER BY rowid"
    try:
        with closing(read_only(store)) as db:
            for key, kind, question, verdict in db.execute(statement, (len(opening), opening)):
                yield Said(key, kind, question[len(opening) :], verdict)
    except ERRORS as error:
        raise told(store, error) from error


def answered_by(path: Path, store: Store, asked: Sequence[Asked], judges: int) -> list[Asked]:
    """Questions to a cascade of so many judges, each as its judge was asked that gave the answer.

    Key, role and answer stay those of the cascade. One that no judge of it is found for stays as it is. Raises
    RunError where the store cannot be read.
    """
    texts = {
        (
            each.question.kind,
            question_text(replace(each.question, role=stage_role(each.question.role, place)), _nothing),
        ): each
        for each in asked
        for place in range(judges)
    }
    found: dict[bytes, Asked] = {}
    among = f"question IN ({places(len(texts))})"
    statement = f"SELECT kind, question, key FROM answers WHERE {among} ORDER BY rowid"  # noqa: S608  our own constants
    try:
        with closing(read_only(path)) as db:
            rows = db.execute(statement, [text for _, text in texts]).fetchall()
    except ERRORS as error:
        raise told(path, error) from error
    for kind, text, key in rows:
        cascaded, own = texts.get((kind, text)), store.asked(key)
        if cascaded is not None and own is not None and own.answer == cascaded.answer:
            found.setdefault(cascaded.key, replace(own, key=cascaded.key, question=cascaded.question))
    return [found.get(each.key, each) for each in asked]


def given_to(path: Path, store: Store, questions: Sequence[Question[Any]]) -> list[Answer | None]:
    """Return the stored answers to questions that were asked alone, in order; None for one without an answer.

    Raises RunError if the store cannot be read.
    """
    texts = {(each.kind, question_text(each, _nothing)): each for each in questions}
    among = f"question IN ({places(len(texts))})"
    statement = f"SELECT kind, question, key FROM answers WHERE {among} ORDER BY rowid"  # noqa: S608  our own constants
    try:
        with closing(read_only(path)) as db:
            rows = db.execute(statement, [text for _, text in texts]).fetchall()
    except ERRORS as error:
        raise told(path, error) from error
    found: dict[tuple[str, str], Answer] = {}
    for kind, text, key in rows:
        conversation = store.conversation(key)
        own = store.asked(key)
        if (kind, text) in texts and own is not None and conversation is not None and len(conversation.asked) == 1:
            found.setdefault((kind, text), own.answer)
    return [found.get((each.kind, question_text(each, _nothing))) for each in questions]


def _opening(role: str) -> str:
    """Return how the stored text of a question to this role begins."""
    return f'{{"role":{json.dumps(role, ensure_ascii=False)},'


def _nothing(digest: bytes, text: str | tuple[str, ...]) -> None:
    """The texts are in the store."""
    del digest, text
