"""Three drivers for the same plans and judges: under asyncio, in rounds (batches), and blocking.

A driver decides only how to wait for replies. `AnswerStore` looks up known answers, packs questions and stores
verdicts. The dispatcher sends the requests of the asyncio driver. All three drivers are in this module so that their
difference is easy to see.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from merilo.engine.budget import own_price
from merilo.engine.event_loop import call_after
from merilo.engine.judge_session import open_session
from merilo.errors import MeriloError, UsageError
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from merilo.engine.answer_store import AnswerStore, Held, WorkUnit
    from merilo.engine.budget import Pricer
    from merilo.engine.dispatcher import Dispatcher
    from merilo.engine.judge_session import JudgeSession
    from merilo.engine.plan_run import PlanRun
    from merilo.judges.base import OutgoingRequest
    from merilo.judging.ask import Answer
    from merilo.judging.verdicts import Failure
    from merilo.providers.base import Reply

    Sender = Callable[[OutgoingRequest], Reply | Failure]
    BatchSender = Callable[[Sequence[OutgoingRequest]], Iterable[tuple[int, Reply | Failure]]]
    """Sends all requests of a round and yields each reply with its index in the sequence, in any order. It may end
    early; then the run ends."""

_log = logging.getLogger("merilo")


def _units(walk: PlanRun, answers: AnswerStore) -> list[WorkUnit] | None:
    """Return the work units of the step that a plan run waits for; None if the plan did not yield a step, which ends
    the plan run.
    """
    try:
        return answers.units(walk.step or ())
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  a plan yielded something that is not a step
        walk.broke(error)
        return None


def _keyed(units: Iterable[WorkUnit], held: Held) -> list[tuple[bytes, Answer]]:
    return [(key, held[key]) for unit in units for key in unit.keys]


class _SharedSession:
    """One judge session in flight, shared by all plan runs that need its answers. It finishes even if every one of them
    is abandoned.
    """

    __slots__ = ("_driver", "_missing", "_replies", "block", "talk", "waiting")

    def __init__(self, driver: AsyncDriver, talk: JudgeSession, block: int) -> None:
        self.talk = talk
        self.block = block
        self.waiting: list[WaitingPlan] = []
        self._driver = driver
        self._missing = 0
        self._replies: list[Reply | Failure | None] = []

    def send(self, *, again: bool) -> None:
        """Post the requests of the session. Re-asks (`again`) go before requests of sessions that have no reply yet."""
        sends = self.talk.sends or ()
        self._missing = len(sends)
        self._replies = [None for _ in sends]
        for place, send in enumerate(sends):
            self._driver.post(send, self, place, again=again)

    def leave(self, answers: AnswerStore) -> None:
        """Store the replies received so far, for a session that is interrupted."""
        self.talk.leave(answers, self._replies)

    def on_reply(self, place: int, reply: Reply | Failure) -> None:
        """Record one reply. With the last reply of the current requests, the session sends its next requests or
        finishes.
        """
        self._replies[place] = reply
        self._missing -= 1
        if self._missing:
            return
        self.talk.reply(tuple(reply for reply in self._replies if reply is not None))
        if self.talk.sends is None:
            self._driver.land(self)
        else:
            self.send(again=True)


class WaitingPlan:
    """A plan run that waits for answers: the answers known for its current step, and the number of sessions still
    missing.
    """

    __slots__ = ("abandoned", "block", "done", "held", "missing", "units", "walk")

    def __init__(self, walk: PlanRun, block: int, done: Callable[[PlanRun], None]) -> None:
        self.walk = walk
        self.block = block
        self.done = done
        self.held: Held = {}
        self.missing = 0
        self.units: list[WorkUnit] = []
        self.abandoned = False


class AsyncDriver:
    """Answers the steps of plans under asyncio. Plan runs that ask the same question share one judge session.

    A shared session continues if the plan that asked first is abandoned. There is no asyncio task per plan or question:
    callbacks of finished sessions advance the plan runs that waited for them.
    """

    def __init__(self, answers: AnswerStore, carrier: Dispatcher) -> None:
        self._answers = answers
        self._carrier = carrier
        self._price = carrier.price
        self._flights: dict[bytes, _SharedSession] = {}  # by the key of each question in flight
        self.waiting = 0
        """Number of judge sessions that wait for a reply, sent or still queued."""
        self.on_reply: Callable[[], None] = lambda: None
        """Called each time a judge session has finished."""
        self._ready: list[WaitingPlan] = []
        self._proven: set[int] = set()  # ids of judges that have answered; they live as long as the roles
        self._loop = asyncio.get_running_loop()
        self._commit: asyncio.TimerHandle | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when no more replies will be processed: with the error, or with None if a limit was reached."""
        carrier.on_stop(self._stopped)

    def begin(self, walk: PlanRun, done: Callable[[PlanRun], None], *, block: int = 0) -> WaitingPlan:
        """Register a plan run, to be started by the next `advance_ready`. `done` is called when it has an outcome.

        `block`: requests with a lower block number are sent first.
        """
        going = WaitingPlan(walk.start(), block, done)
        self._ready.append(going)
        return going

    def advance_ready(self) -> None:
        """Advance every plan run that is ready until it waits for a judge session or has an outcome.

        The answers to all their questions are looked up together. Raises UsageError for a question that no judge
        answers.
        """
        while self._ready:
            ready, self._ready = self._ready, []
            steps = [(going, units) for going in ready if (units := self._cut(going)) is not None]
            looked = iter(self._answers.known_all([unit for _, units in steps for unit in units]))
            fresh: Held = {}  # answered just now, without a request
            for going, units in steps:
                going.units, going.held = units, {}
                flights: set[_SharedSession] = set()
                # `looked` is one iterator over the units of all steps, so zip() must not check equal lengths
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

    async def walk(self, walk: PlanRun) -> PlanRun:
        """Run one plan until it has an outcome; return it. Raises the error that ends the run."""
        ended: asyncio.Future[None] = self._loop.create_future()

        def done(_: PlanRun) -> None:
            if not ended.done():
                ended.set_result(None)

        going = self.begin(walk, done)
        self.advance_ready()
        try:
            await asyncio.wait({ended, self.ended}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                self.ended.result()
                raise asyncio.CancelledError  # a limit was reached before this plan was done
        finally:
            self.abandon(going)
        return walk

    def abandon(self, going: WaitingPlan) -> None:
        """Close a plan run. The sessions that it started still finish, and their answers are stored."""
        going.abandoned = True
        going.walk.close()

    async def close(self) -> None:
        """Store the partial replies of unfinished sessions, and stop."""
        if self._commit is not None:
            self._commit.cancel()
        if self.ended.done():
            self.ended.exception()  # retrieved, so that asyncio does not log it as never retrieved
        self._carrier.off_stop(self._stopped)
        self._carrier.read_all()  # replies that have arrived are processed before partial replies are stored
        # a session is listed under each of its keys; a dict removes the repetitions and keeps the order
        flights, self._flights = dict.fromkeys(self._flights.values()), {}
        try:
            for flight in flights:
                flight.leave(self._answers)
        except (MeriloError, ValueError):  # a full disk, which the run has reported already; half a surrogate pair
            _log.exception("the partial replies of an interrupted judge session could not be stored")

    def post(self, send: OutgoingRequest, flight: _SharedSession, place: int, *, again: bool) -> None:
        """Put a request of a session into the queue of its endpoint."""
        messages = send.request.messages
        # the rubric, then the prompt, which starts with shared contexts: equal beginnings are sent one after another
        first = messages[0].text if messages else ""
        order = (flight.block, 0 if again else 1, first, messages[1].text if len(messages) > 1 else "")
        self._carrier.post(send, flight, place, order, proven=id(flight.talk.unit.judge) in self._proven)

    def land(self, flight: _SharedSession) -> None:
        """Store the answers of a finished session, and advance the plan runs that waited for it."""
        held = flight.talk.keep(self._answers)  # the stored answers: an earlier verdict of the cache wins
        self.waiting -= 1
        for key in flight.talk.unit.keys:
            self._flights.pop(key, None)
        for going in flight.waiting:
            going.held.update(held)
            going.missing -= 1
            if not going.missing and not going.abandoned:
                self._answered(going)
        self.advance_ready()
        self.on_reply()

    def _cut(self, going: WaitingPlan) -> list[WorkUnit] | None:
        """Return the work units of a plan run's step; None if the plan run has an outcome, which is then reported."""
        units = None if going.walk.step is None else _units(going.walk, self._answers)
        if units is None:
            going.walk.close()
            going.done(going.walk)
        return units

    def _answered(self, going: WaitingPlan) -> None:
        going.walk.send(_keyed(going.units, going.held))
        self._ready.append(going)

    def _ask(self, unit: WorkUnit, going: WaitingPlan, flights: set[_SharedSession], fresh: Held) -> None:
        """Join the sessions in flight that will answer part of this unit, and open a session for the rest."""
        rest: WorkUnit | None = unit
        in_the_air = [flight for key in unit.keys if (flight := self._flights.get(key)) is not None]
        if in_the_air:  # draws of one completion: a session in flight may answer only some of them
            flights.update(in_the_air)
            rest = unit.without(self._flights)
        if rest is not None and fresh:
            held = {key: fresh[key] for key in rest.keys if key in fresh}
            going.held.update(held)
            rest = rest.without(held)
        if rest is None:
            return
        talk = open_session(rest, self._answers, self._price)
        if talk.sends is None:
            kept = talk.keep(self._answers)
            going.held.update(kept)
            fresh.update(kept)
            return
        flight = _SharedSession(self, talk, going.block)
        self._flights.update(dict.fromkeys(rest.keys, flight))
        flights.add(flight)
        self.waiting += 1
        flight.send(again=talk.begun)

    def _count(self, unit: WorkUnit, held: Held) -> None:
        self._carrier.count(len(held))
        if id(unit.judge) not in self._proven and any(isinstance(answer, Verdict) for answer in held.values()):
            self._proven.add(id(unit.judge))

    def _arm(self) -> None:
        """Schedule a commit of the stored answers, for the case that nothing else happens before it is due."""
        if self._commit is None and (due_s := self._answers.due_in()) is not None:
            self._commit = call_after(self._loop, due_s, self._commit_due)

    def _commit_due(self) -> None:
        self._commit = None
        try:
            self._answers.commit_if_due()
            self._arm()
        except Exception as error:  # noqa: BLE001  a full disk: the caller that runs the plans raises it
            self._carrier.stop(error)

    def _stopped(self, error: BaseException | None) -> None:
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)


