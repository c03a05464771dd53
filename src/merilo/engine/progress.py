"""Progress of an evaluation: request statistics, events, and callbacks; it continues if a callback fails."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from merilo.errors import MeriloError
from merilo.metrics.base import Failed, Score, Undefined

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from merilo.runs.outcomes import Result

    Call = Callable[..., object]

TICK_S: Final = 0.25
"""Seconds between two calls of `tick`."""
_KINDS: Final = {Score: "score", Undefined: "undefined", Failed: "failed"}
_log = logging.getLogger("merilo")


class EventKind(StrEnum):
    """Kind of event of a request."""

    SENT = "sent"
    REPLIED = "replied"
    RETRIED = "retried"
    """It failed for a temporary reason and is sent again after `seconds`."""
    GAVE_UP = "gave_up"
    LIMITED = "limited"
    """The endpoint answered "too many requests"."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of one request. `seconds` is the time until the reply, or the wait before the next attempt."""

    kind: EventKind
    endpoint: str
    seconds: float = 0.0
    detail: str = ""
    """The reason as a sentence; empty without an error. It may quote the endpoint, and so text of the data."""
    status: int | None = None
    """The HTTP status of the error, if there was one."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Statistics of one call's requests so far, without earlier parts of a resumed run."""

    sent: int = 0
    """Requests sent, retries included."""
    in_flight: int = 0
    queued: int = 0
    """Requests that wait in the queue or for a retry."""
    retries: int = 0
    given_up: int = 0
    known: int = 0
    """Answers found in the run or the cache, for which no request was sent."""
    input_tokens: int = 0
    """Tokens of answered requests, as reported or otherwise estimated; likewise `output_tokens`."""
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """Charged so far, unanswered requests included; None if the price of any part is unknown."""
    paused_s: float = 0.0
    """Seconds until a paused endpoint may receive requests again; 0 if none is paused."""


class Progress(Protocol):
    """Progress callback of one evaluation; called from its thread, in this order.

    A callback may also have any of these methods, which are then called:

    - `asked(done, total)`, before `begin`: the pipeline has answered `done` of `total` questions (`evaluate_pipeline`);
    - `watch(traffic)`, once after `begin`: `traffic()` returns the current `Traffic` until `end`;
    - `tick()`: four times a second, when the evaluation is not busy;
    - `sample(id, outcomes)`: one sample is done; outcomes: metric → "score", "undefined" or "failed";
    - `event(event)`: an `Event` of a request, at once; it is called many thousands of times;
    - `quote(text)`: a note that repeats text of an endpoint; `note` is called if this is missing;
    - `spent(usage)`: just before `end`, the usage of the run, as in its `usage.json`;
    - `stopped(error)`: just before `end`, the error that interrupted the run; not called when a limit was reached.

    A callback that raises is called no more, and the evaluation continues.
    """

    def begin(self, run: Path, samples: int) -> None:
        """Receive the run's directory and its number of samples, before the first question is asked."""
        ...

    def advance(self, samples: int) -> None:
        """Receive the number of further samples that have all their outcomes."""
        ...

    def note(self, text: str) -> None:
        """Receive a message for the user; each is sent once."""
        ...

    def end(self) -> None:
        """Receive the end of the evaluation, whether the run finished or not. It is the last call."""
        ...


class ProgressDispatcher:
    """Passes progress to all callbacks of one evaluation; their errors do not reach it."""

    def __init__(self, *watchers: Progress | None) -> None:
        self._watchers: list[Progress] = [watcher for watcher in watchers if watcher is not None]
        self._timer: asyncio.TimerHandle | None = None
        self._sampling = self._has("sample")

    def begin(self, run: Path, samples: int) -> None:
        self._tell("begin", run, samples)

    def asked(self, done: int, total: int) -> None:
        self._tell_if_wanted("asked", done, total)

    def watch(self, traffic: Callable[[], Traffic]) -> None:
        """See `Progress`. Also starts the ticks, so it must be called within the event loop."""
        self._tell_if_wanted("watch", traffic)
        if self._has("tick"):
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    @property
    def listener(self) -> Callable[[Event], None] | None:
        """The function to call with each event; None if no callback accepts events."""
        return self._event if self._has("event") else None

    def sample(self, results: Sequence[Result]) -> None:
        """Report one more sample with all its outcomes."""
        if self._sampling and results:
            outcomes = {result.metric: _KINDS[type(result.outcome)] for result in results}
            self._tell_if_wanted("sample", results[0].sample, outcomes)
        self._tell("advance", 1)

    def note(self, text: str) -> None:
        self._tell("note", text)

    def quote(self, text: str) -> None:
        for watcher in tuple(self._watchers):
            self._call(watcher, "quote" if hasattr(watcher, "quote") else "note", text)

    def spent(self, usage: Mapping[str, object]) -> None:
        self._tell_if_wanted("spent", usage)

    def stopped(self, error: BaseException) -> None:
        self._tell_if_wanted("stopped", error)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._tell("end")

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self._tell_if_wanted("tick")

    def _event(self, event: Event) -> None:
        self._tell_if_wanted("event", event)

    def _has(self, name: str) -> bool:
        return any(hasattr(watcher, name) for watcher in self._watchers)

    def _tell(self, name: str, *given: object) -> None:
        for watcher in tuple(self._watchers):
            self._call(watcher, name, *given)

    def _tell_if_wanted(self, name: str, *given: object) -> None:
        for watcher in tuple(self._watchers):
            if hasattr(watcher, name):
                self._call(watcher, name, *given)

    def _call(self, watcher: Progress, name: str, *given: object) -> None:
        try:
            call: Call = getattr(watcher, name)
            call(*given)
        except Exception as error:  # noqa: BLE001  user code; it must not end a run that costs money
            self._drop_listener(watcher, error)

    def _drop_listener(self, watcher: Progress, error: Exception) -> None:
        """Remove a callback that raised. Log the traceback, and notify the remaining callbacks."""
        if watcher not in self._watchers:  # it raised again while it was notified of another callback's error
            return
        self._watchers.remove(watcher)
        if isinstance(error, MeriloError):
            sentence = f"{error} The run continues without it."
        else:
            kind = type(watcher).__name__
            raised = f"{type(error).__name__}: {error}".rstrip(".")
            sentence = f"Progress callback {kind} raised {raised}. It was disabled; the run continues."
        _log.error(sentence, exc_info=error)
        self.note(sentence)
