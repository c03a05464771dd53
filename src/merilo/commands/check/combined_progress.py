"""Several evaluations shown as one to whoever watches, with one time limit for all of them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from merilo.engine.budget import Budget
    from merilo.engine.progress import Progress
    from merilo.engine.traffic import Event, Traffic


class Passing:
    """A `Progress` that passes on what several evaluations tell, as if they were one of `samples` samples.

    Whoever watches sees one begin and one end; the figures of traffic are those of the evaluation of the moment.
    """

    def __init__(self, watcher: Progress | None, samples: int, budget: Budget) -> None:
        self._watcher = watcher
        self._samples = samples
        self._budget = budget
        self._begun = False
        self._began = time.monotonic()
        if hasattr(watcher, "event"):
            self.event: Callable[[Event], None] = lambda event: self._tell("event", event)

    @property
    def left(self) -> Budget:
        """The budget of the next evaluation: what remains of the time, and the other limits as they are."""
        budget = self._budget
        if budget.max_seconds is not None:
            budget = replace(budget, max_seconds=max(0.0, budget.max_seconds - (time.monotonic() - self._began)))
        return budget

    def close(self) -> None:
        """Nothing more comes."""
        if self._begun:
            self._tell("end")

    def begin(self, run: Path, samples: int) -> None:
        """See `Progress`: told once, with the directory that holds those of all tasks."""
        del samples
        if not self._begun:
            self._begun = True
            self._tell("begin", run.parent.parent, self._samples)

    def watch(self, traffic: Callable[[], Traffic]) -> None:
        """See `Progress`."""
        self._tell("watch", traffic)

    def advance(self, samples: int) -> None:
        """See `Progress`."""
        self._tell("advance", samples)

    def tick(self) -> None:
        """See `Progress`."""
        self._tell("tick")

    def sample(self, sample: str, outcomes: Mapping[str, str]) -> None:
        """See `Progress`."""
        self._tell("sample", sample, outcomes)

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._tell("note", text)

    def quote(self, text: str) -> None:
        """See `Progress`."""
        self._tell("quote" if hasattr(self._watcher, "quote") else "note", text)

    def stopped(self, error: BaseException) -> None:
        """See `Progress`."""
        self._tell("stopped", error)

    def end(self) -> None:
        """See `Progress`: `close` ends what the watcher sees."""

    def _tell(self, name: str, *given: object) -> None:
        call: Callable[..., object] | None = getattr(self._watcher, name, None)
        if call is not None:
            call(*given)
