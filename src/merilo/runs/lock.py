"""The lock that keeps two processes from writing the same run. The operating system frees it when a process dies."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Self

from merilo.errors import RunError
from merilo.runs.database import ERRORS, StoreProblem, connected, problem_of, read_only
from merilo.runs.files import LOCK, check_regular

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path
    from types import TracebackType


_WAIT_S = 0.2
"""Seconds to wait for `is_locked` of another process, which holds the lock for less than a millisecond."""


class RunLock:
    """Lock held while a run is written; a context manager. Raises RunError on entry if another process holds it.

    It is an SQLite database, because SQLite's file locks work the same on every system and never go stale.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._db: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        with suppress(OSError):  # a directory that cannot be read is reported below
            check_regular(self._directory, writing=True)
        try:
            self._db = connected(self._directory / LOCK, wait_s=_WAIT_S, schema=())
            self._db.execute("BEGIN EXCLUSIVE")
        except ERRORS as error:
            if self._db is not None:
                self._db.close()
            raise self._error(error) from error
        return self

    def _error(self, error: Exception) -> RunError:
        path = self._directory / LOCK
        match problem_of(error):
            case StoreProblem.BUSY:
                message = (
                    f"{self._directory} is being written by another process. Wait for it or choose another directory."
                )
            case StoreProblem.DAMAGED:
                message = f"{path} is not a lock file of merilo ({error}). Delete it and try again."
            case _:
                message = f"{self._directory} cannot be written ({error}). Choose another directory (--out)."
        return RunError(message)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._db is not None:
            self._db.close()


def is_locked(directory: Path) -> bool:
    """Return True if a process is writing the run. Changes no file; a lock file that is damaged locks nothing."""
    if not (directory / LOCK).is_file():  # opening a pipe would wait for ever
        return False
    try:
        with closing(read_only(directory / LOCK, (), wait_s=0.0)) as db:
            db.execute("SELECT 1 FROM sqlite_master")
    except ERRORS as error:
        return problem_of(error) is StoreProblem.BUSY
    return False
