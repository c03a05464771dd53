"""Use of SQLite in merilo: opening files, the tables of a run's store, commit intervals, and the meaning of errors.

Every file that may come from someone else is opened here. Its schema must be ours, word for word: a view, a trigger, a
virtual table, a generated column or an index on an expression runs code of the file's author in each statement.

A store records the sum of the checksums of each table's rows (table `meta`, name `digests`). Every transaction that
adds or removes rows updates it. A run that is resumed, merged or verified is compared with it, so a row that another
program added, removed or edited is detected. Texts need no such number, since each is stored under its digest.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_VALUE: Final = 2**27
"""Maximum bytes of one stored value. A sample has at most those of a line of data, which are half as many."""
MAX_UNREAD = 18
"""Maximum number of received replies that are not processed yet."""
COMMIT_ROWS = 64
"""Rows of one commit. Together with the unread replies these are the 82 replies that a kill may cost, in addition to
those in flight; fewer at less than 250 replies a second, since a commit is due after COMMIT_SECONDS."""
COMMIT_SECONDS = 0.25
"""Seconds between commits."""
MAX_AT_ONCE = 100
"""Maximum keys in one look-up. Each number of keys is a separate statement, which SQLite prepares once."""

_PAGES_KB = 4_000
_LOG_PAGES = 30_000
"""Pages of 4 kB, from about 12,000 rows, after which the log is merged into the file, which blocks a run for some 50
ms."""
_STATEMENTS = 256
_MAX_MESSAGE_CHARS = 120
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names another file, which SQLite deletes. merilo never writes one."""

ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of SQLite. If a message quotes a damaged file, Python may fail to decode the message itself."""


class StoreProblem(Enum):
    """Kinds of SQLite errors."""

    BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
    """Another process is writing: try again."""
    NOT_WRITABLE = frozenset(
        {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
    )
    """The system does not permit writing there."""
    DISK = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM})
    """The disk is full, a limit is reached, or it fails."""
    DAMAGED = frozenset[int]()
    """The file's content is not what merilo wrote: every other error."""


def problem_of(error: Exception) -> StoreProblem:
    """Return the kind of an error, which is one of ERRORS."""
    code: int = getattr(error, "sqlite_errorcode", None) or 0  # a UnicodeDecodeError has none
    return next((kind for kind in StoreProblem if code & 0xFF in kind.value), StoreProblem.DAMAGED)


def error_text(error: Exception) -> str:
    """Return the message of an error on one line and truncated, since it may quote the content of a damaged file."""
    text = " ".join(str(error).split())
    return text if len(text) <= _MAX_MESSAGE_CHARS else f"{text[:_MAX_MESSAGE_CHARS]}..."


def file_mode(path: str | Path) -> int:
    """Return the mode of a new file: for this user only in a directory for this user only, as merilo creates them."""
    return 0o666 & Path(path).parent.stat().st_mode


def connected(path: Path, schema: Iterable[str], *, wait_s: float = 5.0, reading: bool = False) -> sqlite3.Connection:
    """Return a connection in autocommit mode that waits `wait_s` while another process writes.

    `schema`: the CREATE statements that the file may have. `reading`: only read committed rows, also on read-only
    media. Raises one of ERRORS: if the file has another schema or is not a database, or if it is read and missing.
    """
    for suffix in ("", "-wal", "-shm", "-journal"):
        each = path.with_name(path.name + suffix)
        if (suffix and each.is_symlink()) or (each.exists() and not each.is_file()):
            raise sqlite3.DatabaseError(f"{each.name} is not a regular file")
        if suffix == "-journal" and each.exists() and each.read_bytes().endswith(_SUPER_JOURNAL):
            raise sqlite3.DatabaseError(f"{each.name} names another file")
    if not (reading or path.exists()):
        with suppress(OSError):  # SQLite reports it
            path.touch(file_mode(path))
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro" if reading else path,
        uri=reading,
        timeout=wait_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
    )
    try:
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        known = {" ".join(each.replace(" IF NOT EXISTS", "").split()) for each in schema}
        for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master"):
            automatic = kind == "index" and sql is None and str(name).startswith("sqlite_autoindex_")
            if not automatic and " ".join(str(sql).split()) not in known:
                raise sqlite3.DatabaseError(f"its {kind} {name} is not one of merilo's")
        db.execute(f"PRAGMA cache_size = -{_PAGES_KB}")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
    except ERRORS:
        db.close()
        raise
    return db


def places(count: int) -> str:
    """Return this many placeholders for values in a statement: `?,?,?`."""
    return ",".join("?" * count)


def seal(key: bytes, text: Any) -> int:  # Any: a text or bytes
    """Return a checksum of a stored text and its key. It detects rows that were changed or moved to another key."""
    data = text if type(text) is bytes else str.encode(text)
    return crc32(b"%bverdict%b" % (key, data))


