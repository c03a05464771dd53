"""Progress of several evaluations shown as one, with one time limit for all of them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from merilo.engine.budget import Budget
    from merilo.engine.progress import Progress
    from merilo.engine.request_stats import Event, Traffic


class CombinedProgress:
    """A `Progress` that forwards the events of several evaluations, as if they were one of `samples` samples.

    The watcher receives one `begin` and one `end`. Its traffic figures are those of the current evaluation.
    """

    def __init__(self, watcher: Progress | None, samples: int, budget: Budget) -> None:
        self._watcher = watcher
        self._samples = samples
        self._budget = budget
        self._begun = False
        self._began = time.monotonic()
        if hasattr(watcher, "event"):
            self.event: Callable[[Event], None] = lambda event: self._forward("event", event)

    @property
    def left(self) -> Budget:
        """The budget of the next evaluation: the remaining time, and the other limits unchanged."""
        budget = self._budget
        if budget.max_seconds is not None:
            budget = replace(budget, max_seconds=max(0.0, budget.max_seconds - (time.monotonic() - self._began)))
        return budget

    def close(self) -> None:
        """End the progress: no further evaluation follows."""
        if self._begun:
            self._forward("end")

    def begin(self, run: Path, samples: int) -> None:
        """See `Progress`: forwarded once, with the directory that contains the runs of all tasks."""
        del samples
        if not self._begun:
            self._begun = True
            self._forward("begin", run.parent.parent, self._samples)

    def watch(self, traffic: Callable[[], Traffic]) -> None:
        """See `Progress`."""
        self._forward("watch", traffic)

    def advance(self, samples: int) -> None:
        """See `Progress`."""
        self._forward("advance", samples)

    def tick(self) -> None:
        """See `Progress`."""
        self._forward("tick")

    def sample(self, sample: str, outcomes: Mapping[str, str]) -> None:
        """See `Progress`."""
        self._forward("sample", sample, outcomes)

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._forward("note", text)

    def quote(self, text: str) -> None:
        """See `Progress`."""
        self._forward("quote" if hasattr(self._watcher, "quote") else "note", text)

    def stopped(self, error: BaseException) -> None:
        """See `Progress`."""
        self._forward("stopped", error)

    def end(self) -> None:
        """See `Progress`: not forwarded, as another evaluation may follow; `close` sends the end."""

    def _forward(self, name: str, *arguments: object) -> None:
        call: Callable[..., object] | None = getattr(self._watcher, name, None)
        if call is not None:
            call(*arguments)
