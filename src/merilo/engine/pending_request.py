"""A pending request, and how long it waits before a retry."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, Protocol

from merilo.engine.rate_limits import Permit

if TYPE_CHECKING:
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
_NONE_YET: Final = Permit(0, 0)
_BELIEVED: Final = 3
"""Number of retries in a row that wait exactly as long as the endpoint asked."""

Order = tuple[int, int, str, str]
"""Sort key in the queue: block of samples, 0 for retries and re-asks or 1 for first requests, rubric text, rest of
the prompt."""


class ReplyListener(Protocol):
    """Listener for replies."""

    def on_reply(self, place: int, reply: Reply | Failure) -> None:
        """Receive the reply to the request with this index."""
        ...


class PendingRequest:
    """A request that is queued or in flight."""

    __slots__ = (
        "charge",
        "entry",
        "limited",
        "order",
        "permit",
        "place",
        "proven",
        "replies_before",
        "reserved_usd",
        "send",
        "to",
        "tries",
        "unreached",
    )

    def __init__(self, send: OutgoingRequest, to: ReplyListener, place: int, order: Order, *, proven: bool) -> None:
        self.send = send
        self.to = to
        self.place = place
        self.order = order
        self.proven = proven
        self.tries = self.limited = self.unreached = 0
        self.replies_before = 0
        """Number of replies of its endpoint when it could not be sent for the first time."""
        self.permit = _NONE_YET
        self.reserved_usd = 0.0
        self.entry = 0
        """Its number in the ledger while it is in flight."""
        self.charge: Charge | None = None
        """The charge if it is not answered; set each time it is sent."""

    def failed_again_s(self) -> float | None:
        """Count a temporary failure. Return the seconds to wait before the retry; None after too many failures."""
        self.tries += 1
        return jitter_s(self.tries, MAX_WAIT_S) if self.tries <= RETRIES else None

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
    """Return a random wait between 0 and a bound that doubles with each try, so that requests that failed together
    spread out.
    """
    return random.uniform(0, min(max_s, FIRST_WAIT_S * 2.0 ** (tries - 1)))  # noqa: S311  no secret
