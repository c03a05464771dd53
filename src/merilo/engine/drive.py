"""Three ways to run the same plans and judges: under asyncio, in rounds, or blocking.

A driver differs only in how it waits. What was asked before, how questions are packed and what is kept is
the business of `Answers`; how a request travels that of a carrier. The drivers stand
side by side, so that one sees that nothing else is different.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from merilo.engine.budget import own_price
from merilo.engine.event_loop import call_after
from merilo.engine.talk import talk_about
from merilo.errors import MeriloError, UsageError
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from merilo.engine.answers import Answers, Held, Unit
    from merilo.engine.budget import Pricer
    from merilo.engine.carry import Carrier
    from merilo.engine.talk import Conversing
    from merilo.engine.walk import Walk
    from merilo.judges.base import Send
    from merilo.judging.ask import Answer
    from merilo.judging.verdicts import Failure
    from merilo.providers.base import Reply

    Sender = Callable[[Send], Reply | Failure]
    BatchSender = Callable[[Sequence[Send]], Iterable[tuple[int, Reply | Failure]]]
    """Takes all sends of a round; gives what comes back, with its place, in any order. Ends early to end the run."""

_log = logging.getLogger("merilo")


def _units(walk: Walk, answers: Answers) -> list[Unit] | None:
    """The units of the step that a plan waits for; None where it waits for no step, which ends it."""
    try:
        return answers.units(walk.step or ())
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  a plan yielded something that is not a step
        walk.broke(error)
        return None


def _keyed(units: Iterable[Unit], held: Held) -> list[tuple[bytes, Answer]]:
    return [(key, held[key]) for unit in units for key in unit.keys]


class _Flight:
    """One conversation in the air; it lands by itself, whoever still waits for it."""

    __slots__ = ("_driver", "_missing", "_replies", "block", "talk", "waiting")

    def __init__(self, driver: AsyncDriver, talk: Conversing, block: int) -> None:
        self.talk = talk
        self.block = block
        self.waiting: list[Going] = []
        self._driver = driver
        self._missing = 0
        self._replies: list[Reply | Failure | None] = []

    def send(self, *, again: bool) -> None:
        """Post what the conversation wants sent; re-asks go before what was not asked yet."""
        sends = self.talk.sends or ()
        self._missing = len(sends)
        self._replies = [None for _ in sends]
        for place, send in enumerate(sends):
            self._driver.post(send, self, place, again=again)

    def leave(self, answers: Answers) -> None:
        """Store what was heard, where it ends before its end."""
        self.talk.leave(answers, self._replies)

    def landed(self, place: int, reply: Reply | Failure) -> None:
        """One of the replies is there; with the last of them the conversation goes on or ends."""
        self._replies[place] = reply
        self._missing -= 1
        if self._missing:
            return
        self.talk.reply(tuple(reply for reply in self._replies if reply is not None))
        if self.talk.sends is None:
            self._driver.land(self)
        else:
            self.send(again=True)


class Going:
    """A walk on its way: what is known for its step, and how many flights it still waits for."""

    __slots__ = ("abandoned", "block", "done", "held", "missing", "units", "walk")

    def __init__(self, walk: Walk, block: int, done: Callable[[Walk], None]) -> None:
        self.walk = walk
        self.block = block
        self.done = done
        self.held: Held = {}
        self.missing = 0
        self.units: list[Unit] = []
        self.abandoned = False


class AsyncDriver:
    """Answers steps under asyncio: equal units share one flight, which outlives the plan that asked first.

    There is no task a plan or a question: walks go on from the callbacks of what they wait for.
    """

    def __init__(self, answers: Answers, carrier: Carrier) -> None:
        self._answers = answers
        self._carrier = carrier
        self._price = carrier.price
        self._flights: dict[bytes, _Flight] = {}  # by the key of each question in the air
        self.waiting = 0
        """Conversations that wait for a reply, sent or still in the queue."""
        self.landed: Callable[[], None] = lambda: None
        """Called when one of them has come to its end."""
        self._ready: list[Going] = []
        self._proven: set[int] = set()  # ids of judges that have answered; they live as long as the roles
        self._loop = asyncio.get_running_loop()
        self._commit: asyncio.TimerHandle | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when nothing more can land: with the error, or with None when a limit was reached."""
        carrier.on_stop(self._stopped)

    def begin(self, walk: Walk, done: Callable[[Walk], None], *, block: int = 0) -> Going:
        """Make a plan ready to go; `go_on` sets it going, and `done` is called when it has its outcome.

        `block`: requests of a lower block go first.
        """
        going = Going(walk.start(), block, done)
        self._ready.append(going)
        return going

    def go_on(self) -> None:
        """Run all plans that are ready on until they wait for a flight or have their outcome.

        What they ask is looked up together. Raises UsageError for a question that nobody answers.
        """
        while self._ready:
            ready, self._ready = self._ready, []
            steps = [(going, units) for going in ready if (units := self._cut(going)) is not None]
            looked = iter(self._answers.known_all([unit for _, units in steps for unit in units]))
            fresh: Held = {}  # answered just now, without a request
            for going, units in steps:
                going.units, going.held = units, {}
                flights: set[_Flight] = set()
                for unit, (held, rest) in zip(units, looked, strict=False):
                    if held:
                        self._count(unit, held)
                        going.held.update(held)
                    if rest is not None:
                        self._ask(rest, going, flights, fresh)
                going.missing = len(flights)
                for flight in flights:
                    flight.waiting.append(going)
                if not flights:
                    self._answered(going)
        self._arm()

    async def walk(self, walk: Walk) -> Walk:
        """Run one plan to its end; returns it. Raises what ends the run."""
        ended: asyncio.Future[None] = self._loop.create_future()

        def done(_: Walk) -> None:
            if not ended.done():
                ended.set_result(None)

        going = self.begin(walk, done)
        self.go_on()
        try:
            await asyncio.wait({ended, self.ended}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                self.ended.result()
                raise asyncio.CancelledError  # a limit was reached before this plan was done
        finally:
            self.abandon(going)
        return walk

    def abandon(self, going: Going) -> None:
        """Close a plan; what it asked for lands all the same, and is kept."""
        going.abandoned = True
        going.walk.close()

    async def close(self) -> None:
        """Keep what conversations have heard that are broken off, and nothing more."""
        if self._commit is not None:
            self._commit.cancel()
        if self.ended.done():
            self.ended.exception()  # seen, also where nobody waits any more
        self._carrier.off_stop(self._stopped)
        self._carrier.read_all()
        flights, self._flights = dict.fromkeys(self._flights.values()), {}
        try:
            for flight in flights:
                flight.leave(self._answers)
        except (MeriloError, ValueError):  # a full disk, which ended the run and is told; half a character
            _log.exception("a conversation that was broken off could not be kept")

    def post(self, send: Send, flight: _Flight, place: int, *, again: bool) -> None:
        """Put a request of a flight into its queue."""
        messages = send.request.messages
        first = messages[0].text if messages else ""
        order = (flight.block, 0 if again else 1, first, messages[1].text if len(messages) > 1 else "")
        self._carrier.post(send, flight, place, order, proven=id(flight.talk.unit.judge) in self._proven)

    def land(self, flight: _Flight) -> None:
        """Keep what a flight brought, and let those go on who wait for it."""
        held = flight.talk.keep(self._answers)
        self.waiting -= 1
        for key in flight.talk.unit.keys:
            self._flights.pop(key, None)
        for going in flight.waiting:
            going.held.update(held)
            going.missing -= 1
            if not going.missing and not going.abandoned:
                self._answered(going)
        self.go_on()
        self.landed()

    def _cut(self, going: Going) -> list[Unit] | None:
        """The units of a plan's step; None when it has its outcome, and is done."""
        units = None if going.walk.step is None else _units(going.walk, self._answers)
        if units is None:
            going.walk.close()
            going.done(going.walk)
        return units

    def _answered(self, going: Going) -> None:
        going.walk.send(_keyed(going.units, going.held))
        self._ready.append(going)

    def _ask(self, unit: Unit, going: Going, flights: set[_Flight], fresh: Held) -> None:
        """Join the flights that bring some of this, and begin one for the rest."""
        rest: Unit | None = unit
        in_the_air = [flight for key in unit.keys if (flight := self._flights.get(key)) is not None]
        if in_the_air:
            flights.update(in_the_air)
            rest = unit.without(self._flights)
        if rest is not None and fresh:
            held = {key: fresh[key] for key in rest.keys if key in fresh}
            going.held.update(held)
            rest = rest.without(held)
        if rest is None:
            return
        talk = talk_about(rest, self._answers, self._price)
        if talk.sends is None:
            kept = talk.keep(self._answers)
            going.held.update(kept)
            fresh.update(kept)
            return
        flight = _Flight(self, talk, going.block)
        self._flights.update(dict.fromkeys(rest.keys, flight))
        flights.add(flight)
        self.waiting += 1
        flight.send(again=talk.begun)

    def _count(self, unit: Unit, held: Held) -> None:
        self._carrier.count(len(held))
        if id(unit.judge) not in self._proven and any(isinstance(answer, Verdict) for answer in held.values()):
            self._proven.add(id(unit.judge))

    def _arm(self) -> None:
        """See to it that what was answered is committed in time, also when nothing else happens."""
        if self._commit is None and (due_s := self._answers.due_in()) is not None:
            self._commit = call_after(self._loop, due_s, self._commit_due)

    def _commit_due(self) -> None:
        self._commit = None
        try:
            self._answers.commit_if_due()
            self._arm()
        except Exception as error:  # noqa: BLE001  a full disk: told by whoever runs the plans
            self._carrier.stop(error)

    def _stopped(self, error: BaseException | None) -> None:
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)


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
        answers.commit_if_due()
        yield walk


