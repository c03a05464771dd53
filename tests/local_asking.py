"""Ask a local judge without a run."""

from collections.abc import Sequence
from typing import Any

from merilo.engine.schedule import Batches
from merilo.judges.base import Judge, OutgoingRequest
from merilo.judging.ask import Answer
from merilo.judging.questions import Question


def ask(judge: Judge, question: Question[Any]) -> Answer:
    """The answer to one question."""
    return ask_all(judge, [question])[0]


def ask_all(judge: Judge, questions: Sequence[Question[Any]]) -> list[Answer]:
    """The answers to several questions, sent in one batch."""
    talks = [judge.answer(question) for question in questions]
    steps: list[tuple[OutgoingRequest, ...]] = [()] * len(talks)
    answers: list[list[Answer]] = [[] for _ in talks]
    for place, talk in enumerate(talks):
        try:
            steps[place] = next(talk)
        except StopIteration as stop:
            answers[place] = list(stop.value)
    replies = dict(Batches()([send for step in steps for send in step]))
    at = 0
    for place, (talk, step) in enumerate(zip(talks, steps, strict=True)):
        if step:
            try:
                talk.send(tuple(replies[at + each] for each in range(len(step))))
            except StopIteration as stop:
                answers[place] = list(stop.value)
        at += len(step)
    return [answer for each in answers for answer in each]
