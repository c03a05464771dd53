"""Errors of a run's files: which file, what is wrong with it, and what to do."""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from merilo.errors import DataError, RunError
from merilo.runs.database import ERRORS, StoreProblem, error_text, problem_of
from merilo.runs.schema import FORMAT

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path
    from types import TracebackType

_SENTENCES: Final[Mapping[StoreProblem, str]] = {
    StoreProblem.BUSY: "{path} is being written by another process. Wait for it and try again.",
    StoreProblem.NOT_WRITABLE: "{path} cannot be opened or written ({error}). Make it writable or choose another "
    "directory.",
    StoreProblem.DISK: "{path} cannot be written or read ({error}): the disk is full or fails. Free some space and "
    "repeat the command to resume; the answers so far are stored.",
    StoreProblem.DAMAGED: "{path} is damaged ({error}). Start a new run in another directory (--out); answers in the "
    "verdict cache are reused.",
}


class StoreErrorContext:
    """Context manager that turns an error in its block into a RunError and rolls back an open transaction."""

    __slots__ = ("_db", "_path")

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, sqlite3.Error | ValueError | TypeError | KeyError | DataError):
            with suppress(*ERRORS):
                self._db.rollback()
            raise store_error(self._path, error) from error


def no_run(path: Path, lacking: str) -> RunError:
    """Return the error for a path without a run: a file, nothing at all, or a directory that lacks a file."""
    if path.is_file():
        return RunError(f"{path} is a file, not a run. To evaluate it: merilo run {path}")
    if not path.exists():
        return RunError(f"No such run: {path}. To list runs: merilo runs")
    return RunError(f"Not a run directory: {path} (no {lacking}).")


def require_store(path: Path) -> None:
    """Raise RunError if there is no store at `path`."""
    if not path.exists():
        raise no_run(path.parent, path.name)


def other_format_error(path: Path, found: object) -> RunError:
    """Return the error for a run or a store of another format."""
    return RunError(f"{path} has format {found}; this merilo reads format {FORMAT}. Use the merilo that wrote it.")


def missing_text_error(path: Path, sample: str) -> RunError:
    """Return the error for a run with outcomes of a sample that its store does not contain."""
    return RunError(f"{path} is damaged: it has outcomes of sample {sample!r}, but not the sample.")


def store_error(path: Path, error: Exception) -> RunError:
    """Return the RunError for an error of SQLite or for damaged content."""
    problem = problem_of(error) if isinstance(error, sqlite3.Error) else StoreProblem.DAMAGED
    return RunError(_SENTENCES[problem].format(path=path, error=error_text(error)))


def truncated_error(path: Path, done: int, outcome_samples: int) -> RunError:
    """Return the error for a run whose outcomes are of more or fewer samples than its summary states."""
    return RunError(
        f"{path} is damaged: its summary covers {done:,} samples, its outcomes {outcome_samples:,}. Copy the whole run "
        "again, or repeat its command with this directory (--out)."
    )


@contextmanager
def reading_outcomes(path: Path) -> Generator[None]:
    """Turn an error in the block, which reads the outcomes at `path`, into a RunError."""
    try:
        yield
    except FileNotFoundError:
        raise unwritten_error(path) from None
    except (OSError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise damaged_error(path, error) from error


def unwritten_error(path: Path) -> RunError:
    """Return the error for a file that a stopped run has not written yet."""
    return RunError(
        f"{path} does not exist: the run was stopped before writing it. "
        f"Repeat its command with --out {shlex.quote(str(path.parent))} to resume."
    )


def damaged_error(path: Path, why: object) -> RunError:
    """Return the error for a file of a run that is damaged or, if `why` is an OSError, cannot be read."""
    fault = "cannot be read" if isinstance(why, OSError) else "is damaged"
    return RunError(f"{path} {fault} ({why}). Repeat the command that wrote the run, with the same directory.")