def _answer_blocking(unit: Unit, answers: Answers, send: Sender) -> Held:
    held, rest = answers.known(unit)
    if rest is None:
        return held
    talk = talk_about(rest, answers)
    while talk.sends is not None:
        talk.reply(tuple(send(request) for request in talk.sends))
    return held | talk.keep(answers)


def drive_rounds(
    walks: Sequence[Walk],
    answers: Answers,
    send_batch: BatchSender,
    *,
    price: Pricer = own_price,
    count: Callable[[int], None] = lambda _: None,
) -> Sequence[Walk]:
    """Run plans side by side: in each round all that wait ask at once, equal questions once; returns them done.

    Each answer is kept when its last reply comes. Where `send_batch` ends early, so does this, and some plans still
    wait for answers. `count` is told how many answers were known.
    """
    for walk in walks:
        walk.start()
    while waiting := [walk for walk in walks if walk.step is not None]:
        cut = [_units(walk, answers) for walk in waiting]
        talks, held = _looked_up([unit for units in cut for unit in units or ()], answers, price, count)
        if not _held_out(talks, answers, send_batch, held):
            break
        for walk, units in zip(waiting, cut, strict=True):
            if units is not None:
                walk.send(_keyed(units, held))
        answers.commit_if_due()
    return walks


def _looked_up(
    units: Sequence[Unit], answers: Answers, price: Pricer, count: Callable[[int], None]
) -> tuple[list[Conversing], Held]:
    """A conversation about whatever is not known, equal questions once, and what is."""
    held: Held = {}
    talks: list[Conversing] = []
    asked: set[bytes] = set()
    for known, missing in answers.known_all(units):
        count(len(known))
        held |= known
        rest = None if missing is None else missing.without(asked)
        if rest is not None:
            talks.append(talk_about(rest, answers, price))
            asked.update(rest.keys)
    return talks, held


