"""The SQLite file of the verdict cache: its ownership, its tables, and its replacement if it is damaged.

A file is renamed only if it is known to be merilo's: by its application id, or because it is in merilo's own directory.
Each process that has the file open holds a shared lock in a separate lock file. Renaming requires the exclusive lock,
so that no process continues to write to a renamed file.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.errors import RunError
from merilo.runs.database import (
    ERRORS,
    StoreProblem,
    connected,
    error_text,
    problem_of,
    read_only,
    schema_texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

FORMAT: Final = 2
MARK: Final = 0x6D65_726C
"""SQLite `application_id` of a cache file: "merl"."""

_WRITE_WAIT_S = 0.5
_OPEN_WAIT_S = 30.0
_ALONE_WAIT_S = 3.0
_MAGIC = b"SQLite format 3\0"
_TABLES = (
    "CREATE TABLE sources (id INTEGER PRIMARY KEY, judge TEXT NOT NULL, kind TEXT NOT NULL, UNIQUE (judge, kind))",
    "CREATE TABLE verdicts (key BLOB NOT NULL, verdict BLOB NOT NULL, seal INTEGER, source INTEGER, added INTEGER)",
    "CREATE UNIQUE INDEX verdicts_key ON verdicts (key)",
)
_SCHEMA = schema_texts(_TABLES)
"""What the schema of a cache may consist of."""


def default_path() -> Path:
    """Return `$MERILO_CACHE`, or `merilo/verdicts.sqlite` in the user's cache directory if it is not set."""
    named = os.environ.get("MERILO_CACHE")
    return Path(named) if named else _own_path()


def _own_path() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "merilo" / "verdicts.sqlite"


class _Foreign(Exception):
    """The file is not a verdict cache; it was not changed."""


@dataclass
class CacheFile:
    """An open cache file. Belongs to one thread."""

    path: Path
    db: sqlite3.Connection
    _lock: _Lock
    _tell: Callable[[str], None]
    _waits_s: float | None = None
    """Current busy timeout of `db` in seconds; None before the first write."""

    @classmethod
    def open(cls, path: Path, *, tell: Callable[[str], None], create: bool = True) -> CacheFile:
        """Open the cache at `path`; with `create`, make it if there is none.

        A damaged file of merilo's is renamed and replaced by a new one, which is reported to `tell`. Raises RunError
        for any other file, for another format and if the system denies access.
        """
        try:
            if create:
                path.parent.mkdir(parents=True, exist_ok=True)
            _look(path)
            lock = _Lock(path)
        except _Foreign as error:
            raise RunError(
                f"{path} is not a verdict cache of merilo ({error_text(error)}). Set MERILO_CACHE to another file, or "
                "run without a cache (--no-cache)."
            ) from None
        except (OSError, *ERRORS) as error:
            raise _unusable(path, error) from error
        try:
            return cls(path, cls._first(path, lock, tell), lock, tell)
        except BaseException as error:
            lock.close()
            if isinstance(error, OSError | sqlite3.Error | UnicodeDecodeError):
                raise _unusable(path, error) from error
            raise

    @staticmethod
    def _first(path: Path, lock: _Lock, tell: Callable[[str], None]) -> sqlite3.Connection:
        lock.share()
        try:
            return _opened(path)
        except ERRORS as error:
            if problem_of(error) is not StoreProblem.DAMAGED:
                raise
            fresh = _rename_damaged(path, lock, error, tell, wait_s=_ALONE_WAIT_S)
            if fresh is not None:
                return fresh
        try:
            return _opened(path)  # another process may have replaced the damaged file in the meantime
        except ERRORS as error:
            if problem_of(error) is not StoreProblem.DAMAGED:
                raise
            raise RunError(f"{_occupied(path, error)} Run without it (--no-cache), or try again later.") from error

    def replaced(self, error: Exception) -> CacheFile | None:
        """Rename this damaged file and return a new one in its place; None while another process uses it."""
        self.db.close()
        try:
            fresh = _rename_damaged(self.path, self._lock, error, self._tell)
        except (OSError, *ERRORS) as trouble:
            self.given_up(trouble)
            return None
        if fresh is None:
            self._lock.close()
            self._tell(f"{_occupied(self.path, error)} This run continues without it.")
            return None
        self.db, self._waits_s = fresh, None
        return self

    def given_up(self, error: Exception) -> None:
        """Close the file, since it cannot be written, and report that."""
        self.close()
        self._tell(
            f"The verdict cache {self.path} cannot be written ({error_text(error)}). This run continues without it."
        )

    @contextmanager
    def writing(self, wait_s: float | None = None) -> Generator[sqlite3.Connection]:
        """Run one transaction. Waits up to `wait_s` (default: half a second) while another process writes."""
        wait_s = _WRITE_WAIT_S if wait_s is None else wait_s
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
        self._lock.close()


def _look(path: Path) -> None:
    """Raise _Foreign if the file at this path is not known to be merilo's. Writes nothing."""
    if path.exists() and not path.is_file():  # opening a pipe would wait for ever
        raise _Foreign("it is not a regular file")
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        return
    if not head or path == _own_path():
        return
    if not head.startswith(_MAGIC):
        raise _Foreign("it is not an SQLite file")
    if int.from_bytes(head[68:72], "big") != MARK:
        tables = _tables(path)
        if tables is None:
            raise _Foreign("it is damaged or belongs to another program")
        if tables:
            raise _Foreign(f"its tables are {', '.join(sorted(tables))}")


