"""What is in the verdict cache, and how old or unwanted verdicts leave it; other processes may go on using it."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.engine.cache_file import CacheFile
from merilo.errors import RunError, UsageError
from merilo.runs.database import ERRORS, Trouble, said, trouble_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

_ROWS = 10_000
_WAIT_S = 30.0
_LAST_TIME = 2**34


@dataclass(frozen=True, slots=True)
class Share:
    """The verdicts of one judge on one kind of question; both None where an earlier merilo did not note it."""

    judge: str | None
    kind: str | None
    verdicts: int
    oldest: int
    """When the first of them was stored, in seconds since 1970."""
    newest: int


@dataclass(frozen=True, slots=True)
class Contents:
    """What a cache holds."""

    path: Path
    size_bytes: int
    shares: tuple[Share, ...] = ()
    """Most verdicts first."""
    notices: tuple[str, ...] = ()

    @property
    def verdicts(self) -> int:
        """How many verdicts it holds in all."""
        return sum(share.verdicts for share in self.shares)

    @property
    def oldest(self) -> int | None:
        """When its first verdict was stored, in seconds since 1970; None where it is empty."""
        return min((share.oldest for share in self.shares), default=None)

    @property
    def newest(self) -> int | None:
        """When its last verdict was stored."""
        return max((share.newest for share in self.shares), default=None)


@dataclass(frozen=True, slots=True)
class Pruned:
    """What left a cache."""

    verdicts: int
    freed_bytes: int
    """By how much the file shrank; 0 where another process kept it from shrinking just now."""
    left: int
    """How many verdicts it still holds."""
    notices: tuple[str, ...] = ()


def contents(path: Path) -> Contents:
    """What the cache at `path` holds; nothing where there is none. Raises RunError where it cannot be used."""
    if not path.exists():
        return Contents(path, 0)
    notices: list[str] = []
    with _opened(path, notices) as file, _telling(path):
        rows = file.db.execute(
            "SELECT judge, kind, count(*), min(added), max(added) FROM verdicts LEFT JOIN sources ON id = source"
            " GROUP BY source ORDER BY count(*) DESC, judge, kind"
        ).fetchall()
    shares = (
        Share(_text(judge), _text(kind), count, _time(oldest), _time(newest))
        for judge, kind, count, oldest, newest in rows
    )
    return Contents(path, _size(path), tuple(shares), tuple(notices))


def prune(path: Path, *, before: int | None = None, judge: str | None = None) -> Pruned:
    """Take out verdicts: those stored before a time (seconds since 1970), those of a judge, both in one, or all.

    Raises RunError where the cache cannot be used, and UsageError for a judge of whom it holds nothing.
    """
    if not path.exists():
        return Pruned(0, 0, 0)
    size = _size(path)
    notices: list[str] = []
    with _opened(path, notices) as file, _telling(path):
        sources = None if judge is None else _sources(file.db, judge)
        gone = sum(_deleted(file, before, sources))
        (left,) = file.db.execute("SELECT count(*) FROM verdicts").fetchone()
        if gone:
            notices += _shrink(file.db)
    return Pruned(gone, max(0, size - _size(path)), left, tuple(notices))


def _opened(path: Path, notices: list[str]) -> AbstractContextManager[CacheFile]:
    return closing(CacheFile.open(path, tell=notices.append, create=False))


@contextmanager
def _telling(path: Path) -> Generator[None]:
    """Turns an error of SQLite in its block into a RunError of one sentence."""
    try:
        yield
    except ERRORS as error:
        if trouble_of(error) is Trouble.DAMAGED:
            told = f"The verdict cache {path} is damaged ({said(error)}); remove it: a run makes a new one."
        else:
            told = f"The verdict cache {path} cannot be used ({said(error)}); try again later."
        raise RunError(told) from error


def _sources(db: sqlite3.Connection, judge: str) -> list[int]:
    numbers = db.execute("SELECT id FROM sources WHERE judge = ?", (judge,))
    found = [number for (number,) in numbers if isinstance(number, int)]
    if not found:
        known = [str(name) for (name,) in db.execute("SELECT DISTINCT judge FROM sources ORDER BY judge")]
        holds = f"; it knows {', '.join(known)}" if known else ""
        raise UsageError(f"The cache holds no verdict of a judge {judge!r}{holds} (see merilo cache info).")
    return found


def _deleted(file: CacheFile, before: int | None, sources: list[int] | None) -> Iterator[int]:
    """How many rows went in each of many short transactions, between which others can write."""
    (last,) = file.db.execute("SELECT coalesce(max(rowid), 0) FROM verdicts").fetchone()
    wanted, values = "", []
    if before is not None:
        wanted, values = " AND added < ?", [before]
    if sources is not None:
        wanted += f" AND source IN ({','.join(map(str, sources))})"  # numbers of our own
    for start in range(0, last, _ROWS):
        with file.writing(_WAIT_S) as db:
            rows = db.execute(
                f"DELETE FROM verdicts WHERE rowid > ? AND rowid <= ?{wanted}",  # noqa: S608  our own constants
                (start, min(start + _ROWS, last), *values),
            )
            yield rows.rowcount


def _shrink(db: sqlite3.Connection) -> list[str]:
    """Give the freed room back; says so where that is not possible just now."""
    try:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:
        return [
            f"The file could not be made smaller just now ({said(error)}); its free room is used by what comes next."
        ]
    return []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _time(value: object) -> int:
    """A time that was stored; a damaged file may hold anything."""
    return value if isinstance(value, int) and 0 <= value < _LAST_TIME else 0


def _size(path: Path) -> int:
    parts = (path, path.with_name(path.name + "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
