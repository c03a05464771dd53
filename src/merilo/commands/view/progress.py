"""The progress of runs that other processes are writing, read from their files.

The outcomes so far are in a part file, one line for each sample and metric. Only new lines are read each time. The
ledger has the requests and their cost. The time left comes from the same estimate as the line of `merilo run`.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from merilo.engine.budget import spent_record
from merilo.errors import RunError
from merilo.rendering.progress_stats import ProgressMeter
from merilo.rendering.wording import count, duration, money
from merilo.runs.directory_usage import balance_in
from merilo.runs.files import LEDGER, OUTCOMES, bounded_lines
from merilo.runs.publish import part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from merilo.commands.view.catalog import ViewedRun

_MIN_PAUSE_S: Final = 0.5
"""Seconds for which a progress is reused; longer if reading it takes long."""
_LOAD: Final = 10
"""Reading takes at most one part in this many of the time."""


@dataclass(frozen=True, slots=True)
class LiveProgress:
    """The progress of a run that another process is writing; None for what is unknown, or not known yet."""

    done: int
    samples: int
    failed: int
    """Number of failed outcomes so far."""
    requests: int = 0
    cost_usd: float | None = None
    seconds_left: float | None = None

    @property
    def text(self) -> str:
        """The progress in words."""
        if not self.samples:  # the run is still reading its data
            return "starting"
        parts = [f"{self.done:,} of {count(self.samples, 'sample')} ({self.done / self.samples:.0%})"]
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        if self.requests:
            parts.append(count(self.requests, "request"))
        if self.cost_usd:
            parts.append(f"${money(self.cost_usd)} so far")
        if self.seconds_left is not None and self.done < self.samples:
            parts.append(f"{duration(max(1.0, self.seconds_left))} left")
        return ", ".join(parts)

    def record(self) -> Mapping[str, Any]:  # Any: JSON
        """Return the progress as a JSON-able object."""
        return {**asdict(self), "text": self.text}


@dataclass(slots=True)
class PartReader:
    """Counts the lines of a growing file."""

    offset: int = 0
    lines: int = 0
    failed: int = 0

    def read(self, path: Path) -> None:
        """Count the whole lines that were added since the last call; all of them if the file was begun again."""
        try:
            with path.open("rb") as file:
                if file.seek(0, 2) < self.offset:
                    self.offset = self.lines = self.failed = 0
                file.seek(self.offset)
                for line in bounded_lines(file):
                    if not line.endswith(b"\n"):  # half a line, which is read once it is whole
                        break
                    self.offset += len(line)
                    self.lines += 1
                    self.failed += _is_failed(line)
        except (OSError, ValueError):  # not begun, just published, or no file of ours
            return


@dataclass(slots=True)
class _Watched:
    """One run in progress: how far its files were read."""

    meter: ProgressMeter
    first: int
    """Number of samples that were done when the run was first read."""
    latest: LiveProgress
    part: PartReader
    again_at: float = 0.0


class ProgressWatch:
    """The progress of all runs that are being written, for several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._watched: dict[str, _Watched] = {}

    def look(self, running: Sequence[ViewedRun]) -> Mapping[str, LiveProgress]:
        """Return the progress by id of these runs, which are all that are being written now."""
        with self._lock:
            for gone in self._watched.keys() - {run.id for run in running}:
                del self._watched[gone]
            return {run.id: self._look(run) for run in running}

    def _look(self, run: ViewedRun) -> LiveProgress:
        began = self._clock()
        watched = self._watched.get(run.id)
        if watched is not None and began < watched.again_at:
            return watched.latest
        manifest, path = run.listed.manifest, run.listed.path
        if manifest is None:  # it is still reading its data
            return LiveProgress(0, 0, 0)
        part = PartReader() if watched is None else watched.part
        part.read(part_of(path / OUTCOMES))
        done = min(manifest.samples, part.lines // max(1, len(manifest.metrics)))
        found = replace(_spent(path), done=done, samples=manifest.samples, failed=part.failed)
        if watched is None:
            meter = ProgressMeter(manifest.samples - done, began)
            watched = self._watched[run.id] = _Watched(meter, done, found, part)
        left = watched.meter.look(began, max(0, done - watched.first), None).seconds_left
        watched.latest = replace(found, seconds_left=left)
        now = self._clock()
        watched.again_at = now + max(_MIN_PAUSE_S, _LOAD * (now - began))
        return watched.latest


def _spent(path: Path) -> LiveProgress:
    """Return a progress with the requests and the cost so far; the cost is None if it is unknown."""
    if not (path / LEDGER).exists():  # no model was asked that may cost something
        return LiveProgress(0, 0, 0)
    try:
        spent: dict[str, Any] = spent_record(balance_in(path), "charged")  # Any: numbers and nulls
    except RunError:
        return LiveProgress(0, 0, 0)
    return LiveProgress(0, 0, 0, requests=spent["requests"], cost_usd=spent["cost_usd"])


def _is_failed(line: bytes) -> bool:
    try:
        return bool(json.loads(line)["outcome"] == "failed")
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
