"""Trial of a judge: one small question of each kind that it supports, asked in the same way as in a run."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.engine.answer_store import WorkUnit
from merilo.engine.dispatcher import Dispatcher
from merilo.engine.judge_session import DirectSession
from merilo.engine.rate_limits import Limits
from merilo.judging.kinds.addresses import Addresses
from merilo.judging.kinds.answered import Answered
from merilo.judging.kinds.choice import Choice
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.kinds.entities import Entities
from merilo.judging.kinds.mentions import Mentions
from merilo.judging.kinds.noncommittal import Noncommittal
from merilo.judging.kinds.parts import Parts
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.sentences import Sentences
from merilo.judging.kinds.similarities import Similarities
from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.sufficiency import Sufficiency
from merilo.judging.kinds.support import Support
from merilo.judging.kinds.usefulness import Usefulness
from merilo.judging.questions import Pack, Question
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Failure
from merilo.providers.base import ReplyPath

if TYPE_CHECKING:
    from merilo.judges.base import Judge
    from merilo.judging.ask import Answer
    from merilo.providers.base import Reply

_USER_INPUT = "When was the Eiffel Tower completed?"
_RESPONSE = "The Eiffel Tower was completed in 1889."
_SENTENCES = (
    "The Eiffel Tower is a lattice tower in Paris.",
    "It was completed in 1889 for a world fair.",
    "Several million people visit it every year.",
)
_CONTEXT = " ".join(_SENTENCES)
_OTHER = "The Colosseum is in Rome."

QUESTIONS: tuple[tuple[Question[Any], Question[Any]], ...] = (
    (Relevance(_USER_INPUT, _SENTENCES), Relevance(_USER_INPUT, (_OTHER,))),
    (Usefulness(_USER_INPUT, _RESPONSE, _SENTENCES), Usefulness(_USER_INPUT, _RESPONSE, (_OTHER,))),
    (Statements((_RESPONSE,), _USER_INPUT), Statements((_OTHER,), _USER_INPUT)),
    (Support(_RESPONSE, (_CONTEXT, _OTHER)), Support("The tower is made of stone.", (_CONTEXT, _OTHER))),
    (Sufficiency(_USER_INPUT, (_CONTEXT, _OTHER)), Sufficiency(_USER_INPUT, (_OTHER,))),
    (Addresses(_RESPONSE, _USER_INPUT), Addresses(_OTHER, _USER_INPUT)),
    (Noncommittal(_USER_INPUT, _RESPONSE), Noncommittal(_USER_INPUT, "I do not know.")),
    (Parts(_USER_INPUT), Parts("Good morning.")),
    (
        Answered(_USER_INPUT, (_RESPONSE,), _USER_INPUT),
        Answered("Who built the Eiffel Tower?", (_RESPONSE,), _USER_INPUT),
    ),
    (Entities(_SENTENCES), Entities((_OTHER,))),
    (Mentions("the Eiffel Tower", (_CONTEXT, _OTHER)), Mentions("Berlin", (_CONTEXT, _OTHER))),
    (
        Choice("Is the response brief?", ("yes", "no"), ("", ""), ("response",), (_RESPONSE,)),
        Choice("Is the response brief?", ("yes", "no"), ("", ""), ("response",), (_CONTEXT,)),
    ),
    (
        Completion("en/noncommittal.v1", ("user_input", "response"), (_USER_INPUT, _RESPONSE)),
        Completion("en/noncommittal.v1", ("user_input", "response"), (_USER_INPUT, _RESPONSE), draw=1),
    ),
    (Sentences(_CONTEXT, "pysbd"), Sentences(_OTHER, "pysbd")),
    (Embeddings((_RESPONSE, _OTHER)), Embeddings((_CONTEXT,))),
    (Similarities((_RESPONSE,), (_CONTEXT, _OTHER)), Similarities((_OTHER,), (_CONTEXT,))),
)
"""Two questions of each kind; the second is asked only if the judge supports packs of that kind."""


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
        for pair in QUESTIONS:
            kind = type(pair[0])
            if kind in judge.answers:
                trials.append(await _try(judge, pair if kind in judge.together else pair[:1], dispatcher))
    return trials


async def _try(judge: Judge, questions: tuple[Question[Any], ...], dispatcher: Dispatcher) -> JudgeTrial:
    asked = questions[0] if len(questions) == 1 else Pack(questions)
    began = time.perf_counter()
    session = DirectSession(WorkUnit(judge, asked, questions, (b"",) * len(questions)))
    while session.sends is not None:
        session.reply(tuple([await dispatcher.carry(send) for send in session.sends]))
    seconds = time.perf_counter() - began
    sent = [each for each in session.replies if isinstance(each, Failure) or each.path is not ReplyPath.LOCAL]
    return JudgeTrial(questions[0].kind, session.answers, tuple(sent), seconds)