class CommitPolicy:
    """Schedule of commits: after a number of paid rows, or some seconds after the first pending row."""

    __slots__ = ("_paid", "_rows", "_seconds", "_since")

    def __init__(self, rows: int, seconds: float) -> None:
        self._rows = rows
        self._seconds = seconds
        self._paid = 0
        self._since: float | None = None

    def add(self, *, paid: int) -> None:
        """Note that something is pending, with the number of its rows that cost money."""
        self._paid += paid
        if self._since is None:
            self._since = time.monotonic()

    def clear(self) -> None:
        """Note that everything is committed."""
        self._paid = 0
        self._since = None

    @property
    def pending(self) -> bool:
        """True if something is pending."""
        return self._since is not None

    def due_in(self) -> float | None:
        """Return the seconds until a commit is due; 0.0 if it is due now, None if nothing is pending."""
        if self._since is None:
            return None
        if self._paid >= self._rows:
            return 0.0
        return max(0.0, self._since + self._seconds - time.monotonic())

    def due(self) -> bool:
        """Return True if a commit is due."""
        return self._since is not None and (self._paid >= self._rows or time.monotonic() - self._since >= self._seconds)


# -- the store of a run -------------------------------------------------------------------------------

FORMAT: Final = 8
"""The format of a run: its store, its manifest and its seal. A run of another format is refused."""

_SAMPLES: Final = "CREATE TABLE samples (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record BLOB NOT NULL)"
INCOMING: Final = _SAMPLES.replace("samples", "incoming")
"""The table of samples that are being added."""
SCHEMA: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    _SAMPLES,
    "CREATE TABLE texts (digest BLOB NOT NULL, text TEXT NOT NULL)",
    "CREATE UNIQUE INDEX texts_digest ON texts (digest)",
    """CREATE TABLE exchanges (id INTEGER PRIMARY KEY, judge TEXT NOT NULL, rubric BLOB NOT NULL,
    record BLOB NOT NULL, requests INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER,
    cost_usd REAL, seconds REAL NOT NULL)""",
    """CREATE TABLE answers (key BLOB NOT NULL, exchange INTEGER NOT NULL, place INTEGER NOT NULL,
    sample INTEGER NOT NULL, failed INTEGER NOT NULL, cached INTEGER NOT NULL)""",
    "CREATE UNIQUE INDEX answers_key ON answers (key)",
    "CREATE TABLE unfinished (key BLOB PRIMARY KEY, exchange INTEGER NOT NULL)",
)
"""The tables of a store."""
STORE_SCHEMA: Final = (*SCHEMA, INCOMING, _SAMPLES.replace("samples", '"samples"'))
"""What the schema of a store may consist of: also samples that are being added, and those that replaced others."""
_DIGESTED: Final = ("samples", "exchanges", "answers")
_NAME: Final = "digests"


def row_digest(row: Sequence[bytes | str | float | None]) -> int:
    """Return a checksum of a row's values, as SQLite returns them: no bool, and floats in columns of real numbers."""
    return crc32(repr(tuple(row)).encode("utf-8", "surrogatepass"))


def record_digests(db: sqlite3.Connection, *tables: str) -> None:
    """Record the digests of these tables as they are now, within a transaction; of all without names."""
    digests = _recorded(db) | {table: _digest(db, table) for table in tables or _DIGESTED}
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_NAME, json.dumps(digests)))


def add_to_digests(db: sqlite3.Connection, changes: Mapping[str, int]) -> None:
    """Add to the digests of tables, within the transaction that adds or removes the rows."""
    if any(changes.values()):
        found = _recorded(db)
        found |= {table: found[table] + change for table, change in changes.items()}
        db.execute("UPDATE meta SET value = ? WHERE name = ?", (json.dumps(found), _NAME))


def delete_rows(db: sqlite3.Connection, table: str, where: str, values: Sequence[object] = ()) -> int:
    """Delete rows within a transaction and record the change; return their number."""
    add_to_digests(db, {table: -_digest(db, table, where, values)})
    return db.execute(f"DELETE FROM {table} WHERE {where}", values).rowcount  # noqa: S608  our own constants


def different_table(db: sqlite3.Connection) -> str | None:
    """Return the first table whose rows differ from its digest; None if there is none. Reads all rows."""
    recorded = _recorded(db)
    return next((table for table in _DIGESTED if _digest(db, table) != recorded.get(table)), None)


def _digest(db: sqlite3.Connection, table: str, where: str = "true", values: Sequence[object] = ()) -> int:
    return sum(map(row_digest, db.execute(f"SELECT * FROM {table} WHERE {where}", values)))  # noqa: S608  our own constants


def _recorded(db: sqlite3.Connection) -> dict[str, int]:
    row = db.execute("SELECT value FROM meta WHERE name = ?", (_NAME,)).fetchone()
    found: Any = {} if row is None else json.loads(row[0])  # Any: JSON; what is not a table of numbers raises in use
    return dict(found)
