"""Use of SQLite in merilo: opening files, commit intervals, and the meaning of errors.

Every file that may come from someone else is opened here. Its schema must be ours, word for word: a view, a trigger, a
virtual table, a generated column or an index on an expression runs code of the file's author in each statement. Sizes
of values and steps of statements are bounded, since a damaged file of 1 kB can hold endless rows.
"""

from __future__ import annotations

import os
import sqlite3
import time
from enum import Enum
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

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
_MAX_STATEMENT_CHARS = 100_000
_SCHEMA_STEPS = 20_000
"""Steps of SQLite's virtual machine in which any schema of ours is read: that of a store takes fewer than 1,000."""
_STEPS = 100_000
"""Steps between two checks of the count; each check is a call into Python."""
_FREE_STEPS = 20_000_000
_STEPS_PER_BYTE = 8
"""Steps that reading a file may take, in addition to `_FREE_STEPS`, for each of its bytes on the disk; verifying a run
takes fewer than 2. Steps are counted, and not seconds, so that the result does not depend on the machine's load."""
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names another file, which SQLite deletes. merilo never writes one."""

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_DISK = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM})
_NOT_WRITABLE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})


ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of SQLite. If a message quotes a damaged file, Python may fail to decode the message itself."""


class StoreProblem(Enum):
    """Kinds of SQLite errors."""

    BUSY = "busy"
    """Another process is writing: try again."""
    DAMAGED = "damaged"
    """The file's content is not what merilo wrote."""
    NOT_WRITABLE = "not writable"
    """The system does not permit writing there."""
    DISK = "disk"
    """The disk is full, a limit is reached, or it fails."""


def problem_of(error: Exception) -> StoreProblem:
    """Return the kind of an error, which is one of ERRORS."""
    code: int | None = getattr(error, "sqlite_errorcode", None)  # a UnicodeDecodeError has none
    if code is None:
        return StoreProblem.DAMAGED
    kinds = {StoreProblem.BUSY: _BUSY, StoreProblem.NOT_WRITABLE: _NOT_WRITABLE, StoreProblem.DISK: _DISK}
    return next((kind for kind, codes in kinds.items() if code & 0xFF in codes), StoreProblem.DAMAGED)


def error_text(error: Exception) -> str:
    """Return the message of an error on one line and truncated, since it may quote the content of a damaged file."""
    text = " ".join(str(error).split())
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
        text = "reading it takes more steps than its size explains"
    return text if len(text) <= _MAX_MESSAGE_CHARS else f"{text[:_MAX_MESSAGE_CHARS]}..."


def schema_texts(statements: Iterable[str]) -> frozenset[str]:
    """Return the texts by which SQLite records these CREATE statements, with single spaces."""
    return frozenset(" ".join(each.replace(" IF NOT EXISTS", "").split()) for each in statements)


def connected(path: Path, *, wait_s: float, schema: Collection[str] | None) -> sqlite3.Connection:
    """Return a connection for reading and writing, in autocommit mode, that waits `wait_s` while another process
    writes.

    `schema`: the `schema_texts` that the file may have; None for a new file, which is not bounded. Raises one of
    ERRORS, also if the file is not a database.
    """
    _check_files(path)
    db = sqlite3.connect(
        path,
        timeout=wait_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
        factory=_Connection,
    )
    try:
        if schema is not None:
            _restrict(db, path, schema)
        db.execute(f"PRAGMA cache_size = -{_PAGES_KB}")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
    except ERRORS:
        db.close()
        raise
    return db


def read_only(
    path: Path, schema: Collection[str] | None, *, wait_s: float = 5.0, immutable: bool = False
) -> sqlite3.Connection:
    """Return a read-only connection, which also works on read-only media; it sees committed rows only.

    `schema`: as in `connected`; None does not compare it. `immutable`: ignore a write-ahead log and create no file next
    to it. Raises one of ERRORS, also if there is no file.
    """
    _check_files(path)
    mode = "immutable=1" if immutable else "mode=ro"
    db = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=wait_s, check_same_thread=False)
    try:
        _restrict(db, path, schema)
    except ERRORS:
        db.close()
        raise
    return db


class _Connection(sqlite3.Connection):
    """A connection for writing. A run may use it for days, so the steps of each statement are counted apart."""

    steps = 0

    def execute(self, *arguments: Any) -> sqlite3.Cursor:  # Any: as the base class takes them
        self.steps = 0
        return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:  # Any: as the base class takes them
        self.steps = -(2**60)  # its rows come from merilo, however many
        return super().executemany(*arguments)


def _check_files(path: Path) -> None:
    """Raise DatabaseError for a file that SQLite must not open: a pipe, a device, a log that leads elsewhere."""
    if path.exists() and not path.is_file():
        raise sqlite3.DatabaseError("it is not a regular file")
    for suffix in ("-wal", "-shm", "-journal"):
        each = path.with_name(path.name + suffix)
        if each.is_symlink() or (each.exists() and not each.is_file()):
            raise sqlite3.DatabaseError(f"{each.name} is not a regular file")
        if suffix == "-journal" and each.exists() and _end_of(each) == _SUPER_JOURNAL:
            raise sqlite3.DatabaseError(f"{each.name} names another file")


def _end_of(path: Path) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_SUPER_JOURNAL)))
        return file.read()


def _restrict(db: sqlite3.Connection, path: Path, schema: Collection[str] | None) -> None:
    """Bound the sizes and steps of a connection, and compare its schema. Raises DatabaseError for another schema."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
    db.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _MAX_STATEMENT_CHARS)
    db.set_progress_handler(lambda: True, _SCHEMA_STEPS)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    if schema is not None:
        for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master"):
            automatic = kind == "index" and sql is None and str(name).startswith("sqlite_autoindex_")
            if not automatic and " ".join(str(sql).split()) not in schema:
                raise sqlite3.DatabaseError(f"its {kind} {name} is not one of merilo's")
    steps = 0

    def exceeded() -> bool:
        nonlocal steps
        if isinstance(db, _Connection):
            used = db.steps = db.steps + _STEPS
        else:
            used = steps = steps + _STEPS
        if used <= _FREE_STEPS:
            return False
        found = path.stat()
        blocks: int | None = getattr(found, "st_blocks", None)  # Windows has none
        size = found.st_size if blocks is None else min(found.st_size, blocks * 512)  # holes explain no steps
        return used > _STEPS_PER_BYTE * size

    db.set_progress_handler(exceeded, _STEPS)


def places(count: int) -> str:
    """Return this many placeholders for values in a statement: `?,?,?`."""
    return ",".join("?" * count)


def seal(key: bytes, text: Any, *, failure: bool = False) -> int:  # Any: a text or bytes
    """Return a checksum of a stored text and its key. It detects rows that were changed or moved to another key."""
    data = text if type(text) is bytes else str.encode(text)
    return crc32(b"%b%b%b" % (key, b"failure" if failure else b"verdict", data))


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
