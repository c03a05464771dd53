"""Inspection and pruning of the verdict cache; other processes may use it at the same time."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.engine.cache_file import CacheFile, unusable
from merilo.errors import UsageError
from merilo.runs.database import ERRORS, error_text

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

_ROWS = 10_000
_WAIT_S = 30.0
_LAST_TIME = 2**34


@dataclass(frozen=True, slots=True)
class JudgeEntryCount:
    """Number and age of the verdicts of one judge on one kind of question. Judge and kind are None in old entries."""

    judge: str | None
    kind: str | None
    verdicts: int
    oldest: int
    """Time when the first of them was stored, in seconds since 1970."""
    newest: int


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of a cache, by judge and kind of question."""

    path: Path
    size_bytes: int
    shares: tuple[JudgeEntryCount, ...] = ()
    """Most verdicts first."""

    @property
    def verdicts(self) -> int:
        """Total number of verdicts."""
        return sum(share.verdicts for share in self.shares)

    @property
    def oldest(self) -> int | None:
        """Time when the first verdict was stored, in seconds since 1970; None if the cache is empty."""
        return min((share.oldest for share in self.shares), default=None)

    @property
    def newest(self) -> int | None:
        """Time when the last verdict was stored, in seconds since 1970; None if the cache is empty."""
        return max((share.newest for share in self.shares), default=None)


@dataclass(frozen=True, slots=True)
class Pruned:
    """Result of pruning a cache."""

    verdicts: int
    freed_bytes: int
    """Bytes by which the file shrank; 0 if another process prevented it."""
    left: int
    """Number of verdicts left."""
    notices: tuple[str, ...] = ()


def contents(path: Path) -> Contents:
    """Return the contents of the cache at `path`; empty if there is none. Raises RunError if it cannot be used."""
    if not path.exists():
        return Contents(path, 0)
    with _opened(path) as file:
        rows = file.db.execute(
            "SELECT judge, kind, count(*), min(added), max(added) FROM verdicts LEFT JOIN sources ON id = source"
            " GROUP BY source ORDER BY count(*) DESC, judge, kind"
        ).fetchall()
    shares = (
        JudgeEntryCount(_text(judge), _text(kind), count, _time(oldest), _time(newest))
        for judge, kind, count, oldest, newest in rows
    )
    return Contents(path, _size(path), tuple(shares))


def prune(path: Path, *, before: int | None = None, judge: str | None = None) -> Pruned:
    """Delete verdicts stored before a time (seconds since 1970), those of a judge, those of both conditions, or all.

    Raises RunError if the cache cannot be used, and UsageError for a judge without verdicts in it.
    """
    if not path.exists():
        return Pruned(0, 0, 0)
    size = _size(path)
    notices: list[str] = []
    with _opened(path) as file:
        sources = None if judge is None else _sources(file.db, judge)
        gone = sum(_deleted(file, before, sources))
        (left,) = file.db.execute("SELECT count(*) FROM verdicts").fetchone()
        if gone:
            notices += _shrink(file.db)
    return Pruned(gone, max(0, size - _size(path)), left, tuple(notices))


@contextmanager
def _opened(path: Path) -> Generator[CacheFile]:
    """Open the cache, and turn an error of SQLite in the block into a RunError."""
    with closing(CacheFile.open(path, create=False)) as file:
        try:
            yield file
        except ERRORS as error:
            raise unusable(path, error) from error


def _sources(db: sqlite3.Connection, judge: str) -> list[int]:
    numbers = db.execute("SELECT id FROM sources WHERE judge = ?", (judge,))
    found = [number for (number,) in numbers if isinstance(number, int)]
    if not found:
        known = [str(name) for (name,) in db.execute("SELECT DISTINCT judge FROM sources ORDER BY judge")]
        holds = f" (judges: {', '.join(known)})" if known else ""
        raise UsageError(f"The cache has no verdicts of judge {judge!r}{holds}; see merilo runs cache.")
    return found


def _deleted(file: CacheFile, before: int | None, sources: list[int] | None) -> Iterator[int]:
    """Delete rows in many short transactions, between which other processes can write; yield the count of each."""
    (last,) = file.db.execute("SELECT coalesce(max(rowid), 0) FROM verdicts").fetchone()
    wanted, values = "", []
    if before is not None:
        wanted, values = " AND added < ?", [before]
    if sources is not None:
        wanted += f" AND source IN ({','.join(map(str, sources))})"  # integers from our own table
    for start in range(0, last, _ROWS):
        with file.writing(_WAIT_S) as db:
            rows = db.execute(
                f"DELETE FROM verdicts WHERE rowid > ? AND rowid <= ?{wanted}",  # noqa: S608  our own constants
                (start, min(start + _ROWS, last), *values),
            )
            yield rows.rowcount


def _shrink(db: sqlite3.Connection) -> list[str]:
    """Return free space to the file system; return a notice if that is not possible now."""
    try:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:
        return [f"The file could not be shrunk now ({error_text(error)}). Its free space will be used by new verdicts."]
    return []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _time(value: object) -> int:
    """Return a stored time; 0 for an invalid value, since a damaged file may contain anything."""
    return value if isinstance(value, int) and 0 <= value < _LAST_TIME else 0


def _size(path: Path) -> int:
    parts = (path, path.with_name(path.name + "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
