"""Dispatcher of one run: opens one connection per provider and keeps one queue per endpoint, within one event loop."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from contextlib import AsyncExitStack
from math import inf
from typing import TYPE_CHECKING, Any, Self, cast

from merilo.engine.budget import Budget, Spending, own_price
from merilo.engine.endpoint_queue import EndpointQueue
from merilo.engine.progress import Traffic
from merilo.engine.queue_owner import OpenConnection
from merilo.engine.rate_limits import RequestLimits, asks_no_model, title_of
from merilo.engine.retries import PendingRequest
from merilo.providers.base import AdaptingConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from merilo.engine.amounts import Settled
    from merilo.engine.budget import Grant, Pricer, Reached
    from merilo.engine.retries import Order, ReplyListener
    from merilo.judges.base import OutgoingRequest
    from merilo.judging.verdicts import Failure
    from merilo.providers.base import Provider, Reply
    from merilo.runs.ledger import Balance, Ledger

DEFAULT_TIMEOUT_S = 120.0
"""Seconds before a request is cancelled if its provider declares no timeout."""
_LATE_S = 5.0
"""Extra seconds beyond a provider's own timeout. The dispatcher then cancels the request, in case the provider did
not."""
_MAX_WARNINGS = 5
_STUCK_S = 0.1
_MAX_CLOSING_S = 5.0
_DRAIN_S = 2.0
"""Seconds to wait for the requests in flight after an error or the time limit has ended the run. Replies that arrive
in this time are stored, and requests that are refused do not count as unanswered."""


class Dispatcher:
    """Dispatcher that sends the requests of one run; an async context manager.

    `stop`, `fail` and `halt` end it. `stop` ends it at once. `fail` and `halt` send nothing more and first wait for the
    requests in flight, for at most 2 s after an error or the time limit. Callbacks registered with `on_stop` are called
    at the end.
    """

    def __init__(
        self,
        limits: RequestLimits | None = None,
        *,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        elsewhere: Balance | None = None,
        price: Pricer = own_price,
        grant: Grant | None = None,
        known: Mapping[str, Mapping[str, str]] | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`ledger` belongs to the run directory; `elsewhere` is what other directories have spent of the same budget.

        `grant`: see `Spending`.

        `known` are the `adaptations` of an earlier part of the run, so that they need not be learnt again.

        `tell` is called once for each kind of problem that delays requests.
        """
        self.limits = limits or RequestLimits()
        self.price = price
        self.halted = False
        """True once no more requests are sent."""
        self.reached: Reached | None = None
        """The limit that ended this call before all was done; None if there was none, or if an error ended it."""
        self.over = False
        """True once no more replies are processed."""
        self.spending = Spending(budget or Budget(), price, ledger, elsewhere=elsewhere, grant=grant)
        self._say = tell
        self._warned: set[str] = set()
        self._known = dict(known or {})
        self._stack = AsyncExitStack()
        self._opening: dict[int, asyncio.Task[OpenConnection]] = {}
        self._opened: dict[int, OpenConnection] = {}
        self._providers: dict[int, Provider] = {}  # keeps the ids in the two above valid
        self._queues: dict[str, EndpointQueue] = {}
        self._queue_of: dict[int, EndpointQueue] = {}
        self._stops: set[Callable[[BaseException | None], None]] = set()
        self._error: BaseException | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._draining: asyncio.TimerHandle | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._watching: asyncio.TimerHandle | None = None
        self._shortest_s = inf
        self.known = 0
        """Number of answers that needed no request. The code that looks answers up adds to it."""
        self.retries = 0
        self.given_up = 0
        self._input_tokens = self._output_tokens = 0
        self._known_price = True
        self.timed_out = 0
        """Number of requests of this call that had no reply in time."""

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

    # sending

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
        self._stops.add(single.stopped)
        try:
            self.post(send, single, 0, (0, 1, "", ""))
            return await single.future
        finally:
            self._stops.discard(single.stopped)

    def count(self, known: int) -> None:
        """Add to the number of answers that were known without a request."""
        self.known += known

    def on_stop(self, callback: Callable[[BaseException | None], None]) -> None:
        """Register a callback for the end of the dispatcher. It receives the error, or None if a limit was reached."""
        self._stops.add(callback)

    def off_stop(self, callback: Callable[[BaseException | None], None]) -> None:
        """Unregister a callback of `on_stop`."""
        self._stops.discard(callback)

    def stop(self, error: BaseException | None) -> None:
        """End at once."""
        if not self.over:
            self.over = self.halted = True
            for callback in tuple(self._stops):  # a copy: callbacks may unregister themselves
                callback(self._error or error)

    @property
    def failing(self) -> bool:
        """True once an error has ended the run, also while requests in flight are still awaited."""
        return self._error is not None

    def fail(self, error: BaseException) -> None:
        """Send nothing more, and end with this error once all requests in flight are settled, at most 2 s later."""
        if not self.over and self._error is None:
            self._error, self.halted = error, True
            self._draining = self._loop.call_later(_DRAIN_S, self.stop, error)
            self._loop.call_soon(self.on_reply)

    def halt(self, reached: Reached) -> None:
        """Send nothing more, and end when all requests in flight are settled."""
        if not self.halted:
            self.halted, self.reached = True, reached
            self._loop.call_soon(self.on_reply)  # not at once: the caller may be a queue that is just sending

    def on_reply(self) -> None:
        """React to a finished request: end if it was the last one, or send requests that fit the budget now."""
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

    # reporting

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
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
            cost_usd=self.spending.now_usd if self._known_price else None,
            paused_s=max((queue.limiter.paused_s for queue in queues), default=0.0),
        )

    def warn_once(self, sentence: str) -> None:
        """Show the user a warning, each text once and at most five in all."""
        if sentence not in self._warned and len(self._warned) < _MAX_WARNINGS:
            self._warned.add(sentence)
            self._say(sentence)

    def settle(self, entry: int, reserved_usd: float, provider: Provider, settled: Settled) -> None:
        """Settle a request that was answered, and count its tokens."""
        self._input_tokens += settled.usage.input_tokens or 0
        self._output_tokens += settled.usage.output_tokens or 0
        cost = self.spending.replied(entry, reserved_usd, provider, settled)
        self._known_price = self._known_price and cost is not None

    def notices(self) -> list[str]:
        """Return the notices of the open connections for the user."""
        return [notice for opened in self._opened.values() for notice in opened.connection.notices()]

    def adaptations(self) -> Mapping[str, Mapping[str, str]]:
        """Return, by provider, the request parameters that its server rejected and how they were dropped or renamed.

        Includes the adaptations that were known from an earlier part of the run.
        """
        found = {
            title_of(self._providers[key]): dict(each.connection.adaptations()) for key, each in self._opened.items()
        }
        return {**self._known, **{title: made for title, made in found.items() if made}}

    # connections

    def opened(self, provider: Provider) -> OpenConnection | None:
        """Return the provider's connection; None if it is not open."""
        return self._opened.get(id(provider))

    async def open(self, provider: Provider) -> OpenConnection:
        """Return the provider's connection; callers share one attempt to open it. Raises UsageError without a key."""
        opening = self._opening.get(id(provider))
        if opening is None:
            self._providers[id(provider)] = provider
            opening = self._opening[id(provider)] = asyncio.create_task(self._connect(provider))
        return await asyncio.shield(opening)  # a cancelled caller must not close it for the others

    async def _connect(self, provider: Provider) -> OpenConnection:
        timed, limit_s = _timed(provider, self.limits.timeout_s)
        known = self._known.get(title_of(provider), {})
        connection = await self._stack.enter_async_context(timed.connect(known=known))
        send = connection.attempt if isinstance(connection, AdaptingConnection) else connection.send
        opened = self._opened[id(provider)] = OpenConnection(connection, limit_s, send)
        self._shortest_s = min(self._shortest_s, limit_s)
        if self._watching is None and limit_s < inf:
            self._watch()
        return opened

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

    def _watch(self) -> None:
        """Check periodically for requests that exceeded their timeout."""
        now = time.monotonic()
        for queue in self._queues.values():
            queue.check(now)
        if not self.over:
            self._watching = self._loop.call_later(min(1.0, self._shortest_s / 4), self._watch)

    def _time_is_up(self) -> None:
        """Send nothing more, and cancel the requests that are still in flight 2 s later; they count as unanswered."""
        self.halt(self.spending.time_limit_message)
        if self._draining is None:
            self._draining = self._loop.call_later(_DRAIN_S, self.stop, None)


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


def _timed(provider: Provider, timeout_s: float | None) -> tuple[Provider, float]:
    """Return the provider with the run's timeout, if it accepts one, and the seconds after which a request is
    cancelled.

    A provider that runs on this machine and asks no model keeps its own timeout.
    """
    if asks_no_model(provider):
        return provider, inf
    holder: Any = getattr(provider, "endpoint", provider)  # an embedder's timeout is its endpoint's
    own: float | None = getattr(holder, "timeout_s", None)
    if timeout_s is None or own is None or not hasattr(holder, "__dataclass_fields__"):
        return provider, timeout_s or (DEFAULT_TIMEOUT_S if own is None else own + _LATE_S)
    timed: Any = dataclasses.replace(holder, timeout_s=timeout_s)
    if holder is not provider:
        timed = dataclasses.replace(cast("Any", provider), endpoint=timed)
    return cast("Provider", timed), timeout_s + _LATE_S
