"""Trial of a judge: one small question of each kind that it supports, asked in the same way as in a run."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.engine.answer_store import WorkUnit
from merilo.engine.dispatcher import Dispatcher
from merilo.engine.judge_session import JudgeSession
from merilo.engine.rate_limits import Limits
from merilo.judging.questions import Pack, Question
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Failure
from merilo.providers.base import ReplyPath

if TYPE_CHECKING:
    from merilo.judges.base import Judge
    from merilo.judging.ask import Answer
    from merilo.providers.base import Reply


@dataclass(frozen=True, slots=True)
class JudgeTrial:
    """The answers of a judge to one kind of question."""

    kind: str
    answers: tuple[Answer, ...]
    replies: tuple[Reply | Failure, ...]
    seconds: float

    @property
    def works(self) -> bool:
        """True if every question has a verdict."""
        return not any(isinstance(answer, Failure) for answer in self.answers)

    @property
    def paths(self) -> tuple[str, ...]:
        """The distinct reply paths: json_schema, json_mode, prompted or text."""
        return tuple(dict.fromkeys(reply.path.value for reply in self.replies if not isinstance(reply, Failure)))

    def tokens(self, name: str) -> int | None:
        """Return the sum of `input_tokens` or `output_tokens`; None if a reply does not report it or there is none."""
        found = [getattr(reply.usage, name) for reply in self.replies if not isinstance(reply, Failure)]
        return None if not found or None in found else sum(found)


def try_out(judge: Judge) -> list[JudgeTrial]:
    """Try each kind of question that the judge supports, one after another.

    Raises ProviderDown if no request can work, for example with a wrong key.
    """
    return asyncio.run(_try_all(judge))


def unanswered(judge: Judge) -> list[str]:
    """Return the kinds of question that the judge does not support."""
    return [name for name, kind in KINDS.items() if kind not in judge.answers]


async def _try_all(judge: Judge) -> list[JudgeTrial]:
    trials: list[JudgeTrial] = []
    async with Dispatcher(Limits(concurrency=1)) as dispatcher:
        for kind in KINDS.values():
            if kind in judge.answers:
                pair: tuple[Question[Any], Question[Any]] = kind.trial()
                trials.append(await _try(judge, pair if kind in judge.together else pair[:1], dispatcher))
    return trials


async def _try(judge: Judge, questions: tuple[Question[Any], ...], dispatcher: Dispatcher) -> JudgeTrial:
    asked = questions[0] if len(questions) == 1 else Pack(questions)
    began = time.perf_counter()
    session = JudgeSession(WorkUnit(judge, asked, questions, (b"",) * len(questions)))
    while session.sends is not None:
        session.reply(tuple([await dispatcher.carry(send) for send in session.sends]))
    seconds = time.perf_counter() - began
    sent = [each for each in session.replies if isinstance(each, Failure) or each.path is not ReplyPath.LOCAL]
    return JudgeTrial(questions[0].kind, session.answers, tuple(sent), seconds)
