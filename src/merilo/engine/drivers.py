"""Two drivers for the same plans and judges: under asyncio, and in rounds (batches).

A driver decides only how to wait for replies. `AnswerStore` looks up known answers, packs questions and stores
verdicts. The dispatcher sends the requests of the asyncio driver. Both drivers, and the sessions with a judge that they
share, are in this module so that their difference is easy to see.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from merilo.engine.answer_store import bundle_of
from merilo.engine.budget import UNPAID, own_price
from merilo.engine.event_loop import call_after
from merilo.engine.plan_run import PlanRun, next_step
from merilo.errors import MeriloError, UsageError
from merilo.judges.base import OutgoingRequest
from merilo.judging.digests import digest_of
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.metrics.base import plan_of
from merilo.providers.base import FREE_TEXT, Reply
from merilo.providers.problems import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from merilo.engine.answer_store import AnswerStore, KnownAnswers, WorkUnit
    from merilo.engine.budget import Pricer
    from merilo.engine.dispatcher import Dispatcher
    from merilo.judging.ask import Answer, Step
    from merilo.runs.records import SavedReplies

    BatchSender = Callable[[Sequence[OutgoingRequest]], Iterable[tuple[int, Reply | Failure]]]
    """Sends all requests of a round; yields each reply with its index, in any order. If it ends early, the run ends."""

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
        price = self._price(send.provider, usage)
        self._cost = None if price is None or self._cost is None else self._cost + price
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
            name = self.unit.judge.name
            _log.error("the judge %s raised an error", name, exc_info=error)
            failure = Failure(FailureKind.BROKEN, f"the judge {name} raised {type(error).__name__}: {error}")
            self.verdicts = (_kept(failure),) * len(self.unit.questions)


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


_MAX_UNREADABLE: Final = 20
"""Number of consecutive questions of one kind without a readable reply after which the kind is no longer asked."""
_MAX_AHEAD: Final = 100
"""Maximum steps of a plan that are asked ahead: some plans do not end with likely answers."""


def _units(plan_run: PlanRun, answers: AnswerStore) -> list[WorkUnit] | None:
    """Return the work units of a plan run's step; None if the plan did not yield a step, which ends the plan run."""
    try:
        return answers.units(plan_run.step or (), plan_run.sample)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  a plan yielded something that is not a step
        plan_run.broke(error)
        return None


def _keyed(units: Iterable[WorkUnit], held: KnownAnswers) -> list[tuple[bytes, Answer]]:
    return [(key, held[key]) for unit in units for key in unit.keys]


class _SharedSession:
    """A judge session in flight, shared by all plan runs that need its answers. It outlives them."""

    __slots__ = ("_driver", "block", "sent", "session", "units", "waiting")

    session: JudgeSession
    """Set when it is opened."""
    sent: OutgoingRequest
    """The last request."""

    def __init__(self, driver: AsyncDriver, block: int) -> None:
        self.block = block
        self.units: list[WorkUnit] = []
        """Questions of several plan runs about one view, collected until no plan run can continue without them."""
        self.waiting: list[WaitingPlan] = []
        self._driver = driver

    def send(self, *, again: bool) -> None:
        """Post the requests of the session. Re-asks (`again`) go before requests of sessions that have no reply yet."""
        for place, send in enumerate(self.session.sends or ()):
            self.sent = send
            self._driver.post(send, self, place, again=again)

    def on_reply(self, place: int, reply: Reply | Failure) -> Callable[[], None] | None:
        """Record one reply; send the next requests or finish after the last one. See `ReplyListener`."""
        if not self.session.receive(place, reply):
            return None
        if self.session.sends is None:
            self._driver.finish(self)
            return self._driver.go_on
        self.send(again=True)
        return None


class WaitingPlan:
    """A plan run that waits for answers: those known for its current step, and the number of sessions still missing."""

    __slots__ = ("abandoned", "block", "done", "held", "missing", "plan_run", "steps", "units")

    def __init__(self, plan_run: PlanRun, block: int, done: Callable[[PlanRun], None]) -> None:
        self.plan_run = plan_run
        self.block = block
        self.done = done
        self.held: KnownAnswers = {}
        self.missing = 0
        self.units: list[WorkUnit] = []
        self.steps: list[tuple[list[WorkUnit], KnownAnswers]] = []
        """Units and answers of each step so far, until its questions have been asked ahead."""
        self.abandoned = False


