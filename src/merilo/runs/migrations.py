"""Creation of the tables of a run's store, and the migration of stores of earlier formats.

Append only: a released migration is never changed. Each runs in one transaction, so an interruption leaves the store in
one format or the next, never between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.runs.content import record_all
from merilo.runs.database import row_seal, seal
from merilo.runs.schema import INDEXES, SCHEMA

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping

EXCHANGE_SEALED: Final = "id, judge, rubric, replies, requests, input_tokens, output_tokens, cost_usd, seconds"
ANSWER_SEALED: Final = "key, kind, question, cached, exchange"
"""The columns that the seal of a row covers, in this order."""


def _to_2(db: sqlite3.Connection) -> None:
    """Add a seal to every answer."""

    def sealed(key: bytes, verdict: str | None, failure: str | None) -> int:
        return seal(key, failure or "", failure=True) if verdict is None else seal(key, verdict)

    db.create_function("sealed", 3, sealed, deterministic=True)
    db.execute("ALTER TABLE answers ADD COLUMN seal INTEGER")
    db.execute("UPDATE answers SET seal = sealed(key, verdict, failure)")
    db.create_function("sealed", 3, None)


def _to_3(db: sqlite3.Connection) -> None:
    """Add the table for interrupted conversations."""
    db.execute("CREATE TABLE unfinished (key BLOB PRIMARY KEY, exchange INTEGER NOT NULL, seal INTEGER NOT NULL)")


def _to_4(db: sqlite3.Connection) -> None:
    """Add seals to samples and conversations, a seal to answers that covers the question, and the content record."""
    sealed = {
        "samples": ("seal", "id, record"),
        "exchanges": ("seal", EXCHANGE_SEALED),
        "answers": ("row_seal", ANSWER_SEALED),
    }
    db.create_function("row_seal_of", -1, row_seal, deterministic=True)
    for table, (column, values) in sealed.items():
        db.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER")
        db.execute(f"UPDATE {table} SET {column} = row_seal_of({values})")  # noqa: S608  our own constants
    db.create_function("row_seal_of", -1, None)
    for statement in INDEXES:
        db.execute(statement)
    record_all(db)


MIGRATIONS: Final[Mapping[int, Callable[[sqlite3.Connection], None]]] = {2: _to_2, 3: _to_3, 4: _to_4}
"""Format → the function that migrates a store from the format before it."""

FORMAT: Final = max(MIGRATIONS)


def create(db: sqlite3.Connection) -> None:
    """Create the tables of a new store, unless they exist."""
    db.execute("BEGIN IMMEDIATE")
    if not db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[0]:
        for statement in SCHEMA:
            db.execute(statement)
        db.execute("INSERT INTO meta VALUES ('format', ?)", (str(FORMAT),))
        record_all(db)
    db.execute("COMMIT")


def format_of(db: sqlite3.Connection) -> int:
    """Return the format of a store. Raises sqlite3.Error, TypeError or ValueError if it has none."""
    (found,) = db.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    return int(found)


def migrate(db: sqlite3.Connection) -> None:
    """Migrate a store of an earlier format to the current one, one format after another."""
    for number in sorted(MIGRATIONS):
        db.execute("BEGIN IMMEDIATE")
        if format_of(db) < number:
            MIGRATIONS[number](db)
            db.execute("UPDATE meta SET value = ? WHERE name = 'format'", (str(number),))
        db.execute("COMMIT")
