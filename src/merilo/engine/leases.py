"""Limits that several processes share: each takes small leases of a rate, and grants of a budget.

A lease reserves the next free part of the rate, possibly in the future, so one call gives each process its turn. While
a lease lasts, the process makes no call. `engine/lease_book.py` is the other side; design/scale.md explains both.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

SharedLimit = Literal["max_cost_usd", "max_requests"]
"""A limit of a budget that processes share."""
LEASE_S: Final = 0.25
"""Seconds of the rate that all leases together may hold."""
_MINUTE_S: Final = 60.0


class SharedLimits(Protocol):
    """The limits of several processes, as one of them sees them."""

    @property
    def workers(self) -> int:
        """Number of processes that share the limits."""
        ...

    def reserve(self, endpoint: str, kind: str, per_minute: float, amount: float) -> float:
        """Reserve requests or tokens (`kind`) of an endpoint's rate; return the seconds until they may be sent."""
        ...

    def grant(self, name: SharedLimit, used: float, more: float) -> float:
        """Return the part of a limit that this run directory may use in all. It is raised to `used` and `more` if the
        shared limit has that left.
        """
        ...


class LeasedMeter:
    """This process's part of a rate per minute, in place of a `Meter`."""

    def __init__(self, shared: SharedLimits, endpoint: str, kind: str, per_minute: float) -> None:
        self._reserve: Callable[[float], float] = lambda amount: shared.reserve(endpoint, kind, per_minute, amount)
        self._lease = floor(per_minute / _MINUTE_S * LEASE_S / shared.workers)
        self._left = 0.0
        self._valid_from = 0.0

    def wait_s(self, now: float, weight: float) -> float:
        """Return the seconds until this weight may be sent, 0 or less if now; take a lease if it is not covered."""
        if self._left < weight:
            amount = max(self._lease, weight - self._left)
            self._valid_from = now + self._reserve(amount)
            self._left += amount
        return self._valid_from - now

    def charge(self, now: float, weight: float) -> None:
        """Use a part of the lease. More than the rest may be used if another run of this process has no such limit."""
        del now
        self._left -= weight

    def adjust(self, weight: float) -> None:
        """Correct an earlier charge by the difference to the actual usage."""
        self._left -= weight
