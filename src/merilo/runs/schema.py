"""The tables of a run's store, the one format number of a run, and the digest of each table.

A store records the sum of the checksums of each table's rows (table `meta`, name `digests`). Every transaction that
adds or removes rows updates it. A run that is resumed, merged or verified is compared with it, so a row that another
program added, removed or edited is detected. Texts need no such number, since each is stored under its digest.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from merilo.runs.database import ERRORS, read_only, schema_texts

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FORMAT: Final = 7
"""The format of a run: its store, its manifest and its seal. A run of another format is refused."""

SCHEMA: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE samples (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL)",
    "CREATE TABLE texts (digest BLOB NOT NULL, text TEXT NOT NULL)",
    "CREATE UNIQUE INDEX texts_digest ON texts (digest)",
    """CREATE TABLE exchanges (id INTEGER PRIMARY KEY, judge TEXT NOT NULL, rubric BLOB NOT NULL,
    replies TEXT NOT NULL, requests INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER,
    cost_usd REAL, seconds REAL NOT NULL)""",
    """CREATE TABLE answers (key BLOB NOT NULL, kind TEXT NOT NULL, question TEXT NOT NULL,
    verdict TEXT, failure TEXT, cached INTEGER NOT NULL, exchange INTEGER)""",
    "CREATE UNIQUE INDEX answers_key ON answers (key)",
    "CREATE TABLE unfinished (key BLOB PRIMARY KEY, exchange INTEGER NOT NULL)",
)
"""The tables of a store."""
_SAMPLES: Final = schema_texts([each for each in SCHEMA if each.startswith("CREATE TABLE samples ")])
STORE_SCHEMA: Final = schema_texts(SCHEMA) | {
    each.replace("samples", name, 1) for each in _SAMPLES for name in ('"samples"', "incoming")
}
"""What the schema of a store may consist of, for `connected` and `read_only`: also samples that are being added, and
those that replaced others."""
_DIGESTED: Final = ("samples", "exchanges", "answers")
_NAME: Final = "digests"


def results_of(path: Path) -> tuple[str, ...] | None:
    """Return the digests of the results that a store belongs to; None if the store is missing or damaged.

    Empty if the store was never sealed.
    """
    if not path.is_file():
        return None
    try:
        with closing(read_only(path, STORE_SCHEMA)) as db:
            found = db.execute("SELECT value FROM meta WHERE name = 'results'").fetchone()
            return () if found is None else tuple(found[0].split())
    except (*ERRORS, TypeError, AttributeError):
        return None


def row_digest(row: Sequence[bytes | str | float | None]) -> int:
    """Return a checksum of a row's values, as SQLite returns them: no bool, and floats in columns of real numbers."""
    return crc32(repr(tuple(row)).encode("utf-8", "surrogatepass"))


def record_digests(db: sqlite3.Connection, *tables: str) -> None:
    """Record the digests of these tables as they are now, within a transaction; of all without names."""
    digests = _recorded(db) | {table: _digest(db, table) for table in tables or _DIGESTED}
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_NAME, json.dumps(digests)))


def add(db: sqlite3.Connection, changes: Mapping[str, int]) -> None:
    """Add to the digests of tables, within the transaction that adds or removes the rows."""
    if any(changes.values()):
        found = _recorded(db)
        found |= {table: found[table] + change for table, change in changes.items()}
        db.execute("UPDATE meta SET value = ? WHERE name = ?", (json.dumps(found), _NAME))


def delete(db: sqlite3.Connection, table: str, where: str, values: Sequence[object] = ()) -> int:
    """Delete rows within a transaction and record the change; return their number."""
    add(db, {table: -_digest(db, table, where, values)})
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
