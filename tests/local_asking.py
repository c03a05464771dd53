"""Ask a local judge without a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.engine.rounds import Batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.base import Judge
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question


def ask(judge: Judge, question: Question[Any]) -> Answer:
    """The answer to one question."""
    return ask_all(judge, [question])[0]


def ask_all(judge: Judge, questions: Sequence[Question[Any]]) -> list[Answer]:
    """The answers to several questions, sent in one batch."""
    talks = [judge.answer(question) for question in questions]
    steps = [next(talk) for talk in talks]
    replies = dict(Batches()([send for step in steps for send in step]))
    at, answers = 0, list[Any]()
    for talk, step in zip(talks, steps, strict=True):
        try:
            talk.send(tuple(replies[at + place] for place in range(len(step))))
        except StopIteration as stop:
            answers += stop.value
        at += len(step)
    return answers
