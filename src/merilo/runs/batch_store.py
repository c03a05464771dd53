"""The batches of a run directory, `batches.sqlite`: each request that waits for its reply, and replies not used yet.

A request (a line) is in one of three states: in flight in a batch, arrived with a status and a text, or to be submitted
again. A batch is written with all its lines before it is submitted, and its results are written in one transaction.
So a killed command loses nothing: the next one finds the batch at the provider by its mark. No line holds a prompt or
a key. Replies are removed once the run is complete, because its store holds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.errors import RunError
from merilo.runs.database import ERRORS, connected, error_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    mark TEXT PRIMARY KEY, provider TEXT NOT NULL, id TEXT, created REAL NOT NULL, collected INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS lines (
    key BLOB PRIMARY KEY, provider TEXT NOT NULL, batch TEXT, body BLOB NOT NULL, path TEXT NOT NULL,
    entry INTEGER NOT NULL, reserved_usd REAL NOT NULL, tries INTEGER NOT NULL, status INTEGER, text TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS lines_of_batch ON lines (batch);
"""
_COLUMNS: Final = "key, provider, batch, body, path, entry, reserved_usd, tries, status, text"


class Line(NamedTuple):
    """A request of a run that goes into batches."""

    key: bytes
    provider: str
    """The title of its provider."""
    batch: str | None
    """The mark of its batch; None if it has to be submitted again."""
    body: bytes
    """A digest of the body that was sent."""
    path: str
    """How structured output was requested."""
    entry: int
    """Its number in the ledger."""
    reserved_usd: float
    tries: int
    """Number of temporary errors so far."""
    status: int | None = None
    """The HTTP status of its reply; None as long as there is none."""
    text: str | None = None


class Batch(NamedTuple):
    """A batch that is not collected yet."""

    mark: str
    provider: str
    id: str | None
    """The provider's id; None if it is unknown whether the batch was submitted."""
    created: float
    lines: int


class BatchStore:
    """An open `batches.sqlite`. Any call may raise RunError."""

    def __init__(self, path: Path) -> None:
        """Open the file, created if missing."""
        self._path = path
        try:
            self._db = connected(path, _TABLES.split(";"))
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")  # a batch must be on the disk before it is submitted
            self._db.executescript(_TABLES)
        except ERRORS as error:
            raise self._error(error) from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def generation(self) -> int:
        """Number of times that failed questions were asked again; part of each line's key."""
        return self._number("generation")

    @property
    def first_entry(self) -> int:
        """First ledger entry of a killed command, or 0: open entries from it on without a line were never submitted."""
        return self._number("first_entry")

    def begin(self, first_entry: int) -> None:
        """Record that a command is about to make ledger entries from this number on; 0 at its end."""
        self._set("first_entry", first_entry)

    def ask_again(self) -> None:
        """Start a new generation, so that questions are asked again."""
        self._set("generation", self.generation + 1)

    def line(self, key: bytes) -> Line | None:
        """Return the line with this key; None if it was never submitted."""
        rows = self._all(f"SELECT {_COLUMNS} FROM lines WHERE key = ?", key)  # noqa: S608  our own columns
        return Line(*rows[0]) if rows else None

    def lines_of(self, mark: str) -> list[Line]:
        """Return the lines of a batch, in the order in which they were submitted."""
        query = f"SELECT {_COLUMNS} FROM lines WHERE batch = ? ORDER BY entry"  # noqa: S608  our own columns
        return [Line(*row) for row in self._all(query, mark)]

    def entries(self) -> dict[int, Line]:
        """Return the last line of each ledger entry, without its text."""
        query = "SELECT key, provider, batch, body, path, entry, reserved_usd, tries, status FROM lines"
        return {line.entry: line for line in (Line(*row) for row in self._all(query))}

    def waiting(self) -> list[Batch]:
        """Return the batches that are not collected, oldest first."""
        query = (
            "SELECT mark, provider, id, created, (SELECT count(*) FROM lines WHERE batch = mark) FROM batches"
            " WHERE NOT collected ORDER BY batches.rowid"
        )
        return [Batch(*row) for row in self._all(query)]

    @property
    def in_use(self) -> bool:
        """True if a request waits for its reply, or a reply may not have been used yet."""
        return bool(self._all("SELECT 1 FROM lines LIMIT 1"))

    def ids(self) -> frozenset[str]:
        """Return the providers' ids of all batches."""
        return frozenset(row[0] for row in self._all("SELECT id FROM batches WHERE id IS NOT NULL"))

    def intend(self, mark: str, provider: str, created: float, lines: Iterable[Line]) -> None:
        """Write a batch that is about to be submitted."""
        self._write(
            ("INSERT INTO batches (mark, provider, created) VALUES (?, ?, ?)", [(mark, provider, created)]),
            ("INSERT OR REPLACE INTO lines VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", lines),
        )

    def submitted(self, mark: str, batch: str) -> None:
        """Record the provider's id of a batch."""
        self._write(("UPDATE batches SET id = ? WHERE mark = ?", [(batch, mark)]))

    def never_submitted(self, mark: str) -> None:
        """Remove a batch that was not submitted; its lines have to be submitted again."""
        self._write(
            ("UPDATE lines SET batch = NULL WHERE batch = ?", [(mark,)]),
            ("DELETE FROM batches WHERE mark = ?", [(mark,)]),
        )

    def collect(self, mark: str, results: Mapping[bytes, tuple[int, str]]) -> None:
        """Write the statuses and texts of a batch. Lines without one have to be submitted again."""
        arrived = [(status, text, key, mark) for key, (status, text) in results.items()]
        self._write(
            ("UPDATE lines SET status = ?, text = ? WHERE key = ? AND batch = ?", arrived),
            ("UPDATE lines SET batch = NULL WHERE batch = ? AND status IS NULL", [(mark,)]),
            ("UPDATE batches SET collected = 1 WHERE mark = ?", [(mark,)]),
        )

    def again(self, key: bytes, tries: int) -> None:
        """Discard the reply of a line, which has to be submitted again."""
        statement = "UPDATE lines SET batch = NULL, status = NULL, text = NULL, tries = ? WHERE key = ?"
        self._write((statement, [(tries, key)]))

    def finish(self) -> None:
        """Remove all lines of a complete run. The batches stay, as a record."""
        self._write(("DELETE FROM lines", [()]))

    def _write(self, *statements: tuple[str, Iterable[tuple[object, ...]]]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for statement, rows in statements:
                    self._db.executemany(statement, rows)
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        except ERRORS as error:
            raise self._error(error) from error

    def _number(self, name: str) -> int:
        rows = self._all("SELECT value FROM meta WHERE name = ?", name)
        return int(rows[0][0]) if rows else 0

    def _set(self, name: str, value: int) -> None:
        self._write(("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(name, value)]))

    def _all(self, statement: str, *values: object) -> list[sqlite3.Row]:
        try:
            return self._db.execute(statement, values).fetchall()
        except ERRORS as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> RunError:
        return RunError(
            f"{self._path} cannot be used ({error_text(error)}). If it is damaged, restore it from a copy of the run: "
            "it holds replies that are paid for."
        )
