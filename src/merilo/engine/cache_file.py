"""The file behind the verdict cache: whose it is, its tables, and what becomes of it when it is damaged.

A file is set aside only where it is known to be ours: by its mark, or because it lies where we alone put files.
Whoever has the file open holds a shared lock beside it; to set it aside takes the exclusive one, so that nobody is
left writing to a file that has another name by then.
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
from merilo.runs.database import ERRORS, Trouble, connected, said, seal, trouble_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

FORMAT: Final = 2
MARK: Final = 0x6D65_726C
"""Our `application_id`: "merl"."""

_WRITE_WAIT_S = 0.5
_OPEN_WAIT_S = 30.0
_ALONE_WAIT_S = 3.0
_MAGIC = b"SQLite format 3\0"
_TABLES = (
    "CREATE TABLE sources (id INTEGER PRIMARY KEY, judge TEXT NOT NULL, kind TEXT NOT NULL, UNIQUE (judge, kind))",
    "CREATE TABLE verdicts (key BLOB NOT NULL, verdict BLOB NOT NULL, seal INTEGER, source INTEGER, added INTEGER)",
    "CREATE UNIQUE INDEX verdicts_key ON verdicts (key)",
)
_FIRST_FORMAT = {"verdicts": ["key", "verdict"]}


def default_path() -> Path:
    """`$MERILO_CACHE`, else `merilo/verdicts.sqlite` in the user's cache directory."""
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
    """The file is not a verdict cache; nothing was done to it."""