class AsyncDriver:
    """Answers the steps of plans under asyncio. Plan runs that ask the same question share one judge session.

    A shared session continues if the plan that asked first is abandoned. There is no asyncio task per plan or question:
    callbacks of finished sessions advance the plan runs that waited for them.
    """

    def __init__(self, answers: AnswerStore, dispatcher: Dispatcher) -> None:
        self._answers = answers
        self._dispatcher = dispatcher
        self._price = dispatcher.spending.price
        self._flights: dict[bytes, _SharedSession] = {}  # by the key of each question in flight
        self.waiting = 0
        """Number of judge sessions that wait for a reply, sent or still queued."""
        self.on_reply: Callable[[], None] = lambda: None
        """Called each time a judge session has finished."""
        self._unsent: list[_SharedSession] = []  # opened just now
        self._baskets: dict[tuple[int, bytes], _SharedSession] = {}  # by id of a judge and digest of a view
        self._ahead: list[WaitingPlan] = []  # begun just now
        self._ready: list[WaitingPlan] = []
        self._unreadable: dict[tuple[int, str], int] = {}
        """By id of a provider and name of a schema, the number of consecutive sessions without a readable reply."""
        self._proven: set[int] = set()  # ids of judges that have answered; they live as long as the roles
        self._loop = asyncio.get_running_loop()
        self._commit: asyncio.TimerHandle | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when no more replies will be processed: with the error, or with None if a limit was reached."""
        dispatcher.on_stop(self._stopped)

    def begin(self, plan_run: PlanRun, done: Callable[[PlanRun], None], *, block: int = 0) -> WaitingPlan:
        """Register a plan run, to be started by the next `advance_ready`. `done` is called when it has an outcome.

        `block`: requests with a lower block number are sent first.
        """
        waiting = WaitingPlan(plan_run.start(self._answers.reject), block, done)
        self._ready.append(waiting)
        if self._answers.bundlers:
            self._ahead.append(waiting)
        return waiting

    def advance_ready(self) -> None:
        """Advance every plan run that is ready until it waits for a judge session or has an outcome.

        The answers to all their questions are looked up together. Raises UsageError for a question that no judge
        answers.
        """
        while self._ready or self._ahead or self._baskets:
            if self._ready:
                self._advance_once()
            else:
                self._open_baskets()
        self._arm()

    def _advance_once(self) -> None:
        ready, self._ready = self._ready, []
        steps = [(waiting, units) for waiting in ready if (units := self._cut(waiting)) is not None]
        looked = iter(self._answers.known_all([unit for _, units in steps for unit in units]))
        fresh: KnownAnswers = {}  # answered just now, without a request
        for waiting, units in steps:
            waiting.units, waiting.held = units, {}
            if self._ahead:
                waiting.steps.append((units, waiting.held))
            flights: set[_SharedSession] = set()
            # `looked` is one iterator over the units of all steps, so zip() must not check equal lengths
            for unit, (held, rest) in zip(units, looked, strict=False):
                if held:
                    self._count(unit, held)
                    waiting.held.update(held)
                if rest is not None:
                    self._ask(rest, waiting, flights, fresh)
            waiting.missing = len(flights)
            for flight in flights:
                flight.waiting.append(waiting)
            if not flights:
                self._answered(waiting)
        if self._unsent:
            unsent, self._unsent = self._unsent, []
            self._send(unsent)

    def _open_baskets(self) -> None:
        """Turn the collected questions, and those that their plans are likely to ask next, into sessions; send them."""
        ahead, self._ahead = self._ahead, []
        for waiting in ahead:
            if waiting.plan_run.step is not None and not waiting.abandoned:
                self._ask_ahead(waiting)
        opened: list[_SharedSession] = []
        while self._baskets:
            name, basket = next(iter(self._baskets.items()))
            basket.session = JudgeSession(bundle_of(basket.units), self._answers, self._price)
            del self._baskets[name]
            if basket.session.sends is None:  # an earlier part of the run had received all its replies
                self._deliver(basket, basket.session.keep())
            else:
                opened.append(basket)
        self._send(opened)

    def _ask_ahead(self, waiting: WaitingPlan) -> None:
        """Collect the questions that a plan is likely to ask later, so that they share the request of its first ones.

        It stops at the first step with questions for another judge, whose answers cannot be guessed.
        """
        plan = plan_of(waiting.plan_run.metric, waiting.plan_run.sample)
        steps, waiting.steps = iter(waiting.steps), []
        step = next_step(plan, None)
        for _ in range(_MAX_AHEAD):
            if step is None or (answers := self._likely_answers(waiting, step, next(steps, None))) is None:
                break
            step = next_step(plan, answers)
        plan.close()

    def _likely_answers(
        self, waiting: WaitingPlan, step: Step, taken: tuple[list[WorkUnit], KnownAnswers] | None
    ) -> list[Answer] | None:
        """Return answers to a step, as known or as likely; None if it is invalid or has questions for another judge.

        `taken`: units and answers of the same step of the plan run itself, if it has taken it.
        """
        try:
            units, found = taken or (self._answers.units(step, waiting.plan_run.sample), {})
        except Exception:  # noqa: BLE001  not a step, or a question for no judge: the plan run reports it if it gets here
            return None
        rests = [unit for unit in units if any(key not in found for key in unit.keys)]
        if taken is None:
            known = self._answers.known_all(rests)
            for held, _ in known:
                found.update(held)
            rests = [rest for _, rest in known if rest is not None]
        for unit in rests:
            if unit.bundled:
                self._collect(unit, waiting.block)
            elif taken is not None:
                return None
            else:  # answered here if it needs no request
                session = JudgeSession(unit, self._answers, self._price)
                if session.sends is not None:
                    return None
                found.update(session.keep())
        likely = [(key, question) for unit in units for key, question in zip(unit.keys, unit.questions, strict=True)]
        return [found[key] if key in found else question.guess() for key, question in likely]

    def _collect(self, unit: WorkUnit, block: int) -> _SharedSession:
        """Return the session that will answer a question, sent together with others about the same view."""
        flight = self._flights.get(unit.keys[0])
        if flight is None:
            name = (id(unit.judge), unit.view_key)
            flight = self._baskets.get(name)
            if flight is None:
                flight = self._baskets[name] = _SharedSession(self, block)
            flight.units.append(unit)
            self._flights.update(dict.fromkeys(unit.keys, flight))
        return flight

    async def close(self) -> None:
        """Store the partial replies of unfinished sessions, and stop."""
        if self._commit is not None:
            self._commit.cancel()
        if self.ended.done():
            self.ended.exception()  # retrieved, so that asyncio does not log it as never retrieved
        self._dispatcher.off_stop(self._stopped)
        self._dispatcher.read_all()  # replies that have arrived are processed before partial replies are stored
        # a session is listed under each of its keys; a dict removes the repetitions and keeps the order
        flights, self._flights = dict.fromkeys(self._flights.values()), {}
        for basket in self._baskets.values():  # an error ended the run before they were opened
            flights.pop(basket, None)
        try:
            for flight in flights:
                flight.session.leave()
        except (MeriloError, ValueError):  # a full disk, which the run has reported already; half a surrogate pair
            _log.exception("the partial replies of an interrupted judge session could not be stored")

    def post(self, send: OutgoingRequest, flight: _SharedSession, place: int, *, again: bool) -> None:
        """Put a request of a session into the queue of its endpoint."""
        messages = send.request.messages
        # the rubric, then the prompt, which starts with shared contexts: equal beginnings are sent one after another
        first = messages[0].text if messages else ""
        order = (flight.block, 0 if again else 1, first, messages[1].text if len(messages) > 1 else "")
        self._dispatcher.post(send, flight, place, order, proven=id(flight.session.unit.judge) in self._proven)

    def finish(self, flight: _SharedSession) -> None:
        """Store the answers of a finished session, and pass them to the plan runs that waited for it."""
        held = flight.session.keep(commit=False)
        self.waiting -= 1
        if self._unreadable or type(flight.session.verdicts[0]) is Failure:
            self._note_unreadable(flight)
        self._deliver(flight, held)

    def _note_unreadable(self, flight: _SharedSession) -> None:
        """Count consecutive sessions of one kind without a readable reply; at the limit, stop asking this kind."""
        provider, kind = flight.sent.provider, flight.sent.request.schema_name
        reply, key = flight.session.unreadable, (id(provider), kind)
        count = self._unreadable.get(key, 0)
        if count == _MAX_UNREADABLE or kind == FREE_TEXT:
            return
        self._unreadable[key] = count = 0 if reply is None else count + 1
        if reply is not None and count == _MAX_UNREADABLE:
            reason = f"{count} {kind.removesuffix('_together')} questions in a row got no readable reply"
            self._dispatcher.stop_asking(provider, kind, Failure(FailureKind.UNREADABLE, f"Not asked: {reason}."))
            self._dispatcher.warn_once(f"{reason}, so no more are asked. The last reply: {excerpt(reply)!r}.")

    def go_on(self) -> None:
        """Commit if it is due, and advance the plan runs whose answers have arrived."""
        self._answers.commit_if_due()
        self.advance_ready()
        self.on_reply()

    def _deliver(self, flight: _SharedSession, held: KnownAnswers) -> None:
        """Pass the answers of a session to the plan runs that waited for it."""
        for key in flight.session.unit.keys:
            self._flights.pop(key, None)
        for waiting in flight.waiting:
            waiting.held.update(held)
            waiting.missing -= 1
            if not waiting.missing and not waiting.abandoned:
                self._answered(waiting)

    def _cut(self, waiting: WaitingPlan) -> list[WorkUnit] | None:
        """Return the work units of a plan run's step; None if the plan run has an outcome, which is then reported."""
        units = None if waiting.plan_run.step is None else _units(waiting.plan_run, self._answers)
        if units is None:
            waiting.plan_run.close()
            waiting.done(waiting.plan_run)
        return units

    def _answered(self, waiting: WaitingPlan) -> None:
        waiting.plan_run.send(_keyed(waiting.units, waiting.held))
        self._ready.append(waiting)

    def _ask(self, unit: WorkUnit, waiting: WaitingPlan, flights: set[_SharedSession], fresh: KnownAnswers) -> None:
        """Join the sessions in flight that will answer part of this unit, and open a session for the rest."""
        rest: WorkUnit | None = unit
        in_the_air = [self._flights[key] for key in unit.keys if key in self._flights]
        if in_the_air:  # draws of one completion: a session in flight may answer only some of them
            flights.update(in_the_air)
            rest = unit.without(self._flights)
        if rest is not None and fresh:
            held = {key: fresh[key] for key in rest.keys if key in fresh}
            waiting.held.update(held)
            rest = rest.without(held)
        if rest is None:
            return
        if rest.bundled:
            flights.add(self._collect(rest, waiting.block))
            return
        session = JudgeSession(rest, self._answers, self._price)
        if session.sends is None:
            kept = session.keep()
            waiting.held.update(kept)
            fresh.update(kept)
            return
        flight = _SharedSession(self, waiting.block)
        flight.session = session
        for key in rest.keys:
            self._flights[key] = flight
        flights.add(flight)
        self._unsent += (flight,)

    def _send(self, flights: Sequence[_SharedSession]) -> None:
        for flight in flights:
            self.waiting += 1
            flight.send(again=flight.session.has_replies)

    def _count(self, unit: WorkUnit, held: KnownAnswers) -> None:
        self._dispatcher.count(len(held))
        if id(unit.judge) not in self._proven and any(isinstance(answer, Verdict) for answer in held.values()):
            self._proven.add(id(unit.judge))

    def _arm(self) -> None:
        """Schedule a commit of the stored answers, in case no other event commits them by then."""
        if self._commit is None and (due_s := self._answers.due_in()) is not None:
            self._commit = call_after(self._loop, due_s, self._commit_due)

    def _commit_due(self) -> None:
        self._commit = None
        try:
            self._answers.commit_if_due()
            self._arm()
        except Exception as error:  # noqa: BLE001  a full disk: the caller that runs the plans raises it
            self._dispatcher.stop(error)

    def _stopped(self, error: BaseException | None) -> None:
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)


