"""A request on its way, and how long it waits before it is sent again."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, Protocol

from merilo.engine.limits import Permit

if TYPE_CHECKING:
    from merilo.errors import RateLimited
    from merilo.judges.base import Send
    from merilo.judging.verdicts import Failure
    from merilo.providers.base import Reply
    from merilo.runs.ledger import Charge

RETRIES = 5
"""How often a request is sent again that failed for a passing reason."""
LIMITED_RETRIES = 20
"""The same for "too many requests": it says when to come back, and nothing is wrong."""
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
LONGEST_PAUSE_S = 600.0
"""The longest pause that an endpoint may ask for; a longer one ends the run."""
_NONE_YET: Final = Permit(0, 0)
_BELIEVED: Final = 3
"""So many times in turn a request believes the pause that it was told."""

Order = tuple[int, int, str, str]
"""Block of samples, whether it is a first request (1) or goes before those (0), rubric, the rest."""


class Recipient(Protocol):
    """Whoever waits for replies."""

    def landed(self, place: int, reply: Reply | Failure) -> None:
        """What came back for the request of this number."""
        ...


class Parcel:
    """A request in the queue or in the air."""

    __slots__ = (
        "charge",
        "entry",
        "limited",
        "order",
        "permit",
        "place",
        "proven",
        "reserved_usd",
        "send",
        "to",
        "tries",
        "unreached",
    )

    def __init__(self, send: Send, to: Recipient, place: int, order: Order, *, proven: bool) -> None:
        self.send = send
        self.to = to
        self.place = place
        self.order = order
        self.proven = proven
        self.tries = self.limited = self.unreached = 0
        self.permit = _NONE_YET
        self.reserved_usd = 0.0
        self.entry = 0
        """Its number in the ledger while it is in flight."""
        self.charge: Charge | None = None
        """What it is charged if it is not answered; set each time it is sent."""

    def failed_again_s(self) -> float | None:
        """How long to wait after one more passing failure; None when that was one too many."""
        self.tries += 1
        return jitter_s(self.tries, LONGEST_WAIT_S) if self.tries <= RETRIES else None

    def limited_again_s(self, error: RateLimited) -> float | None:
        """The same after "too many requests"; 0 where the endpoint's own pause is to be kept, and it alone.

        Who is limited again and again waits longer than he was told.
        """
        self.limited += 1
        if self.limited > LIMITED_RETRIES:
            return None
        told = 0 if error.retry_after_s is None else _BELIEVED
        return jitter_s(self.limited - told, LONGEST_WAIT_S) if self.limited > told else 0.0


def jitter_s(tries: int, longest_s: float) -> float:
    """Anything from nothing to a bound that doubles with each try, so that those who failed together part."""
    return random.uniform(0, min(longest_s, FIRST_WAIT_S * 2.0 ** (tries - 1)))  # noqa: S311  no secret
