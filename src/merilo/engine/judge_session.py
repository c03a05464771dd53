"""Judge sessions as the drivers see them: the requests to send now, and the answers at the end.

A judge that asks other judges (a cascade) has a delegating session: its questions to the other judges are looked up,
asked and stored like those of a metric.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Protocol, cast

from merilo.engine.budget import UNPAID, own_price
from merilo.errors import UsageError
from merilo.judging.digests import digest_of
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from merilo.engine.answer_store import AnswerStore, KnownAnswers, WorkUnit
    from merilo.engine.budget import Pricer
    from merilo.judges.base import Judge, OutgoingRequest
    from merilo.judging.ask import Answer, Plan, Step
    from merilo.judging.questions import Pack, Question
    from merilo.providers.base import Usage
    from merilo.runs.store import SavedReplies

_log = logging.getLogger("merilo")


class JudgeSession(Protocol):
    """A judge session: the exchange with one judge about one work unit."""

    unit: WorkUnit
    sends: tuple[OutgoingRequest, ...] | None
    """The requests it waits for; None once it has answered."""

    def reply(self, replies: tuple[Reply | Failure, ...]) -> None:
        """Pass the replies to the current requests to the judge, in order."""
        ...

    @property
    def request_keys(self) -> tuple[bytes, ...]:
        """A key of each request in `sends`: equal whenever a session about this unit gets to the same request."""
        ...

    @property
    def has_replies(self) -> bool:
        """True if it has received a reply. Its requests then go before those of sessions without one."""
        ...

    def keep(self, answers: AnswerStore) -> KnownAnswers:
        """Store the answers of the finished session; return the stored answers by key."""
        ...

    def leave(self, answers: AnswerStore, on_reply: Sequence[Reply | Failure | None]) -> None:
        """Store the replies of an interrupted session, so that a later part of the run resumes it.

        `on_reply`: the replies to the current requests, None for each that is missing.
        """
        ...


def open_session(unit: WorkUnit, answers: AnswerStore, price: Pricer = own_price) -> JudgeSession:
    """Open a judge session for a unit and run it to its first requests."""
    consult: Callable[[Question[Any] | Pack], Plan[tuple[Answer, ...]]] | None = getattr(unit.judge, "consult", None)
    if consult is not None:
        return DelegatingSession(unit, consult(unit.asked), answers, price)
    return DirectSession(unit, price, answers.saved_replies(unit))


class DirectSession:
    """A session with a judge that sends its own requests."""

    def __init__(self, unit: WorkUnit, price: Pricer = own_price, saved: SavedReplies | None = None) -> None:
        """`saved`: the replies received before the session was interrupted in an earlier part of the run."""
        self.unit = unit
        self._price = price
        self.sends: tuple[OutgoingRequest, ...] | None = None
        self.answers: tuple[Answer, ...] = ()
        self.replies: list[Reply | Failure] = []
        self._had: list[Reply | Failure | None] = []  # replies to this step's requests from an interrupted session
        self._cost: float | None = 0.0
        self._began = time.monotonic()
        self._conversation = unit.judge.answer(unit.asked)
        self._advance(None)
        if saved is not None:
            self._recall(saved)

    @property
    def request_keys(self) -> tuple[bytes, ...]:
        """See `JudgeSession`. The judge is deterministic, so the number of earlier replies identifies a request."""
        first, unit = len(self.replies), self.unit.key
        had = self._had or [None for _ in self.sends or ()]
        return tuple(digest_of(unit, b"%d" % (first + place)) for place, each in enumerate(had) if each is None)

    @property
    def has_replies(self) -> bool:
        """See `JudgeSession`."""
        return bool(self.replies or self._had)

    def reply(self, replies: tuple[Reply | Failure, ...]) -> None:
        """Pass the replies to the current requests to the judge, in order."""
        replies = tuple(_storable_reply(send, reply) for send, reply in zip(self.sends or (), replies, strict=True))
        for send, reply in zip(self.sends or (), replies, strict=True):
            self._cost = self._added(self._cost, send, UNPAID if isinstance(reply, Failure) else reply.usage)
        if self._had:
            coming = iter(replies)
            replies, self._had = tuple(next(coming) if had is None else had for had in self._had), []
        self.replies.extend(replies)
        self._advance(replies)

    def keep(self, answers: AnswerStore) -> KnownAnswers:
        """Store the answers of the finished session; return the stored answers by key."""
        seconds = time.monotonic() - self._began
        return answers.keep(self.unit, self.answers, self.replies, self._cost, seconds)

    def leave(self, answers: AnswerStore, on_reply: Sequence[Reply | Failure | None]) -> None:
        """See `JudgeSession`."""
        if self.sends is None:
            return
        cost = self._cost
        on_reply = [
            None if reply is None else _storable_reply(send, reply)
            for send, reply in zip(self.sends, on_reply, strict=True)
        ]
        for send, reply in zip(self.sends, on_reply, strict=True):
            if isinstance(reply, Reply):
                cost = self._added(cost, send, reply.usage)
        coming = iter(on_reply)
        step = [next(coming) if had is None else had for had in self._had] if self._had else on_reply
        answers.leave(self.unit, [*self.replies, *step], cost, time.monotonic() - self._began)

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
                self._had = step
                self.sends = tuple(send for send, reply in zip(self.sends, step, strict=True) if reply is None)
                break
            self.replies.extend(came)
            self._advance(came)
        self._cost = saved.cost_usd

    def _advance(self, replies: tuple[Reply | Failure, ...] | None) -> None:
        try:
            self.sends = next(self._conversation) if replies is None else self._conversation.send(replies)
            while not self.sends:  # a step without requests needs no reply
                self.sends = self._conversation.send(())
        except StopIteration as stop:
            self.sends = None
            self.answers = tuple(map(_storable, stop.value))
        except Exception as error:  # noqa: BLE001  a bug in a judge must not end the run
            self.sends = None
            self.answers = tuple(_broken(self.unit.judge, error) for _ in self.unit.questions)


class DelegatingSession:
    """A session with a judge that asks other judges. `plan` yields steps of questions to them, like a metric's plan."""

    def __init__(self, unit: WorkUnit, plan: Plan[tuple[Answer, ...]], answers: AnswerStore, price: Pricer) -> None:
        self.unit = unit
        self.sends: tuple[OutgoingRequest, ...] | None = None
        self._plan = plan
        self._known = answers
        self._price = price
        self._began = time.monotonic()
        self._answers: tuple[Answer, ...] = ()
        self._units: list[WorkUnit] = []
        self._held: KnownAnswers = {}
        self._sessions: list[JudgeSession] = []
        self._advance(None)

    def reply(self, replies: tuple[Reply | Failure, ...]) -> None:
        """Pass each inner session its replies. The answers of an inner session are stored as soon as it finishes."""
        coming = iter(replies)
        for session in self._sessions:
            session.reply(tuple(next(coming) for _ in session.sends or ()))
            if session.sends is None:
                self._held |= session.keep(self._known)
        self._sessions = [session for session in self._sessions if session.sends is not None]
        if self._sessions:
            self.sends = tuple(send for session in self._sessions for send in session.sends or ())
        else:
            self._advance(self._step_answers())

    def keep(self, answers: AnswerStore) -> KnownAnswers:
        """See `JudgeSession`. The replies and their cost are stored with the judges that were asked, not here."""
        return answers.keep(self.unit, self._answers, (), 0.0, time.monotonic() - self._began)

    @property
    def request_keys(self) -> tuple[bytes, ...]:
        """See `JudgeSession`."""
        return tuple(key for session in self._sessions for key in session.request_keys)

    @property
    def has_replies(self) -> bool:
        """See `JudgeSession`."""
        return any(session.has_replies for session in self._sessions)

    def leave(self, answers: AnswerStore, on_reply: Sequence[Reply | Failure | None]) -> None:
        """See `JudgeSession`."""
        coming = iter(on_reply)
        for session in self._sessions:
            session.leave(answers, tuple(next(coming) for _ in session.sends or ()))

    def _advance(self, answers: tuple[Answer, ...] | None) -> None:
        """Advance the plan until a request has to be sent or it has answered."""
        try:
            while True:
                step = next(self._plan) if answers is None else self._plan.send(answers)
                self._look_up(step)
                if self._sessions:
                    self.sends = tuple(send for session in self._sessions for send in session.sends or ())
                    return
                answers = self._step_answers()
        except StopIteration as stop:
            self.sends = None
            self._answers = tuple(map(_storable, cast("tuple[Answer, ...]", stop.value)))  # what such a plan returns
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001  as in a direct session
            self.sends = None
            self._answers = tuple(_broken(self.unit.judge, error) for _ in self.unit.questions)

    def _look_up(self, step: Step) -> None:
        """Look up the answers to a step's questions, and open sessions for the rest, equal questions once."""
        self._units, self._held, self._sessions = self._known.units(step), {}, []
        asked: set[bytes] = set()
        for known, missing in self._known.known_all(self._units):
            self._held |= known
            rest = None if missing is None else missing.without(asked)
            if rest is None:
                continue
            asked.update(rest.keys)
            session = open_session(rest, self._known, self._price)
            if session.sends is None:
                self._held |= session.keep(self._known)
            else:
                self._sessions.append(session)

    def _step_answers(self) -> tuple[Answer, ...]:
        return tuple(self._held[key] for unit in self._units for key in unit.keys)


def _broken(judge: Judge, error: Exception) -> Failure:
    """Log the traceback of a judge's bug and return it as a failure, so that the run continues."""
    _log.error("the judge %s raised an error", judge.name, exc_info=error)
    return _kept(Failure(FailureKind.BROKEN, f"the judge {judge.name} raised {type(error).__name__}: {error}"))


def _storable(answer: Answer) -> Answer:
    """Return the answer, or a failure if it contains text that cannot be encoded (half a surrogate pair)."""
    if isinstance(answer, Failure):
        return _kept(answer)
    try:
        answer.to_json()
    except ValueError:
        return Failure(FailureKind.BROKEN, "the verdict contains half a surrogate pair, which cannot be stored")
    return answer


def _storable_reply(send: OutgoingRequest, reply: Reply | Failure) -> Reply | Failure:
    """Return the reply truncated to the length that judges read; or the failure, without half surrogate pairs."""
    if isinstance(reply, Failure):
        return _kept(reply)
    return reply.within(send.request.max_reply_characters)


def _kept(failure: Failure) -> Failure:
    return Failure(failure.kind, failure.message.encode("utf-8", "replace").decode())
