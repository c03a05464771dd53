"""The protocol of a dispatcher as its endpoint queues see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from merilo.engine.amounts import Settled
    from merilo.engine.budget import Pricer, Reached, Spending
    from merilo.engine.rate_limits import RequestLimits
    from merilo.providers.base import Connection, Provider, Reply, Request


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """An open connection, and the seconds after which a request on it is cancelled."""

    connection: Connection
    limit_s: float
    send: Callable[[Request], Awaitable[Reply | None]]
    """Sends a request once. Returns None if the request must be sent again with adapted parameters."""


class QueueOwner(Protocol):
    """The owner of the queues of one run; `engine/dispatcher.py` documents each member."""

    limits: RequestLimits
    price: Pricer
    spending: Spending
    halted: bool
    over: bool
    timed_out: int
    retries: int
    given_up: int

    @property
    def failing(self) -> bool:
        """True once an error has ended the run."""
        ...

    def opened(self, provider: Provider) -> OpenConnection | None:
        """Return the provider's connection; None if it is not open."""
        ...

    async def open(self, provider: Provider) -> OpenConnection:
        """Return the provider's connection. Raises UsageError for a missing key."""
        ...

    def warn_once(self, sentence: str) -> None:
        """Show the user a warning once."""
        ...

    def settle(self, entry: int, reserved_usd: float, provider: Provider, settled: Settled) -> None:
        """Settle a request that was answered."""
        ...

    def on_reply(self) -> None:
        """React to a finished request."""
        ...

    def stop(self, error: BaseException | None) -> None:
        """End at once."""
        ...

    def fail(self, error: BaseException) -> None:
        """Send nothing more, and end with this error."""
        ...

    def halt(self, reached: Reached) -> None:
        """Send nothing more, and end without an error."""
        ...
