"""Conversations with judges, as the drivers hold them: what is to be sent now, and what came of it.

A judge that asks other judges (a cascade) is held as a plan: what each of them says is looked up, asked and kept as if
a metric had asked.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Protocol, cast

from merilo.engine.budget import UNPAID, own_price
from merilo.errors import UsageError
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from merilo.engine.answers import Answers, Held, Unit
    from merilo.engine.budget import Pricer
    from merilo.judges.base import Judge, Send
    from merilo.judging.ask import Answer, Plan, Step
    from merilo.judging.questions import Pack, Question
    from merilo.providers.base import Usage
    from merilo.runs.store import Heard

_log = logging.getLogger("merilo")


class Conversing(Protocol):
    """One conversation about one unit."""

    unit: Unit
    sends: tuple[Send, ...] | None
    """What it waits for; None once it has answered."""

    def reply(self, replies: tuple[Reply | Failure, ...]) -> None:
        """Hand over what came back for the current sends, in order."""
        ...

    @property
    def begun(self) -> bool:
        """Whether it has heard something, so that it goes before what was not asked yet."""
        ...

    def keep(self, answers: Answers) -> Held:
        """Store the finished conversation; what the run holds now, by key."""
        ...

    def leave(self, answers: Answers, landed: Sequence[Reply | Failure | None]) -> None:
        """Store what it has heard, where it is broken off; a later part of the run goes on from there.

        `landed`: what came back for the current sends, None for what has not.
        """
        ...


def talk_about(unit: Unit, answers: Answers, price: Pricer = own_price) -> Conversing:
    """A conversation about a unit with its judge, run on to what it wants sent first."""
    consult: Callable[[Question[Any] | Pack], Plan[tuple[Answer, ...]]] | None = getattr(unit.judge, "consult", None)
    if consult is not None:
        return Inquiry(unit, consult(unit.asked), answers, price)
    return Talk(unit, price, answers.heard(unit))


class Talk:
    """One conversation with a judge about one unit; `sends` is what it waits for, None once it has answered."""

    def __init__(self, unit: Unit, price: Pricer = own_price, heard: Heard | None = None) -> None:
        """`heard`: what was replied to it before it was broken off."""
        self.unit = unit
        self._price = price
        self.sends: tuple[Send, ...] | None = None
        self.answers: tuple[Answer, ...] = ()
        self.replies: list[Reply | Failure] = []
        self._had: list[Reply | Failure | None] = []  # to this step's sends, when it was broken off
        self._cost: float | None = 0.0
        self._began = time.monotonic()
        self._conversation = unit.judge.answer(unit.asked)
        self._advance(None)
        if heard is not None:
            self._recall(heard)

    @property
    def begun(self) -> bool:
        """See `Conversing`."""
        return bool(self.replies or self._had)

    def reply(self, replies: tuple[Reply | Failure, ...]) -> None:
        """Hand over what came back for the current sends, in order."""
        replies = tuple(_storable_reply(send, reply) for send, reply in zip(self.sends or (), replies, strict=True))
        for send, reply in zip(self.sends or (), replies, strict=True):
            self._cost = self._added(self._cost, send, UNPAID if isinstance(reply, Failure) else reply.usage)
        if self._had:
            coming = iter(replies)
            replies, self._had = tuple(next(coming) if had is None else had for had in self._had), []
        self.replies.extend(replies)
        self._advance(replies)

    def keep(self, answers: Answers) -> Held:
        """Store the finished conversation; what the run holds now, by key."""
        seconds = time.monotonic() - self._began
        return answers.keep(self.unit, self.answers, self.replies, self._cost, seconds)

    def leave(self, answers: Answers, landed: Sequence[Reply | Failure | None]) -> None:
        """See `Conversing`."""
        if self.sends is None:
            return
        cost = self._cost
        landed = [
            None if reply is None else _storable_reply(send, reply)
            for send, reply in zip(self.sends, landed, strict=True)
        ]
        for send, reply in zip(self.sends, landed, strict=True):
            if isinstance(reply, Reply):
                cost = self._added(cost, send, reply.usage)
        coming = iter(landed)
        step = [next(coming) if had is None else had for had in self._had] if self._had else landed
        answers.leave(self.unit, [*self.replies, *step], cost, time.monotonic() - self._began)

    def _added(self, cost: float | None, send: Send, usage: Usage) -> float | None:
        """The cost with that of one more reply; None where either is unknown."""
        price = self._price(send.provider, usage)
        return None if price is None or cost is None else cost + price

    def _recall(self, heard: Heard) -> None:
        told = list(heard.replies)
        while self.sends and len(told) >= len(self.sends):
            step, told = told[: len(self.sends)], told[len(self.sends) :]
            came = tuple(reply for reply in step if reply is not None)
            if len(came) < len(step):
                self._had = step
                self.sends = tuple(send for send, reply in zip(self.sends, step, strict=True) if reply is None)
                break
            self.replies.extend(came)
            self._advance(came)
        self._cost = heard.cost_usd

    def _advance(self, replies: tuple[Reply | Failure, ...] | None) -> None:
        try:
            self.sends = next(self._conversation) if replies is None else self._conversation.send(replies)
            while not self.sends:
                self.sends = self._conversation.send(())
        except StopIteration as stop:
            self.sends = None
            self.answers = tuple(map(_storable, stop.value))
        except Exception as error:  # noqa: BLE001  a bug in a judge must not end the run
            self.sends = None
            self.answers = tuple(_broken(self.unit.judge, error) for _ in self.unit.questions)


class Inquiry:
    """A conversation with a judge that asks others: `plan` yields steps of questions to them, as a metric's does."""

    def __init__(self, unit: Unit, plan: Plan[tuple[Answer, ...]], answers: Answers, price: Pricer) -> None:
        self.unit = unit
        self.sends: tuple[Send, ...] | None = None
        self._plan = plan
        self._known = answers
        self._price = price
        self._began = time.monotonic()
        self._answers: tuple[Answer, ...] = ()
        self._units: list[Unit] = []
        self._held: Held = {}
        self._talks: list[Conversing] = []
        self._advance(None)

    def reply(self, replies: tuple[Reply | Failure, ...]) -> None:
        """See `Conversing`: each conversation gets its own, and what one has brought is kept at once."""
        coming = iter(replies)
        for talk in self._talks:
            talk.reply(tuple(next(coming) for _ in talk.sends or ()))
            if talk.sends is None:
                self._held |= talk.keep(self._known)
        self._talks = [talk for talk in self._talks if talk.sends is not None]
        if self._talks:
            self.sends = tuple(send for talk in self._talks for send in talk.sends or ())
        else:
            self._advance(self._told())

    def keep(self, answers: Answers) -> Held:
        """See `Conversing`; what was sent and paid stands with the judges that were asked."""
        return answers.keep(self.unit, self._answers, (), 0.0, time.monotonic() - self._began)

    @property
    def begun(self) -> bool:
        """See `Conversing`."""
        return any(talk.begun for talk in self._talks)

    def leave(self, answers: Answers, landed: Sequence[Reply | Failure | None]) -> None:
        """See `Conversing`."""
        coming = iter(landed)
        for talk in self._talks:
            talk.leave(answers, tuple(next(coming) for _ in talk.sends or ()))

    def _advance(self, told: tuple[Answer, ...] | None) -> None:
        """Run the plan on until something has to be sent, or it has answered."""
        try:
            while True:
                step = next(self._plan) if told is None else self._plan.send(told)
                self._look_up(step)
                if self._talks:
                    self.sends = tuple(send for talk in self._talks for send in talk.sends or ())
                    return
                told = self._told()
        except StopIteration as stop:
            self.sends = None
            self._answers = tuple(map(_storable, cast("tuple[Answer, ...]", stop.value)))  # what such a plan returns
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001  as in a talk
            self.sends = None
            self._answers = tuple(_broken(self.unit.judge, error) for _ in self.unit.questions)

    def _look_up(self, step: Step) -> None:
        """What is known of a step's questions, and conversations about the rest, equal questions once."""
        self._units, self._held, self._talks = self._known.units(step), {}, []
        asked: set[bytes] = set()
        for known, missing in self._known.known_all(self._units):
            self._held |= known
            rest = None if missing is None else missing.without(asked)
            if rest is None:
                continue
            asked.update(rest.keys)
            talk = talk_about(rest, self._known, self._price)
            if talk.sends is None:
                self._held |= talk.keep(self._known)
            else:
                self._talks.append(talk)

    def _told(self) -> tuple[Answer, ...]:
        return tuple(self._held[key] for unit in self._units for key in unit.keys)


def _broken(judge: Judge, error: Exception) -> Failure:
    """A bug in a judge must not end the run; the traceback goes to the log."""
    _log.error("the judge %s broke", judge.name, exc_info=error)
    return _kept(Failure(FailureKind.BROKEN, f"the judge {judge.name} raised {type(error).__name__}: {error}"))


def _storable(answer: Answer) -> Answer:
    """The answer, or a failure where it holds text that no file can hold (half a surrogate pair)."""
    if isinstance(answer, Failure):
        return _kept(answer)
    try:
        answer.to_json()
    except ValueError:
        return Failure(FailureKind.BROKEN, "the verdict holds half a character, which cannot be kept")
    return answer


def _storable_reply(send: Send, reply: Reply | Failure) -> Reply | Failure:
    """The reply as far as it is read; a failure without half surrogate pairs."""
    if isinstance(reply, Failure):
        return _kept(reply)
    return reply.within(send.request.max_reply_characters)


def _kept(failure: Failure) -> Failure:
    return Failure(failure.kind, failure.message.encode("utf-8", "replace").decode())
