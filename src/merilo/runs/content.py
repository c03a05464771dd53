"""What rows a store must have: for each table that readers print from, their number and the sum of their checksums.

A store carries these numbers itself (table `meta`, name `content`), and every transaction that adds or removes rows
updates them. So a row that was deleted, added or replaced by other means is noticed without reading the rows: SQLite
adds up the checksums from an index. A row that was edited in place is noticed where it is read, by its own checksum.
Texts need no such numbers, since each is stored under its digest.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from merilo.runs.database import ERRORS, read_only

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_CHECKSUMS: Final[Mapping[str, str]] = {
    "samples": "seal * (2 * row + 1) & 4294967295",  # their order counts
    "exchanges": "seal",
    "answers": "seal + row_seal",
}
INDEXES: Final = (
    "CREATE INDEX samples_seal ON samples (seal)",
    "CREATE INDEX exchanges_seal ON exchanges (seal)",
    "CREATE INDEX answers_seal ON answers (seal, row_seal)",
)
"""From which SQLite adds up the checksums."""

Content = dict[str, list[int]]
"""Table → its number of rows, and the sum of their checksums."""


@dataclass(frozen=True, slots=True)
class StoreState:
    """What a store says of itself, and whether it is so."""

    results: tuple[str, ...] = ()
    """The digests of the results that the store belongs to; empty if it was never sealed, or cannot be read."""
    intact: bool = False
    """True if the store has the rows that it must have. A store of merilo 0.1.0 does not say which."""
    identity: str = ""
    """A digest of the content and of the results, for a run that uses the store of another run."""


def state_of(path: Path) -> StoreState:
    """Return the state of a store; that of a missing or damaged store is empty."""
    if not path.is_file():
        return StoreState()
    try:
        with closing(read_only(path)) as db:
            db.execute("BEGIN")  # everything below is of the same moment
            meta: dict[str, str] = dict(db.execute("SELECT name, value FROM meta").fetchall())
            results = meta.get("results", "")
            if int(meta["format"]) < _FIRST:
                found = json.dumps([db.execute(f"SELECT count(*) FROM {each}").fetchone() for each in _CHECKSUMS])  # noqa: S608  our own constants
                intact = True
            else:
                found = json.dumps(_counted(db))
                intact = found == meta.get(_NAME)
    except (*ERRORS, KeyError, TypeError, ValueError):
        return StoreState()
    return StoreState(
        tuple(results.split()), intact, blake2b(f"{results} {found}".encode(), digest_size=16).hexdigest()
    )


def record_all(db: sqlite3.Connection) -> None:
    """Record the content as it is, within a transaction: for a new store, and for one of an earlier format."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_NAME, json.dumps(_counted(db))))


def add(db: sqlite3.Connection, changes: Mapping[str, Sequence[int]]) -> None:
    """Record within a transaction that rows were added or removed: table → change of the number and of the sum."""
    if not any(rows for rows, _ in changes.values()):
        return
    found = _recorded(db)
    for table, (rows, checksums) in changes.items():
        before = found[table]
        found[table] = [before[0] + rows, before[1] + checksums]
    _record(db, found)


def replace_samples(db: sqlite3.Connection) -> None:
    """Record within a transaction that all samples were replaced."""
    found = _recorded(db)
    found["samples"] = _sum(db, "samples")
    _record(db, found)


def delete(db: sqlite3.Connection, table: str, where: str, values: Sequence[object] = ()) -> int:
    """Delete rows within a transaction and record that; return how many there were."""
    rows, checksums = _sum(db, table, where, values)
    db.execute(f"DELETE FROM {table} WHERE {where}", values)  # noqa: S608  our own constants
    add(db, {table: (-rows, -checksums)})
    return rows


_FIRST: Final = 4
"""The format from which on a store records its content."""
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
