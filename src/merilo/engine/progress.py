"""Progress of an evaluation: request statistics and callbacks; it continues if a callback fails."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Call = Callable[..., object]

TICK_S: Final = 0.25
"""Seconds between two calls of `tick`."""
_log = logging.getLogger("merilo")


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

    - `watch(traffic)`, once after `begin`: `traffic()` returns the current `Traffic` until `end`;
    - `tick()`: four times a second, when the evaluation is not busy;
    - `spent(usage)`: just before `end`, the usage of the run, as in its `usage.json`.

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
    """Passes progress to all callbacks of one evaluation; their errors do not reach it. True and False are none."""

    def __init__(self, *watchers: Progress | bool | None) -> None:
        self._watchers: list[Progress] = [each for each in watchers if each is not None and not isinstance(each, bool)]
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, run: Path, samples: int) -> None:
        self._tell("begin", run, samples)

    def watch(self, traffic: Callable[[], Traffic]) -> None:
        """See `Progress`. Also starts the ticks, so it must be called within the event loop."""
        self._tell("watch", traffic)
        if any(hasattr(watcher, "tick") for watcher in self._watchers):
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def advance(self, samples: int) -> None:
        self._tell("advance", samples)

    def note(self, text: str) -> None:
        self._tell("note", text)

    def spent(self, usage: Mapping[str, object]) -> None:
        self._tell("spent", usage)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._tell("end")

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self._tell("tick")

    def _tell(self, name: str, *given: object) -> None:
        """Call a method of each callback that has it. One that raises is removed, and the others get a note."""
        for watcher in tuple(self._watchers):
            try:
                call: Call | None = getattr(watcher, name, None)
                if call is not None:
                    call(*given)
            except Exception as error:  # noqa: BLE001  user code; it must not end a run that costs money
                if watcher not in self._watchers:  # it raised again while it got the note of another one's error
                    continue
                self._watchers.remove(watcher)
                raised = f"{type(watcher).__name__} raised {type(error).__name__}: {error}".rstrip(".")
                sentence = f"Progress callback {raised}. It was disabled; the run continues."
                _log.error(sentence, exc_info=error)
                self.note(sentence)
