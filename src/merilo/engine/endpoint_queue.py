"""The queue of one endpoint in one run, and the workers that send its requests.

The queue is ordered by block of samples, then by text: requests with the same beginning follow each other, which suits
prompt caches, and the oldest samples finish first. There are at most as many workers as the run's concurrency. Each
takes a request when the endpoint's limiter permits one more. A request with a temporary failure returns to the queue
after a wait.

A worker sends its next request before the previous reply is processed. The replies that arrive in one turn of the event
loop are processed together in the next one, at most `MAX_UNREAD` at a time, so that they do not delay the endpoint.

The module is long so that every path of a request through its endpoint is in one place.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING

from merilo.engine.amounts import Settled, settled
from merilo.engine.budget import UNPAID, BudgetDecision, Reached
from merilo.engine.event_loop import call_after
from merilo.engine.rate_limits import (
    CONCURRENCY,
    FIRST,
    LEAST_DEADLINE_S,
    MAX_PAUSE_S,
    MAX_WAIT_S,
    PRICED,
    RETRIES,
    BreakerAction,
    CircuitBreaker,
    Limiter,
    Order,
    PendingRequest,
    Permit,
    RequestLimits,
    TokenEstimator,
    asks_no_model,
    deadline_s,
    jitter_s,
    title_of,
)
from merilo.errors import (
    MeriloError,
    Permanent,
    ProviderDown,
    ProviderError,
    RateLimited,
    Refused,
    Temporary,
    TimedOut,
    TooLarge,
    Unreachable,
)
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Provider, Reply, ReplyPath
from merilo.providers.decision_request import DecisionRequest
from merilo.providers.problems import OVERLOADED
from merilo.runs.database import MAX_UNREAD
from merilo.runs.ledger import Charge

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.engine.queue_owner import OpenConnection, QueueOwner
    from merilo.judges.base import OutgoingRequest

_UNCOUNTED = Charge(None, 0, None, estimated=True)
"""The charge for a request that holds no text for a model, such as a question to a callable."""
_log = logging.getLogger("merilo")

UNREACHABLE_RETRY_S = 15.0
"""Seconds to keep retrying an endpoint that answered earlier in this run and cannot be reached any longer."""
_MAX_GONE_WAIT_S = 4.0
_MAX_TRIES = 100
_GRACE_S = 5.0


@dataclass(slots=True, eq=False)
class _Worker:
    pending: PendingRequest | None = None
    task: asyncio.Task[None] | None = None
    rest: asyncio.Future[PendingRequest] | None = None
    limit_s: float = inf
    deadline: float = inf
    overdue: bool = False
    abandoned: bool = False


class _Unheard:
    """Listener for the reply to a repeated request, which is of no use."""

    def on_reply(self, place: int, reply: Reply | Failure) -> None:
        """Ignore the reply."""


class EndpointQueue:
    """One endpoint's queue in one run."""

    def __init__(self, dispatcher: QueueOwner, provider: Provider) -> None:
        self._local = asks_no_model(provider)
        self._drops = self._local and getattr(provider, "drops_at_limit", False)
        self._remote = "base_url" in provider.fingerprint()
        limits = RequestLimits() if self._local else dispatcher.limits
        if not self._remote:  # code of the user does not say that it is asked too much
            limits = replace(limits, concurrency=dispatcher.limits.concurrency or CONCURRENCY)
        self.limiter = Limiter(limits)
        self.title = title_of(provider)
        self.flying = 0
        self._dispatcher = dispatcher
        self._loop = asyncio.get_running_loop()
        self._weighs = limits.tokens_per_minute is not None
        self._expected = TokenEstimator()
        self._priced = dispatcher.spending.price(provider, PRICED) is not None
        self._estimates = self._remote or self._priced
        self.stopped_kinds: dict[str, Failure] = {}
        """By the schema's name, the failures of requests that are no longer sent: their replies were never readable."""
        self.left_out_usd: float | None = None
        """Maximum cost of the cheapest request that was skipped: it alone could exceed the cost limit. None without."""
        self._breaker = CircuitBreaker()
        self._heap: list[tuple[Order, int, PendingRequest]] = []
        self._number = 0
        self._delayed = 0
        self._workers: set[_Worker] = set()
        self._resting: list[_Worker] = []
        self._pumping = False
        self._timer: asyncio.TimerHandle | None = None
        self._gone_since = inf
        self._failures = 0  # consecutive, retries included
        self._replies = 0
        self._newest = 0
        """Number of the newest permit whose request was answered."""
        self._tried_at = -1
        """The newest permit when a request was cancelled although none that was sent after it was answered."""
        self._reply_times: defaultdict[str, deque[tuple[float, Charge]]] = defaultdict(lambda: deque(maxlen=100))
        """By the schema's name, the seconds and the charges of the last requests that were answered."""
        self._answered: OutgoingRequest | None = None
        """A request with a reply, to be repeated before failures are blamed on the endpoint."""
        self._check: PendingRequest | None = None
        """That request, from when it is queued until the next reply or its failure."""
        self._may_check = False
        """True if there was a reply since the last check."""
        self._unread: deque[tuple[PendingRequest, Reply | Failure]] = deque()
        # small for a low concurrency, so that replies are processed early and nearly in order
        self._max_unread = min(MAX_UNREAD, limits.max_in_flight // 2)
        self._reading = False

    @property
    def queued(self) -> int:
        """Number of requests that wait, including those that wait for a retry."""
        return len(self._heap) + self._delayed

    @property
    def busy(self) -> bool:
        """True if a reply is pending that `halt` waits for: the request is in flight, or its reply is not processed
        yet.

        After a limit is reached, merilo's own work on this machine is not waited for, such as splitting a huge text.
        """
        waited_for = self.flying and not (self._drops and self._dispatcher.halted)
        return bool(waited_for or self._unread)

    @property
    def idle(self) -> bool:
        """True if no request is queued or in flight, and no reply is unprocessed."""
        return not (self.busy or self.queued)

    def post(self, pending: PendingRequest) -> None:
        """Put a request into the queue."""
        self._number += 1
        order = pending.order if self._remote else (*pending.order[:2], "", "")  # callables keep the order of the plans
        heappush(self._heap, (order, self._number, pending))  # the number keeps arrival order; requests do not compare
        self.pump_soon()

    def pump_soon(self) -> None:
        """Schedule `_pump` for the next turn of the loop, when all requests being posted now are in the queue."""
        if not self._pumping and (self._resting or len(self._workers) < self.limiter.most):
            self._pumping = True
            self._loop.call_soon(self._pump)

    def check(self, now: float) -> None:
        """Cancel requests that exceeded their timeout. A worker that does not react to cancellation is abandoned."""
        for worker in tuple(self._workers):
            pending, task = worker.pending, worker.task
            if pending is None or task is None or not (now > worker.deadline or self._lost(worker, pending, now)):
                continue
            if worker.overdue:  # its code swallowed the cancellation: settle the request without it
                worker.abandoned = True
                self._workers.discard(worker)
                self._ended(pending, self._too_late(worker))
                self.pump_soon()
            else:
                worker.overdue = True
                worker.deadline = now + _GRACE_S
                task.cancel()

    def _lost(self, worker: _Worker, pending: PendingRequest, now: float) -> bool:
        """Return True, once for a request, if it has waited much longer than the last replies took."""
        waited_s = now - worker.deadline + worker.limit_s
        if worker.deadline == inf or waited_s < LEAST_DEADLINE_S or pending.cut or pending.charge is None:
            return False
        answered = self._reply_times[pending.send.request.schema_name]
        if answered and waited_s < 10 * answered[-1][0]:  # the deadline is not sooner, and costs more to compute
            return False
        limit_s = deadline_s(answered, pending.charge)
        if worker.overdue or waited_s < limit_s:
            return False
        if pending.permit.number > self._newest:  # the server may be answering no request, so only one is retried
            if self._newest <= self._tried_at:
                return False
            self._tried_at = self.limiter.number
        worker.limit_s, pending.cut = round(limit_s), True
        return True

    def close(self) -> list[asyncio.Task[None]]:
        """Process the replies received, cancel all workers and return their tasks."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = [worker.task for worker in self._workers if worker.task is not None]
        for worker in self._workers:
            worker.overdue = False
        for task in tasks:
            task.cancel()
        self.read_all()
        return tasks

    # admission

    def _pump(self) -> None:
        self._pumping = False
        try:
            while self._resting or len(self._workers) < self.limiter.most:
                pending = self._next()
                if pending is None:
                    return
                if self._resting:
                    worker = self._resting.pop()
                    if worker.rest is not None:
                        worker.rest.set_result(pending)
                else:
                    worker = _Worker()
                    self._workers.add(worker)
                    worker.task = asyncio.create_task(self._work(worker, pending))
        except Exception as error:  # noqa: BLE001  an unknown price, a bug: the caller that runs the plans raises it
            self._dispatcher.stop(error)

    def _next(self) -> PendingRequest | None:
        """Return the next request that may be sent now; None if none may."""
        if not self._heap or self._dispatcher.halted:
            return None
        # requests that wait for a retry count too: their places are not given to new requests of a failing endpoint
        failing = not self._breaker.reached or self._failures >= FIRST
        if failing and self.flying + self._delayed >= self.limiter.room:
            return None
        action = self._breaker.action
        if action is BreakerAction.NONE:
            return self._first_that_fits(0)
        if self.flying:  # one of those in flight may still show that the endpoint works
            return None
        if action is BreakerAction.STOP:
            return None if self._check is None else self._first_that_fits(0)
        self._heap.sort()  # a sorted list is a heap
        pending = self._first_that_fits(self._breaker.probes)
        if pending is not None:
            self._breaker.probes -= 1
        return pending

    def _first_that_fits(self, probes: int) -> PendingRequest | None:
        """Return the first request of the queue that may be sent; None if it has to wait for its permit or for budget.

        `probes`: 0 for the head of the queue. Otherwise the number of probes left, which picks a request further back:
        at 3/4, 2/3 and 1/2 of the queue. Requests that alone could exceed the cost limit are removed, and the next one
        is tried.
        """
        while left := len(self._heap):
            pending = self._let_through(left * probes // (probes + 1))
            if pending is not None or len(self._heap) == left:
                return pending
        self._dispatcher.on_reply()  # every request left was too expensive: the run may have to end
        return None

    def _let_through(self, index: int) -> PendingRequest | None:
        pending = self._heap[index][2]
        if self.stopped_kinds and (failure := self.stopped_kinds.get(pending.send.request.schema_name)) is not None:
            self._take_out(index)
            self._unread.append((pending, failure))
            self._loop.call_soon(self._read)
            return None
        if not self._affordable(index, pending):
            return None
        permit = self.limiter.take(self._expected.tokens(pending.send.request) if self._weighs else 0)
        if not isinstance(permit, Permit):
            # infinite: another request's end will pump again, so no timer is needed
            if permit < inf and (self._timer is None or self._timer.when() > self._loop.time() + permit):
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = call_after(self._loop, permit, self._timed)
            return None
        self._take_out(index)
        pending.permit = permit
        if not self._local:
            send, spending = pending.send, self._dispatcher.spending
            pending.charge = _UNCOUNTED
            if self._estimates:
                reply_tokens = self._expected.max_reply(send.provider, send.request)
                pending.charge = spending.charge(send.provider, send.request, reply_tokens, priced=self._priced)
            pending.entry = spending.begin(pending.reserved_usd, pending.charge)
        self.flying += 1
        return pending

    def _take_out(self, index: int) -> None:
        if index == 0:
            heappop(self._heap)
        else:
            del self._heap[index]
            heapify(self._heap)

    def _affordable(self, index: int, pending: PendingRequest) -> bool:
        spending, send, cost = self._dispatcher.spending, pending.send, 0.0
        if not self._local and spending.needs_price:  # the maximum, so that the limit holds whatever the reply costs
            cost = spending.max_cost_usd(send.provider, self._expected.most(send.provider, send.request))
        over = spending.check(cost, free=self._local)
        if over is None:
            pending.reserved_usd = cost
            return True
        if over is BudgetDecision.EXPENSIVE:
            # removed for good: spending only grows, so it will not fit later in this call either
            self._take_out(index)
            self.left_out_usd = cost if self.left_out_usd is None else min(cost, self.left_out_usd)
        elif isinstance(over, Reached):
            self._dispatcher.halt(over)
        return False

    def _timed(self) -> None:
        self._timer = None
        self._pump()

    # sending

    async def _work(self, worker: _Worker, first: PendingRequest) -> None:
        pending: PendingRequest | None = first
        try:
            while not worker.abandoned:
                if pending is None:
                    worker.rest = self._loop.create_future()
                    self._resting.append(worker)
                    pending = await worker.rest
                result = await self._sent(worker, pending)
                if not worker.abandoned:
                    self._ended(pending, result)
                    pending = self._next()
                    if self._heap and self.flying < self.limiter.room:  # the limiter may have widened
                        self.pump_soon()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  a missing key, a bug, an exiting callable: the caller raises it
            self._dispatcher.stop(error)

    async def _sent(self, worker: _Worker, pending: PendingRequest) -> Reply | ProviderError | None:
        """Send a request; return its reply or error, or None if it must be sent again with adapted parameters."""
        dispatcher, send = self._dispatcher, pending.send
        worker.pending = pending
        try:
            opened = dispatcher.opened(send.provider) or await self._open(pending)
            worker.limit_s = opened.limit_s
            worker.deadline = time.monotonic() + opened.limit_s
            try:
                return await opened.send(send.request)
            except (MeriloError, MemoryError):
                raise
            except Exception as error:  # in a user's provider: its failure is a failure of this question
                if self._local or type(send.provider).__module__.startswith("merilo."):
                    raise  # a bug of ours
                _log.exception("the provider %s raised an error", self.title)
                return Permanent(f"the provider {self.title} raised {type(error).__name__}: {error}")
        except ProviderError as error:
            return error
        except asyncio.CancelledError:
            if not worker.overdue:
                raise
            return self._too_late(worker)
        finally:
            worker.deadline, worker.pending = inf, None
            if worker.overdue and worker.task is not None and not worker.abandoned:
                # the cancellation was the timeout's: without uncancel(), the worker's task would count as cancelled
                worker.overdue = False
                worker.task.uncancel()

    async def _open(self, pending: PendingRequest) -> OpenConnection:
        """Return the connection for a request. Cancel the reservation if it cannot be opened (no key)."""
        try:
            return await self._dispatcher.open(pending.send.provider)
        except ProviderError:
            raise
        except BaseException:
            self._cancel(pending)
            raise

    def _cancel(self, pending: PendingRequest) -> None:
        """Release the reservation of a request that was not sent after all."""
        if pending.entry:
            self._dispatcher.spending.cancelled(pending.entry, pending.reserved_usd)
            pending.entry = 0

    def _too_late(self, worker: _Worker) -> TimedOut:
        return TimedOut(f"No reply from {self.title} within {worker.limit_s:g} s; the request was cancelled.")

    def _ended(self, pending: PendingRequest, result: Reply | ProviderError | None) -> None:
        """Process the result of a request: hand over the reply, retry, or record the failure."""
        self.flying -= 1
        if result is None:  # its server rejected a parameter: the request counts and costs nothing
            self.limiter.land(pending.permit, good=True)
            if pending.entry:
                self._dispatcher.spending.refused(pending.entry, pending.reserved_usd)
                pending.entry = 0
            self._post_again(pending)
        elif isinstance(result, ProviderError):
            if pending.entry:
                self._dispatcher.spending.failed(pending.entry, pending.reserved_usd, result)
                pending.entry = 0
            self._dispatcher.timed_out += isinstance(result, TimedOut)
            if pending is self._check and not isinstance(result, RateLimited):
                self._check = None
                result = ProviderDown(str(result)) if isinstance(result, Unreachable) else result
            self._failed(pending, result)
        else:
            self._replied(pending, result)
        if not self.flying:
            self._on_idle()
        self._dispatcher.on_reply()

    def _replied(self, pending: PendingRequest, reply: Reply) -> None:
        dispatcher, found = self._dispatcher, self._settled(pending, reply)
        usage = found.usage
        total = None if usage.input_tokens is None else usage.input_tokens + (usage.output_tokens or 0)
        self.limiter.land(pending.permit, good=True, tokens=total, kind=pending.send.request.schema_name)
        self._gone_since, self._failures = inf, 0
        self._replies += 1
        self._newest = max(self._newest, pending.permit.number)
        if self._remote and reply.seconds and pending.charge is not None:
            self._reply_times[pending.send.request.schema_name].append((reply.seconds, pending.charge))
        self._answered, self._check, self._may_check = self._answered or pending.send, None, not self._local
        # replies correct the estimates, on which token limits and reserves are based
        if self._weighs or dispatcher.spending.needs_price:
            self._expected.learn(pending.send.provider, pending.send.request, usage)
        if pending.entry:
            dispatcher.settle(pending.entry, pending.reserved_usd, pending.send.provider, found)
            pending.entry = 0
        for waiting, failure in self._breaker.good():
            self._hand_over(waiting, failure)
        self._hand_over(pending, reply)

    def _settled(self, pending: PendingRequest, reply: Reply) -> Settled:
        """Return the usage that the request is charged for, now that its reply is known."""
        if self._estimates and reply.path is not ReplyPath.LOCAL:
            charge = pending.charge or _UNCOUNTED
            read, limit = charge.input_tokens, charge.reply_tokens
            return settled(pending.send.request, reply, charged=read, max_reply_tokens=limit)
        usage = UNPAID if reply.path is ReplyPath.LOCAL else reply.usage
        return Settled(usage, estimated=False, input_estimated=False)

    def _failed(self, pending: PendingRequest, error: ProviderError) -> None:
        request = pending.send.request
        alone = isinstance(request, DecisionRequest) and len(request.questions) == 1
        if not isinstance(error, Unreachable):
            self._gone_since = inf
        if isinstance(error, RateLimited) or error.status in OVERLOADED:
            asked_s = error.retry_after_s or 0.0 if isinstance(error, RateLimited) else 0.0
            # a longer pause ends the run
            self.limiter.limited(pending.permit, asked_s if asked_s <= MAX_PAUSE_S else 0.0)
        else:
            self.limiter.land(pending.permit, good=False)
        if isinstance(error, ProviderDown) and error.sent:
            self._dispatcher.fail(error)
        elif isinstance(error, ProviderDown):  # there is no server, so no other request in flight was sent either
            for worker in self._workers:
                if worker.pending is not None:
                    self._cancel(worker.pending)
            self._dispatcher.stop(error)
        # a refusal is an answer too, and a request of several questions that is too large: the endpoint works
        elif isinstance(error, Refused) or (isinstance(error, TooLarge) and not alone):
            self._failures = 0
            for waiting, failure in self._breaker.good():
                self._hand_over(waiting, failure)
            kind = FailureKind.REFUSED if isinstance(error, Refused) else FailureKind.TOO_LARGE
            self._hand_over(pending, Failure(kind, str(error)))
        elif isinstance(error, RateLimited | Temporary):
            self._retry(pending, error)
        else:
            kind = FailureKind.TOO_LARGE if isinstance(error, TooLarge) else FailureKind.PERMANENT
            self._give_up(pending, error, kind)

    def _on_idle(self) -> None:
        """Act on withheld failures once nothing is in flight: stop the run, or attribute them to their questions."""
        if self._breaker.action is BreakerAction.STOP and self._may_check and self._answered is not None:
            self._may_check = False
            self._check = PendingRequest(self._answered, _Unheard(), 0, (-1, 0, "", ""), proven=False)
            self.post(self._check)
        elif self._breaker.action is BreakerAction.STOP and self._check is None:
            count = self._breaker.count
            which = f"{count} consecutive requests" if self._breaker.reached else f"The first {count} requests"
            self._dispatcher.stop(
                ProviderDown(
                    f"{which} to {self.title} failed. Last error: {self._breaker.last} "
                    "They were not recorded; repeating the command retries them."
                )
            )
        elif not self._heap and not self._delayed and not self._dispatcher.halted:
            for waiting, failure in self._breaker.release():
                self._hand_over(waiting, failure)

    # failing

    def _retry(self, pending: PendingRequest, error: RateLimited | Temporary) -> None:
        self._failures += 1
        wait_s = self._wait_s(pending, error)
        if wait_s is None:
            self._give_up(pending, error, FailureKind.TEMPORARY)
            return
        self._dispatcher.warn_once(f"{error} Retrying.")
        _log.info("%s Retrying in %.1f s.", error, wait_s)
        self._dispatcher.retries += 1
        self._delayed += 1
        if wait_s <= 0:
            self._back(pending)
        else:
            self._loop.call_later(wait_s, self._back, pending)

    def _wait_s(self, pending: PendingRequest, error: RateLimited | Temporary) -> float | None:
        """Return the seconds to wait before a retry; None if the request failed permanently or the run has to stop."""
        if isinstance(error, Unreachable):
            now = time.monotonic()
            self._gone_since = min(self._gone_since, now)
            if not pending.unreached:
                pending.replies_before = self._replies
            pending.unreached += 1
            if now - self._gone_since >= UNREACHABLE_RETRY_S or pending.unreached > _MAX_TRIES:
                if not self._may_check and (self._breaker.reached or not self._heap):
                    self._dispatcher.fail(ProviderDown(str(error)))
                self._breaker.trip()
            elif self._replies == pending.replies_before or pending.unreached <= RETRIES:
                return jitter_s(pending.unreached, _MAX_GONE_WAIT_S)
            return None  # or other requests were answered while this one failed, so that it fails alone
        if isinstance(error, RateLimited):
            if (asked_s := error.retry_after_s or 0.0) <= MAX_PAUSE_S:
                again_s = pending.limited_again_s(error)
                # a pause of the whole endpoint is waited for in the queue, where the order is kept
                return None if again_s is None else again_s + max(0.0, asked_s - self.limiter.paused_s)
            wait = f"The server asked to wait {asked_s:.0f} s (merilo waits at most {MAX_PAUSE_S:.0f} s)."
            self._dispatcher.fail(ProviderDown(f"{error} {wait} Repeat the command after that."))
            return None
        # no retries while the breaker is tripped: they would only delay the end of a run that has to stop
        if self._breaker.action is not BreakerAction.NONE:
            return None
        pending.tries += 1
        return jitter_s(pending.tries, MAX_WAIT_S) if pending.tries <= RETRIES else None

    def _back(self, pending: PendingRequest) -> None:
        self._delayed -= 1
        self._post_again(pending)

    def _post_again(self, pending: PendingRequest) -> None:
        pending.order = (pending.order[0], 0, *pending.order[2:])  # before first requests
        self.post(pending)

    def _give_up(self, pending: PendingRequest, error: ProviderError, kind: FailureKind) -> None:
        if self._dispatcher.over or self._dispatcher.failing:  # not recorded, so that resuming the run asks again
            return
        self._dispatcher.given_up += 1
        failure, wrong = Failure(kind, str(error)), kind is not FailureKind.TEMPORARY
        if isinstance(pending.to, _Unheard):
            return
        if not self._breaker.bad(pending, failure, wrong=wrong, proven=pending.proven):
            self._hand_over(pending, failure)

    # replies

    def _hand_over(self, pending: PendingRequest, reply: Reply | Failure) -> None:
        """Pass a reply to its listener: at once if the judge is local, otherwise in the next turn of the loop."""
        self._unread.append((pending, reply))
        if self._local or len(self._unread) > self._max_unread:
            self._read_some()
        elif not self._reading:
            self._reading = True
            self._loop.call_soon(self._read)

    def _read(self) -> None:
        self._reading = False
        if not self._unread:
            return
        try:
            self._read_some()
            self._dispatcher.on_reply()
        except BaseException as error:  # noqa: BLE001  a full disk, a bug: the caller that runs the plans raises it
            self._dispatcher.stop(error)

    def _read_some(self) -> None:
        """Pass on all replies, and then continue the plans that waited for them together."""
        go_on: dict[Callable[[], None], None] = {}
        while self._unread:
            pending, reply = self._unread.popleft()
            if (then := pending.to.on_reply(pending.place, reply)) is not None:
                go_on[then] = None
        for then in go_on:
            then()

    def read_all(self) -> None:
        """Process the replies received before the end. Errors are only logged: the run ends with an earlier one."""
        try:
            self._read_some()
        except Exception:  # noqa: BLE001  logged: the error that ended the run is the one to raise
            _log.exception("a reply received at the end of the run could not be stored")