def drive_rounds(
    plan_runs: Sequence[PlanRun],
    answers: AnswerStore,
    send_batch: BatchSender,
    *,
    price: Pricer = own_price,
    count: Callable[[int], None] = lambda _: None,
    late: bool = False,
) -> Sequence[PlanRun]:
    """Run all plans in rounds: each round sends the requests of every waiting plan, equal questions once. Return the
    plan runs.

    Each answer is stored when its last reply arrives. If `send_batch` ends early, so does this function, and some plan
    runs still wait for answers. With `late`, only the plan runs without an answer wait: their replies come later, to
    another call. The others continue. `count` is called with the number of answers that were known without a request.
    """
    for plan_run in plan_runs:
        plan_run.start(answers.reject)
    active = list(plan_runs)
    while active := [plan_run for plan_run in active if plan_run.step is not None]:
        cut = [_units(plan_run, answers) for plan_run in active]
        sessions, held = _looked_up([unit for units in cut for unit in units or ()], answers, price, count)
        if not _answer_all(sessions, send_batch, held, late=late) and not late:
            break
        going: list[PlanRun] = []
        for plan_run, units in zip(active, cut, strict=True):
            if units is not None and all(key in held for unit in units for key in unit.keys):
                plan_run.send(_keyed(units, held))
                going.append(plan_run)
        active = going
        answers.commit_if_due()
    return plan_runs