def drive_blocking(walks: Iterable[PlanRun], answers: AnswerStore, send: Sender) -> Iterator[PlanRun]:
    """Run plans one after another, with a blocking call for each request; yield each plan run when it is done."""
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


def _answer_blocking(unit: WorkUnit, answers: AnswerStore, send: Sender) -> Held:
    held, rest = answers.known(unit)
    if rest is None:
        return held
    talk = open_session(rest, answers)
    while talk.sends is not None:
        talk.reply(tuple(send(request) for request in talk.sends))
    return held | talk.keep(answers)


def drive_rounds(
    walks: Sequence[PlanRun],
    answers: AnswerStore,
    send_batch: BatchSender,
    *,
    price: Pricer = own_price,
    count: Callable[[int], None] = lambda _: None,
) -> Sequence[PlanRun]:
    """Run all plans in rounds: each round sends the requests of every waiting plan, equal questions once. Return the
    plan runs.

    Each answer is stored when its last reply arrives. If `send_batch` ends early, so does this function, and some plan
    runs still wait for answers. `count` is called with the number of answers that were known without a request.
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
    units: Sequence[WorkUnit], answers: AnswerStore, price: Pricer, count: Callable[[int], None]
) -> tuple[list[JudgeSession], Held]:
    """Return judge sessions for the questions without a known answer, equal questions once, and the known answers."""
    held: Held = {}
    talks: list[JudgeSession] = []
    asked: set[bytes] = set()
    for known, missing in answers.known_all(units):
        count(len(known))
        held |= known
        rest = None if missing is None else missing.without(asked)
        if rest is not None:
            talks.append(open_session(rest, answers, price))
            asked.update(rest.keys)
    return talks, held


def _held_out(talks: Sequence[JudgeSession], answers: AnswerStore, send_batch: BatchSender, held: Held) -> bool:
    """Run all sessions and add their answers to `held`; return False if `send_batch` ended before all sessions
    finished.
    """
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


def _replied(talks: Sequence[JudgeSession], send_batch: BatchSender) -> Iterator[JudgeSession]:
    """Yield each session once it has received all replies to its current requests and has processed them."""
    sends: list[OutgoingRequest] = []
    of: list[
        tuple[JudgeSession, int]
    ] = []  # for each request: its session, and the index of the session's first request
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
