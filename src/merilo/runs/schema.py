"""The tables of a run's store, the one format number of a run, and the record that a store keeps of its rows.

A store records the row counts and checksum sums of its own tables (table `meta`, name `content`), and every transaction
that adds or removes rows updates them. So a row that another program deleted, added or replaced is detected without
reading the rows: SQLite sums the checksums from an index. A row that was edited in place is detected when it is read,
by its own checksum. Texts need no such numbers, since each is stored under its digest.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from merilo.runs.database import ERRORS, read_only, schema_texts

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FORMAT: Final = 6
"""The format of a run: its store, its manifest and its seal. A run of another format is refused."""

INDEXES: Final = (
    "CREATE INDEX samples_seal ON samples (seal)",
    "CREATE INDEX exchanges_seal ON exchanges (seal)",
    "CREATE INDEX answers_seal ON answers (seal, row_seal)",
)
"""Indexes from which SQLite sums the checksums."""

SCHEMA: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE samples (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL, seal INTEGER)",
    "CREATE TABLE texts (digest BLOB NOT NULL, text TEXT NOT NULL)",
    "CREATE UNIQUE INDEX texts_digest ON texts (digest)",
    """CREATE TABLE exchanges (id INTEGER PRIMARY KEY, judge TEXT NOT NULL, rubric BLOB NOT NULL,
    replies TEXT NOT NULL, requests INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER,
    cost_usd REAL, seconds REAL NOT NULL, seal INTEGER)""",
    """CREATE TABLE answers (key BLOB NOT NULL, kind TEXT NOT NULL, question TEXT NOT NULL,
    verdict TEXT, failure TEXT, cached INTEGER NOT NULL, exchange INTEGER, seal INTEGER,
    row_seal INTEGER)""",
    "CREATE UNIQUE INDEX answers_key ON answers (key)",
    "CREATE TABLE unfinished (key BLOB PRIMARY KEY, exchange INTEGER NOT NULL, seal INTEGER NOT NULL)",
    *INDEXES,
)
"""The tables of a store."""
EXCHANGE_SEALED: Final = "id, judge, rubric, replies, requests, input_tokens, output_tokens, cost_usd, seconds"
ANSWER_SEALED: Final = "key, kind, question, cached, exchange"
"""The columns that the seal of a row covers, in this order."""
_SAMPLES: Final = schema_texts([each for each in SCHEMA if each.startswith("CREATE TABLE samples ")])
STORE_SCHEMA: Final = schema_texts(SCHEMA) | {
    each.replace("samples", name, 1) for each in _SAMPLES for name in ('"samples"', "incoming")
}
"""What the schema of a store may consist of, for `connected` and `read_only`: also samples that are being added, and
those that replaced others."""


_CHECKSUMS: Final[Mapping[str, str]] = {
    "samples": "seal * (2 * row + 1) & 4294967295",  # weighted by position, so that a change of order is detected
    "exchanges": "seal",
    "answers": "seal + row_seal",
}
Content = dict[str, list[int]]
"""Table → its number of rows, and the sum of their checksums."""


@dataclass(frozen=True, slots=True)
class StoreState:
    """The record that a store keeps about itself, and whether its rows match it."""

    results: tuple[str, ...] = ()
    """Digests of the results that the store belongs to; empty if it was never sealed, or cannot be read."""
    intact: bool = False
    """True if the store's rows match its record."""


def state_of(path: Path) -> StoreState:
    """Return the state of a store; an empty state if the store is missing or damaged."""
    if not path.is_file():
        return StoreState()
    try:
        with closing(read_only(path, STORE_SCHEMA)) as db:
            db.execute("BEGIN")  # all reads below see the same snapshot
            wanted = "SELECT name, value FROM meta WHERE name IN ('results', ?)"
            meta: dict[str, str] = dict(db.execute(wanted, (_NAME,)).fetchall())
            return StoreState(tuple(meta.get("results", "").split()), json.dumps(_counted(db)) == meta.get(_NAME))
    except (*ERRORS, TypeError, ValueError):
        return StoreState()


def record_all(db: sqlite3.Connection) -> None:
    """Record the present content, within a transaction, for a new store."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_NAME, json.dumps(_counted(db))))


def add(db: sqlite3.Connection, changes: Mapping[str, Sequence[int]]) -> None:
    """Record added or removed rows, within a transaction: table → change of the row count and of the checksum sum."""
    if not any(rows for rows, _ in changes.values()):
        return
    found = _recorded(db)
    for table, (rows, checksums) in changes.items():
        before = found[table]
        found[table] = [before[0] + rows, before[1] + checksums]
    _record(db, found)


def replace_samples(db: sqlite3.Connection) -> None:
    """Record, within a transaction, that all samples were replaced."""
    found = _recorded(db)
    found["samples"] = _sum(db, "samples")
    _record(db, found)


def delete(db: sqlite3.Connection, table: str, where: str, values: Sequence[object] = ()) -> int:
    """Delete rows within a transaction and record the change; return their number."""
    rows, checksums = _sum(db, table, where, values)
    db.execute(f"DELETE FROM {table} WHERE {where}", values)  # noqa: S608  our own constants
    add(db, {table: (-rows, -checksums)})
    return rows


_NAME: Final = "content"


def _counted(db: sqlite3.Connection) -> Content:
    return {table: _sum(db, table) for table in _CHECKSUMS}


def _sum(db: sqlite3.Connection, table: str, where: str = "true", values: Sequence[object] = ()) -> list[int]:
    statement = f"SELECT count(*), coalesce(sum({_CHECKSUMS[table]}), 0) FROM {table} WHERE {where}"  # noqa: S608  our own constants
    return list(db.execute(statement, values).fetchone())


def _recorded(db: sqlite3.Connection) -> Content:
    (text,) = db.execute("SELECT value FROM meta WHERE name = ?", (_NAME,)).fetchone()
    found: Any = json.loads(text)  # Any: JSON; what is not a Content raises where it is used
    return {table: list(found[table]) for table in _CHECKSUMS}


def _record(db: sqlite3.Connection, content: Content) -> None:
    db.execute("UPDATE meta SET value = ? WHERE name = ?", (json.dumps(content), _NAME))