def _tables(path: Path) -> dict[str, list[str]] | None:
    """Return the tables of an SQLite file with their columns; None if it cannot be read."""
    logged = path.with_name(path.name + "-wal")
    try:
        db = read_only(path, None, immutable=not (logged.exists() and logged.stat().st_size))
        try:
            names = [str(name) for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {
                name: [row[1] for row in db.execute("SELECT * FROM pragma_table_info(?)", (name,))] for name in names
            }
        finally:
            db.close()
    except ERRORS:
        return None


def _opened(path: Path) -> sqlite3.Connection:
    """Return a connection to the cache, with its tables created. Raises one of ERRORS, or RunError."""
    give_up = time.monotonic() + _OPEN_WAIT_S
    while True:
        db = connected(path, wait_s=_OPEN_WAIT_S, schema=_SCHEMA)
        try:
            _prepare(path, db)
        except ERRORS as error:
            db.close()
            if problem_of(error) is not StoreProblem.BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.05)  # while opening, SQLite refuses some locks at once, whatever the busy timeout
        except BaseException:
            db.close()
            raise
        else:
            return db


def _prepare(path: Path, db: sqlite3.Connection) -> None:
    version = _version(path, db)
    if version < FORMAT:
        db.execute("BEGIN IMMEDIATE")
        version = _version(path, db)  # another process may have been faster
        if version == 0:
            for statement in _TABLES:
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {MARK}")
            db.execute(f"PRAGMA user_version = {FORMAT}")
        db.execute("COMMIT")
    if db.execute("PRAGMA application_id").fetchone() != (MARK,):
        raise sqlite3.DatabaseError("it lacks merilo's application id")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("SELECT key, verdict, seal, source, added FROM verdicts LIMIT 1").fetchone()
    db.execute("SELECT id, judge, kind FROM sources LIMIT 1").fetchone()


def _version(path: Path, db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version not in (0, FORMAT):
        raise RunError(
            f"The verdict cache {path} has format {version}; this merilo reads format {FORMAT}. "
            "Set MERILO_CACHE to another file."
        )
    return int(version)


def _rename_damaged(
    path: Path, lock: _Lock, error: Exception, tell: Callable[[str], None], *, wait_s: float | None = None
) -> sqlite3.Connection | None:
    """Rename a damaged cache and return a connection to a new one; None while other processes use it.

    `wait_s` is set if the damage was found on opening. Other processes may have found it too: wait for them, since one
    of them may have replaced the file already. Raises OSError and one of ERRORS if the system denies access.
    """
    if not lock.alone(wait_s or 0.0):
        return None
    if wait_s is None or not _opens(path):
        number = next(n for n in range(1, 1_000_000) if not _renamed(path, n).exists())
        for ending in ("", "-wal", "-shm"):
            part = path.with_name(path.name + ending)
            if part.exists():
                part.replace(_renamed(path, number).with_name(_renamed(path, number).name + ending))
        _opened(path).close()
        name = _renamed(path, number).name
        tell(
            f"The verdict cache {path} is damaged ({error_text(error)}). It was renamed to {name}; a new one was "
            "created."
        )
    # between the two locks another process may replace the file once more, so connect only after share()
    lock.share()
    return _opened(path)


def _opens(path: Path) -> bool:
    try:
        _opened(path).close()
    except ERRORS:
        return False
    return True


def _renamed(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.damaged-{number}")


def _occupied(path: Path, error: Exception) -> str:
    return f"The verdict cache {path} is damaged ({error_text(error)}), and another process uses it."


def _unusable(path: Path, error: Exception) -> RunError:
    return RunError(
        f"The verdict cache {path} cannot be used ({error_text(error)}). Make it writable, set MERILO_CACHE to another "
        "file, or run without a cache (--no-cache)."
    )


class _Lock:
    """Lock file of the cache: shared by all processes that use it, exclusive to rename it. Freed when a process dies.

    It is an SQLite database, because SQLite's file locks work the same on every system and never go stale.
    """

    def __init__(self, path: Path) -> None:
        self._db = connected(path.with_name(path.name + ".lock"), wait_s=_OPEN_WAIT_S, schema=())

    def share(self) -> None:
        """Take the shared lock; wait while another process holds the exclusive one."""
        self._drop()
        self._db.execute(f"PRAGMA busy_timeout = {_OPEN_WAIT_S * 1000:.0f}")
        self._db.execute("BEGIN")
        self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def alone(self, wait_s: float) -> bool:
        """Take the exclusive lock once others release theirs. Return False, with the shared lock, if they do not in
        time.
        """
        self._drop()
        self._db.execute(f"PRAGMA busy_timeout = {wait_s * 1000:.0f}")
        try:
            self._db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            self.share()
            return False
        return True

    def close(self) -> None:
        self._db.close()

    def _drop(self) -> None:
        if self._db.in_transaction:
            self._db.rollback()
