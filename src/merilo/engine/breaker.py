"""Tells an endpoint that answers nothing from requests that go wrong, so that a run stops early and politely.

A run stops when the first requests to an endpoint all fail, or when many in a row fail for reasons that lie with the
endpoint. What failed then is no failure of a question: it was held back, is recorded nowhere, and is asked again when
the run is resumed. A request that is wrong in itself (too long, say) never stops a run that got other replies: it
would stop it again each time.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from merilo.judging.verdicts import Failure

T = TypeVar("T")

FIRST = 5
"""So many failures before any reply are a reason to doubt the endpoint."""
IN_A_ROW = 20
"""So many requests given up for passing reasons, with no reply between, are enough."""
PROBES = 3
"""Requests from the far end of the queue that are tried before one concludes from wrong requests to the endpoint."""


class Doubt(Enum):
    """What is to be done in doubt, once nothing is in the air."""

    NONE = auto()
    PROBE = auto()
    STOP = auto()


class Breaker(Generic[T]):
    """Keeps the failures that may be the endpoint's; `T` is whatever waits for a failure."""

    def __init__(self) -> None:
        self._reached = False
        self._held: list[tuple[T, Failure]] = []
        self._row = 0
        self._wrong = False
        self.probes = PROBES
        """How many probes may still be sent."""
        self.last = ""
        """What the last request that was given up failed for."""

    @property
    def doubt(self) -> Doubt:
        """Whether to go on, to try a few other requests, or to stop."""
        if self._row >= (IN_A_ROW if self._reached else FIRST):
            return Doubt.PROBE if self._wrong and not self._reached and self.probes else Doubt.STOP
        return Doubt.NONE

    @property
    def count(self) -> int:
        """Requests given up since the last reply."""
        return self._row

    @property
    def reached(self) -> bool:
        """True once there was a reply."""
        return self._reached

    def probe(self) -> None:
        """One of the probes is sent."""
        self.probes -= 1

    def good(self) -> list[tuple[T, Failure]]:
        """There was a reply, so the failures held back are failures of their questions; returns them."""
        self._reached = True
        self._row = 0
        return self.release() if self._held else self._held

    def bad(self, waiting: T, failure: Failure, *, wrong: bool, proven: bool) -> bool:
        """A request was given up; false when that is its question's failure, true when it is held back.

        `wrong`: for a reason in the request itself. `proven`: the same judge has answered other questions.
        """
        if wrong and (self._reached or proven):
            return False
        self._row += 1
        self._wrong |= wrong
        self.last = failure.message
        self._held.append((waiting, failure))
        return True

    def release(self) -> list[tuple[T, Failure]]:
        """What is held back, which is held no longer: nothing else is left that could tell."""
        held, self._held = self._held, []
        return held
