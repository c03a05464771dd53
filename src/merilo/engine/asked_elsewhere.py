"""The judge sessions of a run that another process with the same verdict cache has in flight.

They are not sent. Their answers are read from the cache. A session is sent after all if the other process ends, fails,
or takes too long.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from merilo.engine.event_loop import call_after
from merilo.engine.rate_limits import asks_no_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from merilo.engine.answer_store import AnswerStore, KnownAnswers, WorkUnit
    from merilo.engine.judge_session import JudgeSession

POLL_S: Final = 0.1
"""Seconds between look-ups."""
_MAX_WAIT_S: Final = 120.0
"""Maximum seconds to wait for an answer of another process, which may be stopped or wait for a slow server."""


class Flight(Protocol):
    """A judge session that a driver sends."""

    @property
    def session(self) -> JudgeSession:
        """The session."""
        ...

    @property
    def opened_s(self) -> float:
        """Time when it was opened, by `time.monotonic`."""
        ...


F = TypeVar("F", bound=Flight)


class Answered(NamedTuple, Generic[F]):
    """A session whose answers another process has stored."""

    flight: F
    held: KnownAnswers


class AskedElsewhere(Generic[F]):
    """The sessions that wait for another process. `look_again` is called periodically while there are any, `narrow`
    with a session some of whose questions have answers, and the unit that is left.
    """

    def __init__(
        self,
        answers: AnswerStore,
        look_again: Callable[[], None],
        narrow: Callable[[F, KnownAnswers, WorkUnit], None],
    ) -> None:
        self._answers = answers
        self._look_again = look_again
        self._narrow = narrow
        self._flights: list[F] = []
        self._timer: asyncio.TimerHandle | None = None
        self._local: dict[int, bool] = {}  # by id of a provider, which lives as long as its judge: it asks no model

    def claimed(self, flights: Sequence[F]) -> list[F]:
        """Return the sessions to send now, in order; the others wait."""
        taken = self._answers.claim([flight.session.unit for flight in flights if not self._is_local(flight)])
        if not taken:
            return [*flights]
        self._flights += [flight for flight in flights if flight.session.unit.key in taken]
        if self._timer is None:
            self._timer = call_after(asyncio.get_running_loop(), POLL_S, self._timed_out)
        return [flight for flight in flights if flight.session.unit.key not in taken]

    def look(self) -> tuple[list[Answered[F]], list[F]]:
        """Return the waiting sessions that have answers now, and those to send now."""
        flights, self._flights = self._flights, []
        answered: list[Answered[F]] = []
        overdue: list[F] = []
        rest: list[F] = []
        latest = time.monotonic() - _MAX_WAIT_S
        looked = self._answers.known_all([flight.session.unit for flight in flights])
        for flight, (held, missing) in zip(flights, looked, strict=True):
            if missing is None:
                answered.append(Answered(flight, held))
                continue
            if len(missing.keys) < len(flight.session.unit.keys):
                self._narrow(flight, held, missing)
            if flight.session.sends is None:  # an earlier part of the run had received all its replies
                answered.append(Answered(flight, flight.session.keep()))
            else:
                (overdue if flight.opened_s < latest else rest).append(flight)
        return answered, overdue + self.claimed(rest)

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _timed_out(self) -> None:
        self._timer = None
        self._look_again()

    def _is_local(self, flight: F) -> bool:
        """Return True if a session asks no model; waiting for another process would take longer than its answer."""
        for send in flight.session.sends or ():
            provider = send.provider
            if id(provider) not in self._local:
                self._local[id(provider)] = asks_no_model(provider)
            if not self._local[id(provider)]:
                return False
        return True
