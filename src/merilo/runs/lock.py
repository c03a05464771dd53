"""Keeps two processes from writing one run: a lock that the operating system frees when a process dies."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from merilo.errors import RunError
from merilo.runs.database import ERRORS, Trouble, trouble_of
from merilo.runs.files import LOCK, check_regular

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


class RunLock:
    """Held while a run is written; a context manager. Raises RunError on entry when another process holds it.

    SQLite's own file lock is used because it works alike on every system and never goes stale.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._db: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        with suppress(OSError):  # a directory that cannot be read is reported below
            check_regular(self._directory)
        try:
            self._db = sqlite3.connect(self._directory / LOCK, timeout=0, isolation_level=None, check_same_thread=False)
            self._db.execute("BEGIN EXCLUSIVE")
        except ERRORS as error:
            if self._db is not None:
                self._db.close()
            raise self._told(error) from error
        return self

    def _told(self, error: Exception) -> RunError:
        path = self._directory / LOCK
        match trouble_of(error):
            case Trouble.BUSY:
                said = (
                    f"{self._directory} is being written by another process; wait for it or choose another directory."
                )
            case Trouble.DAMAGED:
                said = f"{path} is not the lock that it should be ({error}); remove it and try again."
            case _:
                said = f"{self._directory} cannot be written ({error}); choose another directory (--out)."
        return RunError(said)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._db is not None:
            self._db.close()
