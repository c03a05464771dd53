"""How our SQLite files are opened, when their rows are committed, what seals a row, and what their errors mean."""

from __future__ import annotations

import sqlite3
import time
from enum import Enum
from typing import TYPE_CHECKING, Final
from zlib import crc32

if TYPE_CHECKING:
    from pathlib import Path

MOST_UNREAD = 34
"""Replies that have come and were not read yet, at most. With the rows of a commit they are the 50 that a kill may
cost beside what is in the air."""
COMMIT_ROWS = 50 - MOST_UNREAD
COMMIT_SECONDS = 0.015
"""With the time that a reply may wait to be read, at most 20 ms."""
MOST_AT_ONCE = 100
"""Keys in one look-up; each size is a statement of its own, which SQLite prepares once."""

_PAGES_KB = 4_000
_LOG_PAGES = 30_000
"""Pages of 4 kB, from about 12,000 rows, after which the log is folded into the file: a run stops for some 50 ms."""
_STATEMENTS = 256
_SAID_CHARS = 120

_DAMAGED = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_ERROR,  # our statements are right, so a table or a column is gone
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_INTERNAL,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_RANGE,
        sqlite3.SQLITE_CONSTRAINT,  # the rows that are there break the tables' own rules
        sqlite3.SQLITE_EMPTY,
        sqlite3.SQLITE_NOTFOUND,
        sqlite3.SQLITE_NOLFS,
    }
)
_NOT_WRITABLE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})


ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; where a message quotes a damaged file, Python may fail to decode the message itself."""


class Trouble(Enum):
    """What an error of SQLite means to us."""

    BUSY = "busy"
    """Another process writes: try again."""
    DAMAGED = "damaged"
    """The file is not what we wrote."""
    NOT_WRITABLE = "not writable"
    """The system does not let us write there."""
    DISK = "disk"
    """The disk is full, a limit is reached, or it fails."""


def trouble_of(error: Exception) -> Trouble:
    """What this error means, one of ERRORS."""
    code: int | None = getattr(error, "sqlite_errorcode", None)  # Python's own complaints about bytes have none
    if code is None:
        return Trouble.DAMAGED
    primary = code & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        return Trouble.BUSY
    if primary in _NOT_WRITABLE:
        return Trouble.NOT_WRITABLE
    return Trouble.DAMAGED if primary in _DAMAGED else Trouble.DISK


def said(error: Exception) -> str:
    """What an error says, on one line and not too long: messages may quote what a damaged file holds."""
    text = " ".join(str(error).split())
    return text if len(text) <= _SAID_CHARS else f"{text[:_SAID_CHARS]}..."


def connected(path: Path, *, wait_s: float) -> sqlite3.Connection:
    """A connection for reading and writing, in autocommit mode; waits so long where another process writes.

    Raises one of ERRORS, also where the file is no database.
    """
    db = sqlite3.connect(
        path, timeout=wait_s, isolation_level=None, check_same_thread=False, cached_statements=_STATEMENTS
    )
    try:
        db.execute("PRAGMA cell_size_check = ON")
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA cache_size = -{_PAGES_KB}")
        db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
    except ERRORS:
        db.close()
        raise
    return db


def read_only(path: Path) -> sqlite3.Connection:
    """A connection for reading alone, also where nothing may be written; only what is committed is seen.

    Raises one of ERRORS, also where there is no file.
    """
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)


def places(count: int) -> str:
    """So many places for values in a statement: `?,?,?`."""
    return ",".join("?" * count)


def seal(key: bytes, text: str | bytes, *, failure: bool = False) -> int:
    """A checksum that ties what is stored to its key, so that a row that was damaged or moved is not believed."""
    data = text.encode() if isinstance(text, str) else text
    return crc32(data, crc32(b"failure" if failure else b"verdict", crc32(key)))


def row_seal(*values: bytes | str | float | None) -> int:
    """Return a checksum of a row's values, as SQLite returns them."""
    found = 0
    for value in values:
        if isinstance(value, bytes):
            data = b"b" + value
        elif isinstance(value, str):
            data = b"s" + value.encode("utf-8", "surrogatepass")
        else:  # a whole number and its float are one value: a column of real numbers returns what it likes
            data = b"n" if value is None else b"f" + repr(float(value)).encode()
        found = crc32(data, crc32(len(data).to_bytes(8, "little"), found))
    return found


class Due:
    """When what was gathered in memory has to be committed: after so many paid rows, or so long after the first."""

    __slots__ = ("_paid", "_rows", "_seconds", "_since")

    def __init__(self, rows: int, seconds: float) -> None:
        self._rows = rows
        self._seconds = seconds
        self._paid = 0
        self._since: float | None = None

    def add(self, *, paid: int) -> None:
        """Something was gathered, so many rows of which cost money."""
        self._paid += paid
        if self._since is None:
            self._since = time.monotonic()

    def clear(self) -> None:
        """Everything is committed."""
        self._paid = 0
        self._since = None

    @property
    def pending(self) -> bool:
        """Whether anything waits."""
        return self._since is not None

    def due_in(self) -> float | None:
        """Seconds until a commit is due; 0.0 when it is, None while nothing waits."""
        if self._since is None:
            return None
        if self._paid >= self._rows:
            return 0.0
        return max(0.0, self._since + self._seconds - time.monotonic())

    def due(self) -> bool:
        """Whether a commit is due."""
        return self._since is not None and (self._paid >= self._rows or time.monotonic() - self._since >= self._seconds)