def _looked_up(
    units: Sequence[WorkUnit], answers: AnswerStore, price: Pricer, count: Callable[[int], None]
) -> tuple[list[JudgeSession], KnownAnswers]:
    """Return judge sessions for the questions without a known answer, equal questions once, and the known answers."""
    held: KnownAnswers = {}
    left: dict[tuple[int, bytes], list[WorkUnit]] = {}
    asked: set[bytes] = set()
    for known, missing in answers.known_all(units):
        count(len(known))
        held |= known
        rest = None if missing is None else missing.without(asked)
        if rest is not None:
            left.setdefault((id(rest.judge), rest.view_key if rest.bundled else rest.key), []).append(rest)
            asked.update(rest.keys)
    return [JudgeSession(bundle_of(each), answers, price) for each in left.values()], held


def _answer_all(sessions: Sequence[JudgeSession], send_batch: BatchSender, held: KnownAnswers, *, late: bool) -> bool:
    """Run all sessions and add their answers to `held`; return False if some have not finished.

    If `send_batch` ends before all replies have arrived, the other sessions end too, unless replies may be `late`.
    """
    for session in sessions:
        if session.sends is None:
            held |= session.keep()
    whole = True
    waiting = [session for session in sessions if session.sends is not None]
    while waiting:
        replied: list[JudgeSession] = []
        for session in _replied(waiting, send_batch):
            replied.append(session)
            if session.sends is None:
                held |= session.keep()
        whole = whole and len(replied) == len(waiting)
        if not (whole or late):
            break
        waiting = [session for session in replied if session.sends is not None]
    return whole


def _replied(sessions: Sequence[JudgeSession], send_batch: BatchSender) -> Iterator[JudgeSession]:
    """Yield each session once it has received all replies to its current requests and has processed them."""
    sends: list[OutgoingRequest] = []
    of: list[tuple[JudgeSession, int]] = []  # the session of each request, and the place of the request in it
    for session in sessions:
        for place, (send, key) in enumerate(zip(session.sends or (), session.request_keys, strict=True)):
            sends.append(OutgoingRequest(send.provider, send.request, key))
            of.append((session, place))
    for number, reply in send_batch(sends):
        session, place = of[number]
        if session.receive(place, reply):
            yield session
