"""Circuit breaker: distinguishes an endpoint that fails from requests that are invalid, so that a run stops early.

A run stops if the first requests to an endpoint all fail, or if many consecutive requests fail for temporary reasons.
These failures are withheld: they are not recorded for their questions, and resuming the run retries them. Before the
run stops, a few requests from further back in the queue are tried or, after a reply, the answered request is repeated:
if there is a reply, the failures belong to their questions. A request that is invalid in itself (too long, for
instance) never stops a run that got other replies. Otherwise each resumed run would stop at it again.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from merilo.judging.verdicts import Failure

T = TypeVar("T")

FIRST = 5
"""Number of failures before any reply that trip the breaker."""
IN_A_ROW = 20
"""Number of consecutive requests, without a reply between them, that fail after all retries and so trip the breaker."""
PROBES = 3
"""Number of requests from further back in the queue that are tried before the first failures are blamed on the
endpoint."""


class BreakerAction(Enum):
    """Action once no request is in flight: continue (NONE), send a probe, or stop."""

    NONE = auto()
    PROBE = auto()
    STOP = auto()


class CircuitBreaker(Generic[T]):
    """Withholds failures that the endpoint may have caused. `T` is the type of a pending request."""

    def __init__(self) -> None:
        self._reached = False
        self._held: list[tuple[T, Failure]] = []
        self._row = 0
        self.probes = PROBES
        """Number of probes that may still be sent."""
        self.last = ""
        """Error message of the last failed request."""

    @property
    def action(self) -> BreakerAction:
        """Action to take: continue, try a few other requests, or stop."""
        if self._row >= (IN_A_ROW if self._reached else FIRST):
            return BreakerAction.PROBE if not self._reached and self.probes else BreakerAction.STOP
        return BreakerAction.NONE

    @property
    def count(self) -> int:
        """Number of requests since the last reply that failed after all retries."""
        return self._row

    @property
    def reached(self) -> bool:
        """True once there was a reply."""
        return self._reached

    def probe(self) -> None:
        """Count a probe as sent."""
        self.probes -= 1

    def good(self) -> list[tuple[T, Failure]]:
        """Record a reply, which shows that the endpoint works. Return the withheld failures, which now belong to their
        questions.
        """
        self._reached = True
        self._row = 0
        return self.release() if self._held else self._held

    def bad(self, waiting: T, failure: Failure, *, wrong: bool, proven: bool) -> bool:
        """Record a permanently failed request. Return True if the failure is withheld because the endpoint may be at
        fault.

        False means that the failure belongs to its question. `wrong`: the request itself is invalid. `proven`: the same
        judge has answered other questions.
        """
        if wrong and (self._reached or proven):
            return False
        self._row += 1
        self.last = failure.message
        self._held.append((waiting, failure))
        return True

    def trip(self) -> None:
        """Withhold failures until the next reply, since the endpoint seems to be gone."""
        self._row = max(self._row, IN_A_ROW)

    def release(self) -> list[tuple[T, Failure]]:
        """Return the withheld failures and withhold them no longer, since no further request can show the cause."""
        held, self._held = self._held, []
        return held
