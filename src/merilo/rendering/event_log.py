"""The event log of a run: JSON Lines for programs, written as events happen. docs/cost.md lists them.

The log holds no API key, no text of a sample and no message of an endpoint, since such a message may echo the request.
"""

from __future__ import annotations

import json
import os
import time
from asyncio import CancelledError
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from merilo.errors import RunError, UsageError
from merilo.runs.run import MANIFEST, read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from io import FileIO
    from os import PathLike

    from merilo.engine.progress import Event, Traffic

_FIRST: Final = b'{"event":"begin","at":'
_MAX_HELD: Final = 2_000
"""Maximum number of buffered lines; a full buffer is written at once, so bursts of events use little memory."""


class EventLog:
    """A `Progress` that appends to a file; a context manager. Raises UsageError if the file cannot be written.

    Lines are buffered and written four times per second, whole lines only. Only one run at a time may write to a file.
    """

    def __init__(self, path: str | PathLike[str], limits: Mapping[str, object]) -> None:
        """Open the file; `limits` are copied into the first event unchanged."""
        self._path = Path(path)
        self._limits = limits
        self._new = not self._path.exists()
        self._file = _opened(self._path)
        self._lines: list[str] = []
        self._names: dict[str, str] = {}
        self._samples = self._done = 0
        self._began = self._wall = 0.0
        self._second, self._prefix = -1, ""
        self._traffic: Callable[[], Traffic] | None = None
        self._usage: Mapping[str, object] | None = None
        self._error: str | None = None
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self._new and not self._began:  # the run never began: leave no empty file
            self._path.unlink(missing_ok=True)

    def begin(self, run: Path, samples: int) -> None:
        self._samples, self._began, self._wall = samples, time.monotonic(), time.time()
        manifest = read_manifest(run / MANIFEST)
        self._add(
            "begin",
            merilo=manifest.merilo,
            run=str(run),
            data=manifest.data,
            samples=samples,
            skipped=len(manifest.skipped),
            metrics=[*manifest.metrics],
            composites=[*manifest.composites],
            judges={role: judge.get("name") for role, judge in manifest.judges.items()},
            limits=self._limits,
        )
        self.tick()

    def watch(self, traffic: Callable[[], Traffic]) -> None:
        self._traffic = traffic

    def event(self, event: Event) -> None:
        name = self._names.get(event.endpoint)
        if name is None:
            name = self._names[event.endpoint] = json.dumps(event.endpoint)
        more = f',"seconds":{event.seconds:.3f}' if event.seconds else ""
        if event.status is not None:
            more += f',"status":{event.status}'
        self._lines.append(f'{{"event":"{event.kind}",{self._moment()},"endpoint":{name}{more}}}\n')
        if len(self._lines) >= _MAX_HELD:
            self.tick()

    def sample(self, name: str, outcomes: Mapping[str, str]) -> None:
        self._add("sample", id=name, outcomes=outcomes)
        if len(self._lines) >= _MAX_HELD:
            self.tick()

    def advance(self, samples: int) -> None:
        self._done += samples

    def note(self, text: str) -> None:
        """See `Progress`; notes after the end are dropped."""
        if not self._over:
            self._add("note", text=text)

    def quote(self, text: str) -> None:
        """See `Progress`; messages of an endpoint are not logged."""

    def tick(self) -> None:
        """Write the buffered lines. Raises RunError if that fails."""
        rest = memoryview("".join(self._lines).encode())
        self._lines.clear()
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except (OSError, ValueError) as error:
            raise RunError(f"Cannot write the event log {self._path} any more ({error}).") from error

    def spent(self, usage: Mapping[str, object]) -> None:
        self._usage = usage

    def stopped(self, error: BaseException) -> None:
        self._error = "Interrupted" if isinstance(error, CancelledError) else type(error).__name__

    def end(self) -> None:
        self._over = True
        reached = None if self._usage is None else self._usage.get("stopped")
        if reached and self._error is None:
            self._add("limit", text=reached)
        traffic = None if self._traffic is None else self._traffic()
        self._traffic = None
        self._add(
            "end",
            complete=self._done == self._samples and self._error is None,
            done=self._done,
            error=self._error,
            sent=0 if traffic is None else traffic.sent,
            retries=0 if traffic is None else traffic.retries,
            given_up=0 if traffic is None else traffic.given_up,
            known=0 if traffic is None else traffic.known,
            usage=self._usage,
        )
        self.tick()

    def _add(self, event: str, **fields: object) -> None:
        rest = json.dumps(fields, separators=(",", ":"))
        self._lines.append(f'{{"event":"{event}",{self._moment()},{rest[1:]}\n')

    def _moment(self) -> str:
        """Return the fields `at` and `time`, both from the monotonic clock, so that they never jump."""
        at = time.monotonic() - self._began
        wall = self._wall + at
        second = int(wall)
        if second != self._second:
            self._second, self._prefix = second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f'"at":{at:.3f},"time":"{self._prefix}.{int((wall - second) * 1000):03d}Z"'


def check_log_path(path: str | PathLike[str]) -> None:
    """Raise UsageError if the path is not the name of a file."""
    if os.fspath(path) in {"", "-"}:
        raise UsageError(
            f"The event log (log_json, --log-json) needs a file name, got {os.fspath(path)!r}. Standard output is for "
            "the summary; use /dev/stderr to log to standard error."
        )


def _opened(path: Path) -> FileIO:
    """Open the file for appending. Raises UsageError if that fails or the file is not an event log."""
    try:
        cut_off = _is_cut_off(path)
        file = path.open("ab", buffering=0)  # lines are buffered above; a buffer here could write half a line later
        if cut_off:
            file.write(b"\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"Cannot write the event log {path} ({reason}); choose another file (--log-json).") from error
    return file


def _is_cut_off(path: Path) -> bool:
    """Return True if an existing log ends within a line, as after a kill. Raises UsageError for any other file."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as earlier:
        if earlier.read(len(_FIRST)) != _FIRST:
            raise UsageError(f"{path} exists and is not an event log; choose another file (--log-json).")
        earlier.seek(-1, os.SEEK_END)
        return earlier.read(1) != b"\n"
