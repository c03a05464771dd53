"""Rates per minute, of one process and of several that share limits: leases of a rate, and grants of a budget.

A lease reserves the next free part of the rate, possibly in the future, so one call gives each process its turn. While
a lease lasts, the process makes no call. A `LeaseBook` has the state of the shared limits. It has no lock: one process
owns it and answers one call at a time. design/scale.md explains both sides.
"""

from __future__ import annotations

import time
from math import floor
from typing import TYPE_CHECKING, Final, Literal, Protocol, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SharedLimit = Literal["max_cost_usd", "max_requests"]
"""A limit of a budget that processes share."""
LEASE_S: Final = 0.25
"""Seconds of the rate that all leases together may hold."""
_MINUTE_S: Final = 60.0
_BURST_S: Final = 1.0
"""Seconds within which unused rate may be used up later. The rate is reduced so that no minute exceeds the limit."""
_GRANT: Final = 0.01
"""Maximum fraction of a budget that all grants together may exceed the immediate need by."""
_ROUNDING: Final = 1e-9


class Meter:
    """Meter for a rate per minute that no minute exceeds: requests are spaced, with bursts of up to a second."""

    def __init__(self, per_minute: float) -> None:
        self._apart_s = (_MINUTE_S + _BURST_S) / per_minute
        self._free_at = 0.0

    def wait_s(self, now: float, weight: float) -> float:
        """Return the seconds until this weight may be sent; 0 or less if now. Large ones wait for all earlier ones."""
        takes_s = weight * self._apart_s
        return max(self._free_at - now, 0.0) + min(0.0, takes_s - _BURST_S)

    def charge(self, now: float, weight: float) -> None:
        """Count a request of this weight that is sent now."""
        self._free_at = max(self._free_at, now) + weight * self._apart_s

    def adjust(self, weight: float) -> None:
        """Correct an earlier charge by the difference to the actual usage."""
        self._free_at += weight * self._apart_s


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
        """Return the part of a limit that this run directory may use; `used` and `more` if that is left."""
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


class LeaseBook:
    """Reserved rates and granted parts of a budget; a holder of grants is a run directory, named by a number."""

    def __init__(
        self,
        limits: Mapping[SharedLimit, float | None],
        workers: int,
        used: Mapping[SharedLimit, Mapping[int, float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`limits`: of the budget, None for no limit. `used`: the amount that each run directory has used before."""
        self._limits = limits
        self._workers = workers
        self._granted = {name: dict(used.get(name, {})) for name in get_args(SharedLimit)}
        self._clock = clock
        self._meters: dict[tuple[str, str, float], Meter] = {}
        self.refused: dict[SharedLimit, float] = {}
        """The smallest amount that was refused, by limit."""

    def reserve(self, endpoint: str, kind: str, per_minute: float, amount: float) -> float:
        """See `SharedLimits.reserve`: reservations follow each other in the order of the calls."""
        now = self._clock()
        meter = self._meters.setdefault((endpoint, kind, per_minute), Meter(per_minute))
        wait_s = max(0.0, meter.wait_s(now, amount))
        meter.charge(now, amount)
        return wait_s

    def grant(self, holder: int, name: SharedLimit, used: float, more: float) -> float:
        """See `SharedLimits.grant`. The sum of all grants never exceeds the limit."""
        limit, granted = self._limits.get(name), self._granted[name]
        if limit is None:
            return used + more
        granted[holder] = own = max(granted.get(holder, 0.0), used)
        free, lacking = limit * (1 + _ROUNDING) - sum(granted.values()), used + more - own
        if lacking > free:
            self.refused[name] = min(more, self.refused.get(name, more))
            return own
        step = limit * _GRANT / self._workers
        granted[holder] = own = own + min(free, max(lacking, floor(step) if name == "max_requests" else step))
        return own

    def release(self, holder: int, used: Mapping[SharedLimit, float]) -> None:
        """Take back what a finished run directory was granted and has not used."""
        for name, amount in used.items():
            self._granted[name][holder] = amount
