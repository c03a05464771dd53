"""The neighbour test of a run: an answer must not depend on the other questions of its request.

Judges of decision models answer many questions in one request. At its end, a run asks a few of them again, each alone,
and compares the decisions. These answers are paid for like all others, and are not stored.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from merilo.engine.answer_store import WorkUnit
from merilo.judging.verdicts import DecisionVerdict, Verdict
from merilo.judging.views import Bundle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.engine.answer_store import KnownAnswers
    from merilo.engine.dispatcher import Dispatcher
    from merilo.judges.base import Judge
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Pack, Question

ASKED_ALONE: Final = 8
"""Maximum number of questions that a run asks again."""


class NeighbourTest:
    """Collects questions that shared a request with others, and asks those with the lowest keys again."""

    def __init__(self) -> None:
        self._chosen: dict[bytes, tuple[WorkUnit, Verdict]] = {}

    def add(self, unit: WorkUnit, answers: KnownAnswers) -> None:
        """Add the questions of a finished judge session."""
        for one in each_alone(unit):
            if isinstance(answer := answers[one.key], Verdict):
                self._chosen[one.key] = one, answer
        self._chosen = {key: self._chosen[key] for key in sorted(self._chosen)[:ASKED_ALONE]}

    async def result(self, dispatcher: Dispatcher) -> dict[str, int] | None:
        """Ask the questions again, each alone. Return how many were answered, `asked`, and how many `changed`.

        Return None if none was answered, or if the run has reached a limit.
        """
        if dispatcher.halted:
            return None
        chosen = [*self._chosen.values()]  # sessions that were asked ahead may still finish
        # The run is complete: a limit or a server that fails now ends the test only.
        replies = await asyncio.gather(
            *(answers_of(unit.judge, unit.asked, dispatcher) for unit, _ in chosen), return_exceptions=True
        )
        pairs = [
            (before, reply[0])
            for (_, before), reply in zip(chosen, replies, strict=True)
            if not isinstance(reply, BaseException) and isinstance(reply[0], Verdict)
        ]
        changed = sum(_decision(before) != _decision(now) for before, now in pairs)
        return {"asked": len(pairs), "changed": changed} if pairs else None


def each_alone(unit: WorkUnit) -> Iterator[WorkUnit]:
    """Yield each question of a bundle as a unit about the same view; none if its answers depend on each other, or if it
    has only one question.
    """
    bundle = unit.asked
    if isinstance(bundle, Bundle) and unit.independent and len(unit.keys) > 1:
        for key, question in zip(unit.keys, unit.questions, strict=True):
            yield WorkUnit(unit.judge, Bundle((question,), bundle.view), (question,), (key,))


async def answers_of(judge: Judge, asked: Question[Any] | Pack, dispatcher: Dispatcher) -> tuple[Answer, ...]:
    """Ask a judge and return its answers without storing them.

    Raises CancelledError if a limit is reached before, and ProviderDown.
    """
    conversation = judge.answer(asked)
    try:
        sends = next(conversation)
        while True:
            sends = conversation.send(tuple(await asyncio.gather(*map(dispatcher.carry, sends))))
    except StopIteration as stop:
        answers: tuple[Answer, ...] = stop.value
        return answers


def _decision(verdict: Verdict) -> object:
    return verdict.decision if isinstance(verdict, DecisionVerdict) else verdict.as_label()