def _held_out(talks: Sequence[Conversing], answers: Answers, send_batch: BatchSender, held: Held) -> bool:
    """Hold all conversations and keep what they give in `held`; false when `send_batch` ended too early for that."""
    for talk in talks:
        if talk.sends is None:
            held |= talk.keep(answers)
    while waiting := [talk for talk in talks if talk.sends is not None]:
        left = len(waiting)
        for talk in _replied(waiting, send_batch):
            left -= 1
            if talk.sends is None:
                held |= talk.keep(answers)
        if left:
            return False
    return True


def _replied(talks: Sequence[Conversing], send_batch: BatchSender) -> Iterator[Conversing]:
    """Each conversation as soon as it has all replies to what it wanted sent, and has gone on."""
    sends: list[Send] = []
    of: list[tuple[Conversing, int]] = []  # by place: the conversation, and the place of its first send
    for talk in talks:
        own = talk.sends or ()
        of += [(talk, len(sends))] * len(own)
        sends += own
    replies: list[Reply | Failure | None] = [None] * len(sends)
    for place, reply in send_batch(sends):
        replies[place] = reply
        talk, first = of[place]
        got = tuple(each for each in replies[first : first + len(talk.sends or ())] if each is not None)
        if len(got) == len(talk.sends or ()):
            talk.reply(got)
            yield talk
