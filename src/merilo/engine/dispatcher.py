"""Dispatcher of one run: keeps one queue per endpoint, within one event loop."""

from __future__ import annotations

import asyncio
import time
from math import inf
from typing import TYPE_CHECKING, Self

from merilo.engine.budget import Budget, Spending, own_price
from merilo.engine.endpoint_queue import EndpointQueue
from merilo.engine.progress import Traffic
from merilo.engine.queue_owner import DRAIN_S, QueueOwner
from merilo.engine.rate_limits import Order, PendingRequest, ReplyListener, RequestLimits, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from merilo.engine.budget import Pricer
    from merilo.judges.base import OutgoingRequest
    from merilo.judging.verdicts import Failure
    from merilo.providers.base import Provider, Reply
    from merilo.runs.ledger import Balance, Ledger

_STUCK_S = 0.1
_MAX_CLOSING_S = 5.0


class Dispatcher(QueueOwner):
    """Dispatcher that sends the requests of one run; an async context manager."""

    def __init__(
        self,
        limits: RequestLimits | None = None,
        *,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        elsewhere: Balance | None = None,
        price: Pricer = own_price,
        known: Mapping[str, Mapping[str, str]] | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`ledger` belongs to the run directory; `elsewhere` is what other directories have spent of the same budget.

        `known` are the `adaptations` of an earlier part of the run, so that they need not be learnt again.

        `tell` is called once for each kind of problem that delays requests.
        """
        spending = Spending(budget or Budget(), price, ledger, elsewhere=elsewhere)
        super().__init__(limits or RequestLimits(), spending, known, tell)
        self._queues: dict[str, EndpointQueue] = {}
        self._queue_of: dict[int, EndpointQueue] = {}
        self._deadline: asyncio.TimerHandle | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._watching: asyncio.TimerHandle | None = None
        self.known = 0
        """Number of answers that needed no request. The code that looks answers up adds to it."""

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        if self.spending.seconds_left < inf:
            self._deadline = self._loop.call_later(max(0.0, self.spending.seconds_left), self._time_is_up)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.halted = self.over = True
        for timer in (self._deadline, self._watching, self._ending, self._draining):
            if timer is not None:
                timer.cancel()
        tasks = [task for queue in self._queues.values() for task in queue.close()]
        if tasks:  # with a timeout, since a provider's code may swallow its cancellation
            await asyncio.wait(tasks, timeout=_MAX_CLOSING_S)
        closing = asyncio.create_task(self._stack.aclose())
        if (await asyncio.wait({closing}, timeout=_MAX_CLOSING_S))[0]:
            closing.result()

    def post(self, send: OutgoingRequest, to: ReplyListener, place: int, order: Order, *, proven: bool = False) -> None:
        """Put a request into its endpoint's queue. Its reply is passed to `to`, together with `place`.

        `proven`: its judge has answered before, so an invalid request is not evidence of a failing endpoint.
        """
        queue = self._queue_of.get(id(send.provider)) or self._queue_for(send.provider)
        queue.post(PendingRequest(send, to, place, order, proven=proven))

    async def carry(self, send: OutgoingRequest) -> Reply | Failure:
        """Send one request; return its reply or failure. Raises ProviderDown if no request to the provider can work."""
        if self.over:  # no queue would send it
            raise self._error or asyncio.CancelledError
        single = _Single(self._loop.create_future())
        self.on_stop(single.stopped)
        try:
            self.post(send, single, 0, (0, 1, "", ""))
            return await single.future
        finally:
            self.off_stop(single.stopped)

    def count(self, known: int) -> None:
        """Add to the number of answers that were known without a request."""
        self.known += known

    def stop_asking(self, provider: Provider, kind: str, failure: Failure) -> None:
        """Send no more requests with this schema name to a provider's endpoint; they get the failure instead."""
        self._queue_for(provider).stopped_kinds[kind] = failure

    def on_reply(self) -> None:
        """See `QueueOwner`."""
        if self.halted and not self.over and not any(queue.busy for queue in self._queues.values()):
            self.stop(None)
        elif self.spending.needs_price:
            # a reply usually costs less than was reserved for it, so requests that had to wait may fit now
            for queue in self._queues.values():
                queue.pump_soon()
            if self._ending is None and self._stuck:
                self._ending = self._loop.call_later(_STUCK_S, self._end_stuck, self.spending.sent)

    @property
    def _stuck(self) -> bool:
        """True if every request left to send is too expensive."""
        queues = self._queues.values()
        return any(queue.left_out_usd is not None for queue in queues) and all(queue.idle for queue in queues)

    def _end_stuck(self, sent: int) -> None:
        """Halt if nothing was sent since `_stuck`: plans that just got an answer may ask cheaper questions."""
        self._ending = None
        if self._stuck and not self.halted:
            if sent == self.spending.sent:
                cheapest = min(queue.left_out_usd for queue in self._queues.values() if queue.left_out_usd is not None)
                self.halt(self.spending.cost_reached(cheapest))
            else:
                self.on_reply()

    def read_all(self) -> None:
        """Process the replies that arrived before the end."""
        for queue in self._queues.values():
            queue.read_all()

    def traffic(self) -> Traffic:
        """Return the current request statistics."""
        queues = self._queues.values()
        return Traffic(
            sent=self.spending.sent,
            in_flight=sum(queue.flying for queue in queues),
            queued=sum(queue.queued for queue in queues),
            retries=self.retries,
            given_up=self.given_up,
            known=self.known,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost_usd=self.spending.cost_usd - self.spending.earlier_usd if self.known_price else None,
            paused_s=max((queue.limiter.paused_s for queue in queues), default=0.0),
        )

    def _queue_for(self, provider: Provider) -> EndpointQueue:
        """Return the queue of the provider's endpoint. Providers with the same address and model share one."""
        # without an address (a callable, a model in this process) each provider object is a separate endpoint
        title = title_of(provider) if "base_url" in provider.fingerprint() else f"{title_of(provider)} {id(provider)}"
        queue = self._queues.get(title)
        if queue is None:
            queue = self._queues[title] = EndpointQueue(self, provider)
        self._queue_of[id(provider)] = queue
        self._providers[id(provider)] = provider
        return queue

    def watch(self) -> None:
        """See `QueueOwner`."""
        if self._watching is None:
            self._watch()

    def _watch(self) -> None:
        now = time.monotonic()
        for queue in self._queues.values():
            queue.check(now)
        if not self.over:
            self._watching = self._loop.call_later(min(1.0, self._shortest_s / 4), self._watch)

    def _time_is_up(self) -> None:
        """Send nothing more, and cancel the requests that are still in flight 2 s later; they count as unanswered."""
        self.halt(self.spending.time_limit_message)
        if self._draining is None:
            self._draining = self._loop.call_later(DRAIN_S, self.stop, None)


class _Single:
    """Listener for the reply to one request."""

    def __init__(self, future: asyncio.Future[Reply | Failure]) -> None:
        self.future = future

    def on_reply(self, place: int, reply: Reply | Failure) -> None:
        del place
        if not self.future.done():
            self.future.set_result(reply)

    def stopped(self, error: BaseException | None) -> None:
        if not self.future.done():
            self.future.set_exception(error or asyncio.CancelledError())
