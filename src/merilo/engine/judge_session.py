"""Judge sessions: the exchange with one judge about one work unit."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from merilo.engine.budget import UNPAID, own_price
from merilo.judging.digests import digest_of
from merilo.judging.verdicts import Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.engine.answer_store import AnswerStore, KnownAnswers, WorkUnit
    from merilo.engine.budget import Pricer
    from merilo.judges.base import Judge, OutgoingRequest
    from merilo.judging.ask import Answer
    from merilo.providers.base import Reply, Usage
    from merilo.runs.records import SavedReplies

_log = logging.getLogger("merilo")

_UNREAD = frozenset({FailureKind.UNREADABLE, FailureKind.TRUNCATED})
MAX_VERDICT = 2**25
"""Maximum characters of a stored verdict. A store takes no value above 128 MiB, and a character may have 4 bytes."""


class JudgeSession:
    """The exchange with one judge about one work unit."""

    def __init__(self, unit: WorkUnit, answers: AnswerStore, price: Pricer = own_price) -> None:
        """Run the session to its first requests, or to those at which an earlier part of the run was interrupted."""
        self.unit = unit
        self._answers = answers
        self._price = price
        self.sends: tuple[OutgoingRequest, ...] | None = None
        """The requests it waits for; None once it has answered."""
        self._step: list[Reply | Failure | None] = []  # replies to the judge's present step, None for those missing
        self._places: Sequence[int] = ()  # for each of `sends`, the place of its reply in the step
        self._resumed = False  # True if some replies to the present step came in an earlier part of the run
        self._missing = 0
        self.verdicts: tuple[Answer, ...] = ()
        """The answers of the finished session."""
        self._replies: list[Reply | Failure] = []
        self._cost: float | None = 0.0
        self._began = time.monotonic()
        self._conversation = unit.judge.answer(unit.asked)
        self._advance(None)
        if (saved := answers.saved_replies(unit)) is not None:
            self._recall(saved)

    @property
    def request_keys(self) -> tuple[bytes, ...]:
        """A key of each request in `sends`: equal whenever a session about this unit gets to the same request.

        The judge is deterministic, so the number of earlier replies identifies a request.
        """
        first, unit = len(self._replies), self.unit.key
        return tuple(digest_of(unit, b"%d" % (first + place)) for place in self._places)

    @property
    def has_replies(self) -> bool:
        """True if it has received a reply. Its requests then go before those of sessions without one."""
        return bool(self._replies) or self._resumed

    def receive(self, place: int, reply: Reply | Failure) -> bool:
        """Record the reply to one of `sends`. Return True if it was the last one, so that the judge has read them."""
        send = (self.sends or ())[place]
        usage = UNPAID
        if type(reply) is Failure:
            reply = _kept(reply)
        else:
            reply, usage = reply.within(send.request.max_reply_characters), reply.usage
        self._cost = self._added(self._cost, send, usage)
        self._step[self._places[place]] = reply
        self._missing -= 1
        if self._missing:
            return False
        replies = tuple([each for each in self._step if each is not None])
        self._replies += replies
        self._advance(replies)
        return True

    def keep(self, *, commit: bool = True) -> KnownAnswers:
        """Store the answers of the finished session; return the stored answers by key. `commit`: if it is due."""
        seconds = time.monotonic() - self._began
        held = self._answers.keep(self.unit, self.verdicts, self._replies, self._cost, seconds)
        if commit:
            self._answers.commit_if_due()
        return held

    @property
    def unreadable(self) -> str | None:
        """The last reply, if the finished session read no answer in its replies; None otherwise."""
        unread = all(isinstance(each, Failure) and each.kind in _UNREAD for each in self.verdicts)
        last = self._replies[-1] if unread and self._replies else None
        return None if last is None or isinstance(last, Failure) else last.text

    def leave(self) -> None:
        """Store the replies of an interrupted session, so that a later part of the run resumes it."""
        if self.sends is not None:
            seconds = time.monotonic() - self._began
            self._answers.leave(self.unit, [*self._replies, *self._step], self._cost, seconds)

    def _added(self, cost: float | None, send: OutgoingRequest, usage: Usage) -> float | None:
        """Return the cost plus that of one more reply; None if either is unknown."""
        price = self._price(send.provider, usage)
        return None if price is None or cost is None else cost + price

    def _recall(self, saved: SavedReplies) -> None:
        # the judge is deterministic: the stored replies lead it to the step at which it was interrupted
        left = list(saved.replies)
        while self.sends and len(left) >= len(self.sends):
            step, left = left[: len(self.sends)], left[len(self.sends) :]
            came = tuple(reply for reply in step if reply is not None)
            if len(came) < len(step):
                self._step, self._places = step, [place for place, reply in enumerate(step) if reply is None]
                self.sends = tuple(self.sends[place] for place in self._places)
                self._missing, self._resumed = len(self.sends), True
                break
            self._replies.extend(came)
            self._advance(came)
        self._cost = saved.cost_usd

    def _advance(self, replies: tuple[Reply | Failure, ...] | None) -> None:
        try:
            self.sends = next(self._conversation) if replies is None else self._conversation.send(replies)
            while not self.sends:  # a step without requests needs no reply
                self.sends = self._conversation.send(())
            self._missing = len(self.sends)
            self._places, self._step = range(self._missing), [None] * self._missing
        except StopIteration as stop:
            self.sends = None
            self.verdicts = tuple(map(_storable, stop.value))
        except Exception as error:  # noqa: BLE001  a bug in a judge must not end the run
            self.sends = None
            self.verdicts = tuple(_broken(self.unit.judge, error) for _ in self.unit.questions)


def _broken(judge: Judge, error: Exception) -> Failure:
    """Log the traceback of a judge's bug and return it as a failure, so that the run continues."""
    _log.error("the judge %s raised an error", judge.name, exc_info=error)
    return _kept(Failure(FailureKind.BROKEN, f"the judge {judge.name} raised {type(error).__name__}: {error}"))


def _storable(answer: Answer) -> Answer:
    """Return the answer, or a failure if it cannot be stored: too long, or with half a surrogate pair."""
    if type(answer) is Failure:
        return _kept(answer)
    try:
        size = len(answer.to_json())
    except ValueError:
        return Failure(FailureKind.BROKEN, "the verdict contains half a surrogate pair, which cannot be stored")
    if size > MAX_VERDICT:
        return Failure(FailureKind.BROKEN, f"the verdict has {size:,} characters, more than {MAX_VERDICT:,}")
    return answer


def _kept(failure: Failure) -> Failure:
    return replace(failure, message=failure.message.encode("utf-8", "replace").decode())
