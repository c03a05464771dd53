"""Standard input as a folder of files: a killed command loses no line that it has read, and memory does not grow."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO
    from pathlib import Path

    from merilo.commands.watch.tail import Position

_WAIT_S: Final = 1.0


class StandardInput:
    """Lines of standard input, written to the newest file of a folder as they arrive."""

    def __init__(self, folder: Path) -> None:
        """Begin to read, in another thread."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.ended = Event()
        """Set when the input has ended and all its lines are in files."""
        self._lock = Lock()
        self._file: FileIO | None = None
        Thread(target=self._read, daemon=True).start()

    @property
    def waiting(self) -> bool:
        """True if there are lines that no look has taken in."""
        return any(self.folder.iterdir())

    def rotate(self) -> None:
        """Close the newest file. Later lines are written to another one."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None

    def drop(self, positions: Iterable[Position]) -> None:
        """Delete the files that were taken in whole."""
        done = {each.path for each in positions if each.offset == each.size}
        with self._lock:
            now = "" if self._file is None else self._file.name
            for path in self.folder.iterdir():
                if str(path) in done and str(path) != now:
                    path.unlink()

    def _read(self) -> None:
        with suppress(OSError):  # a terminal that was closed is an end too
            for line in sys.stdin.buffer:
                while not self._written(line if line.endswith(b"\n") else line + b"\n"):
                    time.sleep(_WAIT_S)  # a full disk: the producer waits too
        self.rotate()
        self.ended.set()

    def _written(self, line: bytes) -> bool:
        """Return True once a line is in the newest file; no part of it if it cannot be written."""
        with self._lock:
            size = 0
            try:
                self._file = self._file or self._next()
                size = os.fstat(self._file.fileno()).st_size
                while line:
                    line = line[self._file.write(line) :]
            except OSError:
                with suppress(OSError):
                    if self._file is not None:
                        self._file.truncate(size)
                return False
        return True

    def _next(self) -> FileIO:
        numbers = [int(path.stem) for path in self.folder.glob("*.jsonl") if path.stem.isdecimal()]
        return self.folder.joinpath(f"{max(numbers, default=0) + 1:06d}.jsonl").open("ab", buffering=0)
