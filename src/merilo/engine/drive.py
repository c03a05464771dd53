"""Three ways to run the same plans and judges: under asyncio, in rounds, or blocking.

A driver differs only in how it waits. What was asked before, how questions are packed and what is kept is
the business of `Answers`; how a request travels that of a carrier.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.errors import UsageError
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from merilo.engine.answers import Answers, Held, Unit
    from merilo.engine.carry import Carrier
    from merilo.engine.walk import Walk
    from merilo.judges.base import Send
    from merilo.judging.ask import Answer
    from merilo.providers.base import Reply

    Sender = Callable[[Send], Reply | Failure]
    BatchSender = Callable[[Sequence[Send]], Sequence[Reply | Failure]]

_log = logging.getLogger("merilo")


class Talk:
    """One conversation with a judge about one unit; `sends` is what it waits for, None once it has answered."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.sends: tuple[Send, ...] | None = None
        self.answers: tuple[Answer, ...] = ()
        self.replies: list[Reply | Failure] = []
        self._cost: float | None = 0.0
        self._began = time.monotonic()
        self._conversation = unit.judge.answer(unit.asked)
        self._advance(None)

    def reply(self, replies: tuple[Reply | Failure, ...]) -> None:
        """Hand over what came back for the current sends, in order."""
        replies = tuple(_kept(reply) if isinstance(reply, Failure) else reply for reply in replies)
        for send, reply in zip(self.sends or (), replies, strict=True):
            price = send.provider.price_usd(Usage() if isinstance(reply, Failure) else reply.usage)
            self._cost = None if price is None or self._cost is None else self._cost + price
        self.replies.extend(replies)
        self._advance(replies)

    def keep(self, answers: Answers) -> Held:
        """Store the finished conversation; what the run holds now, by key."""
        seconds = time.monotonic() - self._began
        return answers.keep(self.unit, self.answers, self.replies, self._cost, seconds)

    def _advance(self, replies: tuple[Reply | Failure, ...] | None) -> None:
        try:
            self.sends = next(self._conversation) if replies is None else self._conversation.send(replies)
        except StopIteration as stop:
            self.sends = None
            self.answers = tuple(map(_storable, stop.value))
        except Exception as error:  # noqa: BLE001  a bug in a judge must not end the run; the traceback goes to the log
            _log.exception("the judge %s broke", self.unit.judge.name)
            failure = Failure(
                FailureKind.BROKEN, f"the judge {self.unit.judge.name} raised {type(error).__name__}: {error}"
            )
            self.sends = None
            self.answers = tuple(_storable(failure) for _ in self.unit.questions)


def _units(walk: Walk, answers: Answers) -> list[Unit] | None:
    """The units of the step that a plan waits for; None where it waits for no step, which ends it."""
    try:
        return answers.units(walk.step or ())
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  a plan yielded something that is not a step
        walk.broke(error)
        return None


def _storable(answer: Answer) -> Answer:
    """The answer, or a failure where it holds text that no file can hold (half a surrogate pair)."""
    if isinstance(answer, Failure):
        return _kept(answer)
    try:
        answer.to_json()
    except ValueError:
        return Failure(FailureKind.BROKEN, "the verdict holds half a character, which cannot be kept")
    return answer


def _kept(failure: Failure) -> Failure:
    return Failure(failure.kind, failure.message.encode("utf-8", "replace").decode())


def _keyed(units: Iterable[Unit], held: Held) -> list[tuple[bytes, Answer]]:
    return [(key, held[key]) for unit in units for key in unit.keys]


@dataclass(slots=True)
class _Waiting:
    """What is known of a unit, and the flights that bring the rest."""

    held: Held
    flights: list[asyncio.Future[Held]]