@dataclass
class CacheFile:
    """An open cache file. Belongs to one thread."""

    path: Path
    db: sqlite3.Connection
    _lock: _Lock
    _tell: Callable[[str], None]
    _waits_s: float | None = None
    """How long `db` waits now while another process writes; None before anything was written to it."""

    @classmethod
    def open(cls, path: Path, *, tell: Callable[[str], None], create: bool = True) -> CacheFile:
        """The cache at `path`, made there with `create`; brought to this format.

        One that is damaged and ours is set aside and a new one made, which `tell` is told. Raises RunError for any
        other file, for a newer format and where the system does not let us.
        """
        try:
            if create:
                path.parent.mkdir(parents=True, exist_ok=True)
            _look(path)
            lock = _Lock(path)
        except _Foreign as error:
            raise RunError(
                f"{path} is no verdict cache of merilo ({said(error)}); name another file with MERILO_CACHE, or run "
                "without a cache (--no-cache)."
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
            if trouble_of(error) is not Trouble.DAMAGED:
                raise
            fresh = _set_aside(path, lock, error, tell, wait_s=_ALONE_WAIT_S)
            if fresh is not None:
                return fresh
        try:
            return _opened(path)  # whoever uses it may have set the damaged one aside before us
        except ERRORS as error:
            if trouble_of(error) is not Trouble.DAMAGED:
                raise
            raise RunError(f"{_occupied(path, error)} Run without it (--no-cache), or try again later.") from error

    def replaced(self, error: Exception) -> CacheFile | None:
        """A new file in the place of this damaged one, which is set aside; None while another process uses it."""
        self.db.close()
        try:
            fresh = _set_aside(self.path, self._lock, error, self._tell)
        except (OSError, *ERRORS) as trouble:
            self.given_up(trouble)
            return None
        if fresh is None:
            self._lock.close()
            self._tell(f"{_occupied(self.path, error)} This run goes on without it.")
            return None
        self.db, self._waits_s = fresh, None
        return self

    def given_up(self, error: Exception) -> None:
        """Close the file, since it cannot be written, and say so."""
        self.close()
        self._tell(f"The verdict cache {self.path} cannot be written ({said(error)}); this run goes on without it.")

    @contextmanager
    def writing(self, wait_s: float | None = None) -> Generator[sqlite3.Connection]:
        """One transaction; waits so long (by default a moment) while another process writes."""
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
    """Raise _Foreign where a file at this path is not known to be ours. Nothing is written, here or beside it."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        return
    if not head or path == _own_path():
        return
    if not head.startswith(_MAGIC):
        raise _Foreign("it is not even an SQLite file")
    if int.from_bytes(head[68:72], "big") != MARK:
        tables = _tables(path)
        if tables is None:
            raise _Foreign("it is damaged, or another program's")
        if tables and tables != _FIRST_FORMAT:
            raise _Foreign(f"its tables are {', '.join(sorted(tables))}")


def _tables(path: Path) -> dict[str, list[str]] | None:
    """The tables of an SQLite file with their columns; None where it cannot be read."""
    logged = path.with_name(path.name + "-wal")
    mode = "mode=ro" if logged.exists() and logged.stat().st_size else "immutable=1"
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
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
    """A connection to the cache, with its tables made or brought to this format. Raises one of ERRORS, RunError."""
    give_up = time.monotonic() + _OPEN_WAIT_S
    while True:
        db = connected(path, wait_s=_OPEN_WAIT_S)
        try:
            _prepare(path, db)
        except ERRORS as error:
            db.close()
            if trouble_of(error) is not Trouble.BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.05)  # some locks of opening are refused at once, whatever the time that we would wait
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
        elif version == 1:
            _from_1(path, db)
        if version < FORMAT:
            db.execute(f"PRAGMA application_id = {MARK}")
            db.execute(f"PRAGMA user_version = {FORMAT}")
        db.execute("COMMIT")
    if db.execute("PRAGMA application_id").fetchone() != (MARK,):
        raise sqlite3.DatabaseError("it lacks our mark")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("SELECT key, verdict, seal, source, added FROM verdicts LIMIT 1").fetchone()
    db.execute("SELECT id, judge, kind FROM sources LIMIT 1").fetchone()


def _version(path: Path, db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > FORMAT:
        raise RunError(
            f"The verdict cache {path} has format {version}, this merilo reads up to {FORMAT}; upgrade merilo, or name "
            "another file with MERILO_CACHE."
        )
    return int(version)


def _from_1(path: Path, db: sqlite3.Connection) -> None:
    """Format 1 had no seals and did not know where a verdict came from; its rows are as old as its file at least."""
    columns = [row[1] for row in db.execute("PRAGMA table_info(verdicts)")]
    if columns != _FIRST_FORMAT["verdicts"]:
        raise sqlite3.DatabaseError(f"the table of verdicts has the columns {', '.join(columns)}")

    def sealed(key: bytes, verdict: bytes) -> int:
        return seal(key, verdict)

    db.create_function("sealed", 2, sealed, deterministic=True)
    for column in ("seal", "source", "added"):
        db.execute(f"ALTER TABLE verdicts ADD COLUMN {column} INTEGER")
    db.execute(_TABLES[0])
    db.execute("UPDATE verdicts SET verdict = CAST(verdict AS BLOB)")
    db.execute("UPDATE verdicts SET seal = sealed(key, verdict), added = ?", (int(path.stat().st_mtime),))
    db.create_function("sealed", 2, None)


def _set_aside(
    path: Path, lock: _Lock, error: Exception, tell: Callable[[str], None], *, wait_s: float | None = None
) -> sqlite3.Connection | None:
    """A new cache in the place of a damaged one, which is kept under another name; None while others use it.

    With `wait_s` the damage showed when it was opened: others who met it too are waited for, and one of them may have
    set it aside by then. Raises OSError and one of ERRORS where the system does not let us.
    """
    if not lock.alone(wait_s or 0.0):
        return None
    if wait_s is None or not _opens(path):
        number = next(n for n in range(1, 1_000_000) if not _aside(path, n).exists())
        for ending in ("", "-wal", "-shm"):
            part = path.with_name(path.name + ending)
            if part.exists():
                part.replace(_aside(path, number).with_name(_aside(path, number).name + ending))
        _opened(path).close()
        name = _aside(path, number).name
        tell(f"The verdict cache {path} is damaged ({said(error)}): it was set aside as {name} and a new one begun.")
    lock.share()  # somebody may be alone with the new file before we are back; hence no connection was kept to it
    return _opened(path)


def _opens(path: Path) -> bool:
    try:
        _opened(path).close()
    except ERRORS:
        return False
    return True


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.damaged-{number}")


def _occupied(path: Path, error: Exception) -> str:
    return f"The verdict cache {path} is damaged ({said(error)}), and another process uses it."


def _unusable(path: Path, error: Exception) -> RunError:
    return RunError(
        f"The verdict cache {path} cannot be used ({said(error)}); make it writable, set MERILO_CACHE to another "
        "file, or run without it (--no-cache)."
    )


class _Lock:
    """Who uses the cache: shared by all who do, alone for whoever sets it aside. Freed when a process dies.

    SQLite's own file lock is used because it works alike on every system and never goes stale.
    """

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path.with_name(path.name + ".lock"), isolation_level=None, check_same_thread=False)

    def share(self) -> None:
        """Hold it beside others; waits while somebody is alone."""
        self._drop()
        self._db.execute(f"PRAGMA busy_timeout = {_OPEN_WAIT_S * 1000:.0f}")
        self._db.execute("BEGIN")
        self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def alone(self, wait_s: float) -> bool:
        """Hold it alone, once others have let go of it; False, and shared as before, where they do not in time."""
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
