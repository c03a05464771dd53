"""Pending requests, their waits before a retry, and the circuit breaker.

The circuit breaker distinguishes an endpoint that fails from requests that are invalid, so that a run stops early. A
run stops if the first requests to an endpoint all fail, or if many consecutive requests fail for temporary reasons.
These failures are withheld: they are not recorded for their questions, and resuming the run retries them. Before the
run stops, a few requests from further back in the queue are tried or, after a reply, the answered request is repeated:
if there is a reply, the failures belong to their questions. A request that is invalid in itself (too long, for
instance) never stops a run that got other replies. Otherwise each resumed run would stop at it again.
"""

from __future__ import annotations

import random
from enum import Enum, auto
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from merilo.engine.rate_limits import Permit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from merilo.errors import RateLimited
    from merilo.judges.base import OutgoingRequest
    from merilo.judging.verdicts import Failure
    from merilo.providers.base import Reply
    from merilo.runs.ledger import Charge

RETRIES = 5
"""Maximum retries of a request after temporary failures."""
LIMITED_RETRIES = 20
"""Maximum retries after "too many requests". It is higher because the endpoint works and names a time to come back."""
FIRST_WAIT_S = 0.5
MAX_WAIT_S = 30.0
MAX_PAUSE_S = 600.0
"""Longest pause in seconds that an endpoint may ask for; a longer one ends the run."""
LEAST_DEADLINE_S = 10.0
_ENOUGH_REPLIES: Final = 20
_NONE_YET: Final = Permit(0, 0)
_BELIEVED: Final = 3
"""Number of retries in a row that wait exactly as long as the endpoint asked."""

Order = tuple[int, int, str, str]
"""Sort key in the queue: block of samples, 0 for retries and re-asks or 1 for first requests, rubric text, rest of
the prompt."""
FIRST = 5
"""Number of failures before any reply that trip the breaker."""
IN_A_ROW = 20
"""Number of consecutive requests, without a reply between them, that fail after all retries and so trip the breaker."""
PROBES = 3
"""Number of requests from further back in the queue that are tried before the first failures are blamed on the
endpoint."""


class ReplyListener(Protocol):
    """Listener for replies."""

    def on_reply(self, place: int, reply: Reply | Failure) -> Callable[[], None] | None:
        """Receive the reply to the request with this index. Return what to call once for all replies of a turn."""
        ...


class PendingRequest:
    """A request that is queued or in flight."""

    def __init__(self, send: OutgoingRequest, to: ReplyListener, place: int, order: Order, *, proven: bool) -> None:
        self.send = send
        self.to = to
        self.place = place
        self.order = order
        self.proven = proven
        self.tries = self.limited = self.unreached = 0
        self.replies_before = 0
        """Number of replies of its endpoint when it could not be sent for the first time."""
        self.cut = False
        """True once it was cancelled at a deadline learnt from the run. Only the timeout cancels its later tries."""
        self.permit = _NONE_YET
        self.reserved_usd = 0.0
        self.entry = 0
        """Its number in the ledger while it is in flight."""
        self.charge: Charge | None = None
        """The charge if it is not answered; set each time it is sent."""

    def limited_again_s(self, error: RateLimited) -> float | None:
        """Count a "too many requests" reply. Return the seconds to wait in addition to the endpoint's own pause; None
        after too many.

        Each of the first three replies adds nothing if it names a pause. Later waits grow with each reply.
        """
        self.limited += 1
        if self.limited > LIMITED_RETRIES:
            return None
        free_retries = 0 if error.retry_after_s is None else _BELIEVED
        return jitter_s(self.limited - free_retries, MAX_WAIT_S) if self.limited > free_retries else 0.0


def jitter_s(tries: int, max_s: float) -> float:
    """Return a random wait below a bound that doubles with each try, so that failed requests spread out."""
    return random.uniform(0, min(max_s, FIRST_WAIT_S * 2.0 ** (tries - 1)))  # noqa: S311  no secret


def deadline_s(answered: Collection[tuple[float, Charge]], charge: Charge) -> float:
    """Return the seconds after which a request is cancelled; infinite if fewer than 20 replies are known.

    Ten times the slowest of the last replies (of 100, about the 99th percentile), at least 10 s. Proportionally longer
    for a request that is longer than the median, or whose longest reply is.

    `answered`: the seconds and the charge of each reply.
    """
    if len(answered) < _ENOUGH_REPLIES:
        return inf
    median = len(answered) // 2
    read = sorted(each.input_tokens or 0 for _, each in answered)[median]
    written = sorted(each.reply_tokens for _, each in answered)[median]
    longer = max(1.0, (charge.input_tokens or 0) / max(read, 1), charge.reply_tokens / max(written, 1))
    return longer * max(LEAST_DEADLINE_S, 10 * max(seconds for seconds, _ in answered))


class BreakerAction(Enum):
    """Action once no request is in flight: continue (NONE), send a probe, or stop."""

    NONE = auto()
    PROBE = auto()
    STOP = auto()


class CircuitBreaker:
    """Withholds failures that the endpoint may have caused."""

    def __init__(self) -> None:
        self.reached = False
        """True once there was a reply."""
        self._held: list[tuple[PendingRequest, Failure]] = []
        self.count = 0
        """Number of requests since the last reply that failed after all retries."""
        self.probes = PROBES
        """Number of probes that may still be sent."""
        self.last = ""
        """Error message of the last failed request."""

    @property
    def action(self) -> BreakerAction:
        """Action to take: continue, try a few other requests, or stop."""
        if self.count >= (IN_A_ROW if self.reached else FIRST):
            return BreakerAction.PROBE if not self.reached and self.probes else BreakerAction.STOP
        return BreakerAction.NONE

    def good(self) -> list[tuple[PendingRequest, Failure]]:
        """Record a reply: the endpoint works. Return the withheld failures, which now belong to their questions."""
        self.reached = True
        self.count = 0
        return self.release() if self._held else self._held

    def bad(self, waiting: PendingRequest, failure: Failure, *, wrong: bool, proven: bool) -> bool:
        """Record a permanently failed request. Return True if the failure is withheld because the endpoint may be at
        fault.

        False means that the failure belongs to its question. `wrong`: the request itself is invalid. `proven`: the same
        judge has answered other questions.
        """
        if wrong and (self.reached or proven):
            return False
        self.count += 1
        self.last = failure.message
        self._held.append((waiting, failure))
        return True

    def trip(self) -> None:
        """Withhold failures until the next reply, since the endpoint seems to be gone."""
        self.count = max(self.count, IN_A_ROW)

    def release(self) -> list[tuple[PendingRequest, Failure]]:
        """Return the withheld failures and withhold them no longer, since no further request can show the cause."""
        held, self._held = self._held, []
        return held
