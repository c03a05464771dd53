"""What goes wrong with the store of a run, told in one sentence: which file, what is wrong with it, what to do."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from merilo.errors import DataError, RunError
from merilo.runs.database import ERRORS, Trouble, said, trouble_of
from merilo.runs.migrations import FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

_SENTENCES: Final[Mapping[Trouble, str]] = {
    Trouble.BUSY: "{path} is being written by another process; wait for it and try again.",
    Trouble.NOT_WRITABLE: "{path} cannot be opened or written ({error}); make it writable or choose another directory.",
    Trouble.DISK: "{path} cannot be written or read ({error}): the disk is full or fails; make room and run the same "
    "command again, what was answered before is kept.",
    Trouble.DAMAGED: "{path} is damaged ({error}); start a new run in another directory (--out): what the verdict "
    "cache holds is not asked again.",
}


class Telling:
    """Turns what goes wrong in its block into a RunError of one sentence, and leaves no transaction open."""

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
            raise told(self._path, error) from error


def demand(path: Path) -> None:
    """Raise RunError where there is no store at `path`."""
    if not path.exists():
        raise RunError(f"{path} does not exist: this is not the directory of a run; name one that is.")


def newer(path: Path, found: int) -> RunError:
    """What to say of a store of a format that is not known here."""
    return RunError(f"{path} has format {found}, this merilo reads up to {FORMAT}; upgrade merilo.")


def without_text(path: Path, sample: str) -> RunError:
    """What to say of a run that has outcomes of a sample which its store does not hold."""
    return RunError(f"{path} is damaged: it has outcomes of sample {sample!r} but no text.")


def told(path: Path, error: Exception) -> RunError:
    """What to say of an error: what is wrong with which file, and what to do."""
    trouble = trouble_of(error) if isinstance(error, sqlite3.Error) else Trouble.DAMAGED
    return RunError(_SENTENCES[trouble].format(path=path, error=said(error)))


def cut_short(path: Path, done: int, held: int) -> RunError:
    """Return the error for a run whose outcomes are of more or fewer samples than its summary says."""
    return RunError(
        f"{path} is damaged: its summary is of {done:,} samples, its outcomes are of {held:,}. Copy the whole run "
        "again, or repeat its command with this directory (--out)."
    )
