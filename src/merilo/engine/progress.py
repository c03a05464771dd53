"""What an evaluation tells whoever watches it, and how it goes on when one of them breaks."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from merilo.errors import MeriloError
from merilo.metrics.base import Failed, Score, Undefined

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from merilo.engine.traffic import Event, Traffic
    from merilo.runs.outcomes import Result

    Call = Callable[..., object]

TICK_S: Final = 0.25
"""How often those are woken that want to be."""
_KINDS: Final = {Score: "score", Undefined: "undefined", Failed: "failed"}
_log = logging.getLogger("merilo")


class Progress(Protocol):
    """Watches one evaluation; called from its thread, in this order.

    It may also have any of these, each called where it is there:

    - `watch(traffic)`, once after `begin`: `traffic()` gives the `Traffic` of any moment until `end`;
    - `tick()`: four times a second, when the evaluation is not busy;
    - `sample(id, outcomes)`: one sample is done; outcomes: metric → "score", "undefined" or "failed";
    - `event(event)`: an `Event` of a request, at once; it is called many thousand times;
    - `quote(text)`: as `note`, which is called where this is missing, for what repeats the words of an endpoint;
    - `spent(usage)`: just before `end`, what the run has used, as in its `usage.json`;
    - `stopped(error)`: just before `end`, what broke the run off; not called when a limit was reached.

    One that raises is told nothing more, and the evaluation goes on.
    """

    def begin(self, run: Path, samples: int) -> None:
        """The data is read and the first question is about to be asked."""
        ...

    def advance(self, samples: int) -> None:
        """So many more samples have all their outcomes."""
        ...

    def note(self, text: str) -> None:
        """Something the user should know, said once."""
        ...

    def end(self) -> None:
        """Nothing more comes, whether the run finished or not."""
        ...


class Audience:
    """All who watch one evaluation; nothing that they raise reaches it."""

    def __init__(self, *watchers: Progress | None) -> None:
        self._watchers: list[Progress] = [watcher for watcher in watchers if watcher is not None]
        self._timer: asyncio.TimerHandle | None = None
        self._sampling = self._has("sample")

    def begin(self, run: Path, samples: int) -> None:
        """See `Progress`."""
        self._tell("begin", run, samples)

    def watch(self, traffic: Callable[[], Traffic]) -> None:
        """See `Progress`; from here on they are woken. Called within the event loop."""
        self._tell_if_wanted("watch", traffic)
        if self._has("tick"):
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    @property
    def listener(self) -> Callable[[Event], None] | None:
        """Who is to be told of each request; None where nobody wants to know."""
        return self._event if self._has("event") else None

    def sample(self, results: Sequence[Result]) -> None:
        """One more sample has all its outcomes."""
        if self._sampling and results:
            outcomes = {result.metric: _KINDS[type(result.outcome)] for result in results}
            self._tell_if_wanted("sample", results[0].sample, outcomes)
        self._tell("advance", 1)

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._tell("note", text)

    def quote(self, text: str) -> None:
        """See `Progress`."""
        for watcher in tuple(self._watchers):
            self._call(watcher, "quote" if hasattr(watcher, "quote") else "note", text)

    def spent(self, usage: Mapping[str, object]) -> None:
        """See `Progress`."""
        self._tell_if_wanted("spent", usage)

    def stopped(self, error: BaseException) -> None:
        """See `Progress`."""
        self._tell_if_wanted("stopped", error)

    def end(self) -> None:
        """See `Progress`."""
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
        except Exception as error:  # noqa: BLE001  the edge to a stranger's code; it may not end a paid run
            self._lose(watcher, error)

    def _lose(self, watcher: Progress, error: Exception) -> None:
        """Tell once that somebody broke: the log with the traceback, and those who still watch."""
        if watcher not in self._watchers:  # it broke while it was told that another had
            return
        self._watchers.remove(watcher)
        if isinstance(error, MeriloError):
            sentence = f"{error} The run goes on without it."
        else:
            kind = type(watcher).__name__
            sentence = f"The progress {kind} raised {type(error).__name__}: {error}; the run goes on without it."
        _log.error(sentence, exc_info=error)
        self.note(sentence)