class AsyncDriver:
    """Answers steps under asyncio: equal units share one flight, which outlives the plan that asked first."""

    def __init__(self, answers: Answers, carrier: Carrier) -> None:
        self._answers = answers
        self._carrier = carrier
        self._flights: dict[bytes, asyncio.Task[Held]] = {}  # by the key of each question in the air

    async def walk(self, walk: Walk) -> Walk:
        """Run a plan to its end; returns it."""
        try:
            walk.start()
            while walk.step is not None:
                units = _units(walk, self._answers)
                if units is None:
                    break
                held: Held = {}
                for waiting in [self._ready(unit) for unit in units]:
                    held |= waiting.held
                    for flight in waiting.flights:
                        held |= await flight
                walk.send(_keyed(units, held))
        finally:
            walk.close()
        return walk

    async def close(self) -> None:
        """Abandon what is still in the air."""
        flights = set(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    def _ready(self, unit: Unit) -> _Waiting:
        flights = {flight for key in unit.keys if (flight := self._flights.get(key)) is not None}
        rest = unit.without(self._flights) if flights else unit
        held: Held = {}
        if rest is not None:
            held, rest = self._answers.known(rest)
        if rest is not None:
            talk = Talk(rest)
            if talk.sends is None:
                held |= talk.keep(self._answers)
            else:
                flights.add(self._sent(talk))
        return _Waiting(held, [_shielded(flight) for flight in flights])

    def _sent(self, talk: Talk) -> asyncio.Task[Held]:
        flight = asyncio.create_task(self._fly(talk))
        self._flights.update(dict.fromkeys(talk.unit.keys, flight))

        def landed(_: asyncio.Task[Held]) -> None:
            for key in talk.unit.keys:
                self._flights.pop(key, None)

        flight.add_done_callback(landed)
        return flight

    async def _fly(self, talk: Talk) -> Held:
        while talk.sends is not None:
            if len(talk.sends) == 1:
                talk.reply((await self._carrier.carry(talk.sends[0]),))
            else:
                talk.reply(tuple(await asyncio.gather(*map(self._carrier.carry, talk.sends))))
        return talk.keep(self._answers)


def _shielded(flight: asyncio.Task[Held]) -> asyncio.Future[Held]:
    waiting = asyncio.shield(flight)
    waiting.add_done_callback(_seen)
    return waiting


def _seen(waiting: asyncio.Future[Held]) -> None:
    """Look at a failure that nobody waits for any more, since the first one ended the walk; asyncio complains else."""
    if not waiting.cancelled():
        waiting.exception()


def drive_blocking(walks: Iterable[Walk], answers: Answers, send: Sender) -> Iterator[Walk]:
    """Run plans one after another, every request by a blocking call; yields each when it is done."""
    for walk in walks:
        walk.start()
        while walk.step is not None:
            units = _units(walk, answers)
            if units is None:
                break
            held: Held = {}
            for unit in units:
                held |= _answer_blocking(unit, answers, send)
            walk.send(_keyed(units, held))
        yield walk


def _answer_blocking(unit: Unit, answers: Answers, send: Sender) -> Held:
    held, rest = answers.known(unit)
    if rest is None:
        return held
    talk = Talk(rest)
    while talk.sends is not None:
        talk.reply(tuple(send(request) for request in talk.sends))
    return held | talk.keep(answers)


def drive_rounds(walks: Sequence[Walk], answers: Answers, send_batch: BatchSender) -> Sequence[Walk]:
    """Run plans side by side: in each round all that wait ask at once, equal questions once; returns them done."""
    for walk in walks:
        walk.start()
    while waiting := [walk for walk in walks if walk.step is not None]:
        cut = [_units(walk, answers) for walk in waiting]
        held = _answer_round([unit for units in cut for unit in units or ()], answers, send_batch)
        for walk, units in zip(waiting, cut, strict=True):
            if units is not None:
                walk.send(_keyed(units, held))
    return walks


def _answer_round(units: Sequence[Unit], answers: Answers, send_batch: BatchSender) -> Held:
    held: Held = {}
    talks: list[Talk] = []
    asked: set[bytes] = set()
    for unit in units:
        rest = unit.without(held.keys() | asked)
        if rest is not None:
            known, rest = answers.known(rest)
            held |= known
        if rest is not None:
            talks.append(Talk(rest))
            asked.update(rest.keys)
    while open_talks := [talk for talk in talks if talk.sends is not None]:
        replies = iter(send_batch([send for talk in open_talks for send in talk.sends or ()]))
        for talk in open_talks:
            talk.reply(tuple(next(replies) for _ in talk.sends or ()))
    for talk in talks:
        held |= talk.keep(answers)
    return held
