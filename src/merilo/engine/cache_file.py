"""The SQLite file of the verdict cache: its place, its ownership and its tables.

merilo writes to a file only if it is its own, by its application id. A damaged file is refused when it is opened. A run
that meets the damage later continues without a cache.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.errors import RunError
from merilo.runs.database import ERRORS, StoreProblem, connected, error_text, problem_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

FORMAT: Final = 2
MARK: Final = 0x6D65_726C
"""SQLite `application_id` of a cache file: "merl"."""

_OPEN_WAIT_S = 30.0
_MAGIC = b"SQLite format 3\0"
_TABLES = (
    "CREATE TABLE sources (id INTEGER PRIMARY KEY, judge TEXT NOT NULL, kind TEXT NOT NULL, UNIQUE (judge, kind))",
    "CREATE TABLE verdicts (key BLOB NOT NULL, verdict BLOB NOT NULL, seal INTEGER, source INTEGER, added INTEGER)",
    "CREATE UNIQUE INDEX verdicts_key ON verdicts (key)",
)


def default_path() -> Path:
    """Return `$MERILO_CACHE`, or `merilo/verdicts.sqlite` in the user's cache directory if it is not set."""
    if named := os.environ.get("MERILO_CACHE"):
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "merilo" / "verdicts.sqlite"


@dataclass
class CacheFile:
    """An open cache file. Belongs to one thread."""

    path: Path
    db: sqlite3.Connection
    _waits_s: float | None = None
    """Current busy timeout of `db` in seconds; None before the first write."""

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> CacheFile:
        """Open the cache at `path`; with `create`, make it if there is none.

        Raises RunError for a damaged file, any other file, another format, and if the system denies access.
        """
        try:
            if create:
                path.parent.mkdir(0o700, parents=True, exist_ok=True)
            if not _is_ours(path):
                raise RunError(
                    f"{path} is not a verdict cache of merilo. Set MERILO_CACHE to another file, or run without a "
                    "cache (--no-cache)."
                )
            file = cls(path, _opened(path))
            (version,) = file.db.execute("PRAGMA user_version").fetchone()
            if version != FORMAT:
                file.close()
                raise RunError(
                    f"The verdict cache {path} has format {version}; this merilo reads format {FORMAT}. "
                    "Set MERILO_CACHE to another file."
                )
        except (OSError, *ERRORS) as error:
            raise unusable(path, error) from error
        return file

    @contextmanager
    def writing(self, wait_s: float) -> Generator[sqlite3.Connection]:
        """Run one transaction. Waits up to `wait_s` while another process writes."""
        if wait_s != self._waits_s:
            self.db.execute(f"PRAGMA busy_timeout = {wait_s * 1000:.0f}")
            self._waits_s = wait_s
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield self.db
            self.db.execute("COMMIT")
        except BaseException:
            with suppress(*ERRORS):
                self.db.rollback()
            raise

    def close(self) -> None:
        """Close the file."""
        with suppress(*ERRORS):
            self.db.close()


def _is_ours(path: Path) -> bool:
    """Return True for an SQLite file with merilo's application id, an empty one or none; nothing is written."""
    if not path.is_file():  # opening a pipe would wait for ever
        return not path.exists()
    with path.open("rb") as file:
        head = file.read(100)
    return not head or (head.startswith(_MAGIC) and int.from_bytes(head[68:72], "big") == MARK)


def _opened(path: Path) -> sqlite3.Connection:
    """Return a connection to the cache, with its tables created. Raises one of ERRORS."""
    give_up = time.monotonic() + _OPEN_WAIT_S
    while True:
        db = connected(path, _TABLES, wait_s=_OPEN_WAIT_S)
        try:
            if db.execute("PRAGMA user_version").fetchone() == (0,):
                db.execute("BEGIN IMMEDIATE")
                if db.execute("PRAGMA user_version").fetchone() == (0,):  # another process may have been faster
                    for statement in _TABLES:
                        db.execute(statement)
                    db.execute(f"PRAGMA application_id = {MARK}")
                    db.execute(f"PRAGMA user_version = {FORMAT}")
                db.execute("COMMIT")
            db.execute("PRAGMA journal_mode = WAL")
        except ERRORS as error:
            db.close()
            if problem_of(error) is not StoreProblem.BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.05)  # while opening, SQLite refuses some locks at once, whatever the busy timeout
        else:
            return db


def unusable(path: Path, error: Exception) -> RunError:
    """Return the error of a cache that cannot be used."""
    if problem_of(error) is StoreProblem.DAMAGED:
        why = f"The verdict cache {path} is damaged ({error_text(error)})."
        return RunError(f"{why} Delete it, or run without a cache (--no-cache).")
    return RunError(
        f"The verdict cache {path} cannot be used ({error_text(error)}). Make it writable, set MERILO_CACHE to another "
        "file, or run without a cache (--no-cache)."
    )


# -- its contents, and removing some -------------------------------------------------------------------
# Other processes may use the cache at the same time.

_ROWS = 10_000
_WAIT_S = 30.0


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
    with _present(path) as file:
        rows = file.db.execute(
            "SELECT judge, kind, count(*), min(added), max(added) FROM verdicts LEFT JOIN sources ON id = source"
            " GROUP BY source ORDER BY count(*) DESC, judge, kind"
        ).fetchall()
    shares = (JudgeEntryCount(*row) for row in rows)
    return Contents(path, _size(path), tuple(shares))


def prune(path: Path, *, before: int | None = None) -> Pruned:
    """Delete verdicts stored before a time (seconds since 1970), or all. Raises RunError if it cannot be used."""
    if not path.exists():
        return Pruned(0, 0, 0)
    size = _size(path)
    notices: list[str] = []
    with _present(path) as file:
        gone = sum(_deleted(file, before))
        (left,) = file.db.execute("SELECT count(*) FROM verdicts").fetchone()
        if gone:
            notices += _shrink(file.db)
    return Pruned(gone, max(0, size - _size(path)), left, tuple(notices))


@contextmanager
def _present(path: Path) -> Generator[CacheFile]:
    """Open the cache, and turn an error of SQLite in the block into a RunError."""
    with closing(CacheFile.open(path, create=False)) as file:
        try:
            yield file
        except ERRORS as error:
            raise unusable(path, error) from error


def _deleted(file: CacheFile, before: int | None) -> Iterator[int]:
    """Delete rows in many short transactions, between which other processes can write; yield the count of each."""
    (last,) = file.db.execute("SELECT coalesce(max(rowid), 0) FROM verdicts").fetchone()
    wanted, values = ("", ()) if before is None else (" AND added < ?", (before,))
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


def _size(path: Path) -> int:
    parts = (path, path.with_name(path.name + "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
