"""Shards, the parts of a data set that several runs evaluate, and the merging of their stores into a new one.

Every row is compared with its checksum as it is read, so a damaged shard is refused. Conversations get new numbers, so
their rows and those of their answers get new checksums.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Self

from merilo.errors import RunError, UsageError
from merilo.judging.digests import digest_bytes
from merilo.runs.database import (
    FORMAT,
    SCHEMA,
    STORE_SCHEMA,
    StoreProblem,
    connected,
    different_table,
    problem_of,
    record_digests,
)
from merilo.runs.files import store_error
from merilo.runs.records import CorruptRow, conversation_from

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from pathlib import Path

_TEXT: Final = re.compile(r"([1-9]\d{0,8})/([1-9]\d{0,8})")


@dataclass(frozen=True, slots=True)
class Shard:
    """The shard with this number, from 1, of `of` shards: every `of`-th sample of the data."""

    index: int
    of: int
    alone: bool = False
    """True for a run of one sample that becomes the sample with this number."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the shard in a text such as `2/8`. Raises UsageError."""
        found = _TEXT.fullmatch(text)
        shard = None if found is None else cls(int(found[1]), int(found[2]))
        if shard is None or shard.index > shard.of:
            raise UsageError(f"A shard is I/N with I from 1 to N, such as 1/4, got {text!r} (--shard).")
        return shard

    @classmethod
    def recorded(cls, record: Mapping[str, object]) -> Self:
        """Return the shard that a manifest records."""
        return cls(int(str(record["index"])), int(str(record["of"])))

    def holds(self, position: int) -> bool:
        """Return True if the sample at this position of the data, from 1, is in the shard."""
        return (position - self.index) % self.of == 0

    def record(self, samples: int, fingerprint: str) -> dict[str, object]:
        """Return the manifest's entry for the shard of data with this many samples and this fingerprint."""
        return {"index": self.index, "of": self.of, "samples": samples, "fingerprint": fingerprint}

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


_CACHE_KB: Final = 128_000
_ANSWERS_INDEX: Final = next(each for each in SCHEMA if "answers_key" in each)
_DOUBLE: Final = "key IN (SELECT key FROM answers GROUP BY key HAVING count(*) > 1)"
_EQUAL_KEYS: Final = f"""
SELECT key, answers.rowid, place, failed, record FROM answers JOIN exchanges ON id = exchange
WHERE {_DOUBLE} ORDER BY key, answers.rowid
"""  # noqa: S608  our own constants
_REPEATED: Final = f"""
SELECT rowid FROM (
    SELECT rowid, row_number() OVER (PARTITION BY key ORDER BY cached, rowid) AS place FROM answers
    WHERE {_DOUBLE}
) WHERE place > 1
"""  # noqa: S608  our own constants

_Row = tuple[Any, ...]  # Any: the values of a row


