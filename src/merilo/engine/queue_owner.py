"""What the endpoint queues of one run share: its limits, spending and connections, and its end."""

from __future__ import annotations

import asyncio
import dataclasses
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, cast

from merilo.engine.rate_limits import RequestLimits, asks_no_model, title_of
from merilo.providers.base import AdaptingConnection, Connection, Provider, Reply, Request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from merilo.engine.amounts import Settled
    from merilo.engine.budget import Reached, Spending

DEFAULT_TIMEOUT_S = 120.0
"""Seconds before a request is cancelled if its provider declares no timeout."""
_LATE_S = 5.0
"""Extra seconds beyond a provider's own timeout. The request is then cancelled, in case the provider did not."""
_MAX_WARNINGS = 5
DRAIN_S = 2.0
"""Seconds to wait for the requests in flight after an error or the time limit has ended the run. Replies that arrive
in this time are stored, and requests that are refused do not count as unanswered."""


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """An open connection, and the seconds after which a request on it is cancelled."""

    connection: Connection
    limit_s: float
    send: Callable[[Request], Awaitable[Reply | None]]
    """Sends a request once. Returns None if the request must be sent again with adapted parameters."""


class QueueOwner(ABC):
    """The state that the queues of one run share.

    `stop`, `fail` and `halt` end the run. `stop` ends it at once. `fail` and `halt` send nothing more and first wait
    for the requests in flight, for at most 2 s after an error or the time limit. Callbacks registered with `on_stop`
    are called at the end.
    """

    def __init__(
        self,
        limits: RequestLimits,
        spending: Spending,
        known: Mapping[str, Mapping[str, str]] | None,
        tell: Callable[[str], None],
    ) -> None:
        self.limits = limits
        self.spending = spending
        self.halted = False
        """True once no more requests are sent."""
        self.reached: Reached | None = None
        """The limit that ended this call before all was done; None if there was none, or if an error ended it."""
        self.over = False
        """True once no more replies are processed."""
        self.retries = self.given_up = self.input_tokens = self.output_tokens = 0
        self.timed_out = 0
        """Number of requests of this call that had no reply in time."""
        self.known_price = True
        """False once a reply was settled whose price is unknown."""
        self._say = tell
        self._warned: set[str] = set()
        self._known = dict(known or {})
        self._stack = AsyncExitStack()
        self._opening: dict[int, asyncio.Task[OpenConnection]] = {}
        self._opened: dict[int, OpenConnection] = {}
        self._providers: dict[int, Provider] = {}  # keeps the ids in the two above valid
        self._stops: set[Callable[[BaseException | None], None]] = set()
        self._error: BaseException | None = None
        self._draining: asyncio.TimerHandle | None = None
        self._shortest_s = inf

    @abstractmethod
    def on_reply(self) -> None:
        """React to a finished request: end if it was the last one, or send requests that fit the budget now."""

    @abstractmethod
    def watch(self) -> None:
        """Check from now on for requests that exceeded their timeout."""

    # the end

    def on_stop(self, callback: Callable[[BaseException | None], None]) -> None:
        """Register a callback for the end. It receives the error, or None if a limit was reached."""
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
            loop = asyncio.get_running_loop()
            self._error, self.halted = error, True
            self._draining = loop.call_later(DRAIN_S, self.stop, error)
            loop.call_soon(self.on_reply)

    def halt(self, reached: Reached) -> None:
        """Send nothing more, and end when all requests in flight are settled."""
        if not self.halted:
            self.halted, self.reached = True, reached
            # not at once: the caller may be a queue that is just sending
            asyncio.get_running_loop().call_soon(self.on_reply)

    # reports

    def warn_once(self, sentence: str) -> None:
        """Show the user a warning, each text once and at most five in all."""
        if sentence not in self._warned and len(self._warned) < _MAX_WARNINGS:
            self._warned.add(sentence)
            self._say(sentence)

    def settle(self, entry: int, reserved_usd: float, provider: Provider, settled: Settled) -> None:
        """Settle a request that was answered, and count its tokens."""
        self.input_tokens += settled.usage.input_tokens or 0
        self.output_tokens += settled.usage.output_tokens or 0
        cost = self.spending.replied(entry, reserved_usd, provider, settled)
        self.known_price = self.known_price and cost is not None

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
        if limit_s < inf:
            self._shortest_s = min(self._shortest_s, limit_s)
            self.watch()
        return opened


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
