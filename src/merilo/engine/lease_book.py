"""The state of limits that several processes share: reserved rates, and the grants of a budget.

It has no lock: one process owns it and answers one call at a time.
"""

from __future__ import annotations

import time
from math import floor
from typing import TYPE_CHECKING, Final

from merilo.engine.rate_limits import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.engine.budget import Budget
    from merilo.engine.leases import SharedLimit

_GRANT: Final = 0.01
"""Maximum fraction of a budget that all grants together may exceed the immediate need by."""
_ROUNDING: Final = 1e-9


class LeaseBook:
    """Reserved rates and granted parts of a budget; a holder of grants is a run directory, named by a number."""

    def __init__(
        self,
        budget: Budget,
        workers: int,
        used: Mapping[SharedLimit, Mapping[int, float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`used`: the amount of each limit that each run directory has used before."""
        self._limits: dict[SharedLimit, float | None] = {
            "max_cost_usd": budget.max_cost_usd,
            "max_requests": budget.max_requests,
        }
        self._workers = workers
        self._granted = {name: dict(used.get(name, {})) for name in self._limits}
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
        limit, granted = self._limits[name], self._granted[name]
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