def merge_stores(path: Path, shards: Mapping[Shard, Path], samples: int) -> None:
    """Write the merged store to a new file. Raises RunError for a damaged shard, or for answers that contradict.

    `shards`: the store of each, in the order of their numbers. `samples`: number of samples of the whole data.
    """
    with closing(connected(path, STORE_SCHEMA)) as db:
        # an interrupted merge deletes the file; the journal holds what was there before, which is nothing
        for pragma in ("journal_mode = MEMORY", "synchronous = OFF", f"cache_size = -{_CACHE_KB}"):
            db.execute(f"PRAGMA {pragma}")
        db.execute("BEGIN")
        for statement in SCHEMA:
            if statement != _ANSWERS_INDEX:  # at the end, which is faster than adding to it row by row
                db.execute(statement)
        db.execute("INSERT INTO meta VALUES ('format', ?)", (str(FORMAT),))
        ends = {shard: _copied(db, shard, store) for shard, store in shards.items()}
        (copied,) = db.execute("SELECT count(*) FROM samples").fetchone()
        if copied != samples:
            raise RunError(f"The shards hold {copied:,} samples, but their data has {samples:,}.")
        _index_answers(db, ends, shards)
        record_digests(db)
        db.execute("COMMIT")
    with path.open("rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def _reading(path: Path) -> Generator[sqlite3.Connection]:
    """Open the store of a shard; errors of SQLite and rows that do not match their digest raise RunError."""
    try:
        with closing(connected(path, STORE_SCHEMA, reading=True)) as shard:
            yield shard
    except (sqlite3.Error, CorruptRow, TypeError, ValueError) as error:
        if isinstance(error, sqlite3.Error) and problem_of(error) is StoreProblem.DISK:  # that of the merged store
            raise
        raise store_error(path, error) from error


def _index_answers(db: sqlite3.Connection, ends: Mapping[Shard, int], shards: Mapping[Shard, Path]) -> None:
    """Create the index of the answers' keys; answers to one question in several shards are stored once.

    `ends`: the last row of each shard's answers.
    """
    try:
        db.execute(_ANSWERS_INDEX)
    except sqlite3.IntegrityError:
        if (different := _different(db)) is not None:
            kind, rows, failed = different
            one, two = (next(shard for shard, end in ends.items() if row <= end) for row in rows)
            advice = (
                f"Repeat the command of each with --retry-failed (--shard {one} and --shard {two})."
                if failed
                else "Run all shards with one verdict cache (MERILO_CACHE), which makes them use the first answer."
            )
            raise RunError(
                f"Shards {one} and {two} ({shards[one].parent}, {shards[two].parent}) have different answers to the "
                f"same '{kind}' question, so they cannot be merged. {advice}"
            ) from None
        db.execute(f"DELETE FROM answers WHERE rowid IN ({_REPEATED})")  # noqa: S608  our own constants
        db.execute(_ANSWERS_INDEX)


def _different(db: sqlite3.Connection) -> tuple[str, tuple[int, int], bool] | None:
    """Return the kind and rows of the first two different answers to one question, and True if one is a failure."""
    for _, equal in groupby(db.execute(_EQUAL_KEYS), key=itemgetter(0)):
        (_, first, place, failed, record), *others = equal
        line = conversation_from(record)[1][int(place)]
        for _, row, other_place, other_failed, other in others:
            if conversation_from(other)[1][int(other_place)].answer != line.answer:
                return line.kind, (first, row), failed != other_failed
    return None


def _copied(db: sqlite3.Connection, shard: Shard, path: Path) -> int:
    """Copy samples, texts, conversations and answers of a shard; return the row of its last answer."""
    (before,) = db.execute("SELECT coalesce(max(id), 0) FROM exchanges").fetchone()
    with _reading(path) as store:
        if (table := different_table(store)) is not None:
            raise CorruptRow(f"the rows of its table {table} were changed")
        rows = store.execute("SELECT * FROM samples")
        numbered = ((shard.index if shard.alone else row, *rest) for row, *rest in rows)
        db.executemany("INSERT INTO samples VALUES (?, ?, ?)", numbered)
        db.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", _texts(store))
        sent = ((old + before, *rest) for old, *rest in store.execute("SELECT * FROM exchanges ORDER BY id"))
        db.executemany("INSERT INTO exchanges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", sent)
        place = str(shard.index if shard.alone else "sample")
        columns = f"key, exchange + ?, place, CASE sample WHEN 0 THEN 0 ELSE {place} END, failed, cached"
        answers = store.execute(f"SELECT {columns} FROM answers ORDER BY rowid", (before,))  # noqa: S608  our own constants
        db.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)", answers)
    (last,) = db.execute("SELECT coalesce(max(rowid), 0) FROM answers").fetchone()
    return int(last)


def _texts(shard: sqlite3.Connection) -> Iterator[_Row]:
    for digest, text in shard.execute("SELECT digest, text FROM texts"):
        if _digest(text) != digest:
            raise CorruptRow("a text does not match its digest")
        yield digest, text


def _digest(text: str) -> bytes:
    """Return the digest of a text, uncached because each text is read once."""
    return digest_bytes(str.encode(text, "utf-8", "surrogatepass"))  # raises TypeError for anything but a text
