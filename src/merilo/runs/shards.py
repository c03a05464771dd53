"""Shards, the parts of a data set that several runs evaluate, and the merging of their stores into a new one.

Each shard is compared with the digests of its tables first, so a damaged one is refused. Conversations get new numbers.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from merilo.data.sample import Fingerprint
from merilo.errors import RunError, UsageError
from merilo.judging.digests import digest_bytes, digest_of
from merilo.runs.database import StoreProblem, connected, problem_of, read_only
from merilo.runs.records import CorruptRow
from merilo.runs.schema import FORMAT, SCHEMA, STORE_SCHEMA, different_table, record_digests
from merilo.runs.store_errors import store_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from merilo.data.sample import Sample

_TEXT: Final = re.compile(r"([1-9]\d{0,8})/([1-9]\d{0,8})")


@dataclass(frozen=True, slots=True)
class Shard:
    """The shard with this number, from 1, of `of` shards: every `of`-th sample of the data."""

    index: int
    of: int

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

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


@dataclass(slots=True)
class ShardTally:
    """Number and fingerprint of the samples of a shard, while the whole data is read."""

    shard: Shard
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    samples: int = 0

    def add(self, sample: Sample) -> None:
        """Add the next sample of the shard."""
        self.fingerprint.add(sample)
        self.samples += 1

    def record(self, samples: int, fingerprint: str) -> dict[str, object]:
        """Return the manifest's entry for the shard of data with this many samples and this fingerprint.

        Raises UsageError if the shard is empty.
        """
        if not self.samples:
            raise UsageError(
                f"Shard {self.shard} is empty: the data has {samples:,} samples. Choose at most {samples:,} shards."
            )
        return {"index": self.shard.index, "of": self.shard.of, "samples": samples, "fingerprint": fingerprint}


_ROUND: Final = 16_384
"""Positions of samples that are copied from all shards before the next ones, so that they are written in order."""
_CACHE_KB: Final = 128_000
_ANSWERS_INDEX: Final = next(each for each in SCHEMA if "answers_key" in each)
_DIFFERENT: Final = """
SELECT one.kind, one.rowid, other.rowid, one.failure IS NOT other.failure
FROM answers AS one JOIN answers AS other ON one.key = other.key AND one.rowid < other.rowid
WHERE one.verdict IS NOT other.verdict OR one.failure IS NOT other.failure LIMIT 1
"""
_REPEATED: Final = """
SELECT rowid FROM (
    SELECT rowid, row_number() OVER (PARTITION BY key ORDER BY cached, rowid) AS place FROM answers
    WHERE key IN (SELECT key FROM answers GROUP BY key HAVING count(*) > 1)
) WHERE place > 1
"""

_Row = tuple[Any, ...]  # Any: the values of a row


class ShardStore(NamedTuple):
    """The store of a shard."""

    shard: Shard
    path: Path


@dataclass(slots=True)
class StoreMerge:
    """Writes the merged store."""

    path: Path
    shards: Sequence[ShardStore]
    """In the order of their numbers."""
    samples: int
    """Number of samples of the whole data."""
    _ends: list[int] = field(default_factory=list[int])
    """For each shard, the last row of its answers."""

    def write(self) -> None:
        """Write the store to a new file. Raises RunError for a damaged shard, or for answers that contradict."""
        with closing(connected(self.path, wait_s=0.0, schema=None)) as db:
            # an interrupted merge deletes the file; the journal holds what was there before, which is nothing
            for pragma in ("journal_mode = MEMORY", "synchronous = OFF", f"cache_size = -{_CACHE_KB}"):
                db.execute(f"PRAGMA {pragma}")
            db.execute("BEGIN")
            for statement in SCHEMA:
                if statement != _ANSWERS_INDEX:  # at the end, which is faster than adding to it row by row
                    db.execute(statement)
            db.execute("INSERT INTO meta VALUES ('format', ?)", (str(FORMAT),))
            self._copy_samples(db)
            exchanges = 0
            for store in self.shards:
                with _reading(store.path) as shard:
                    if (table := different_table(shard)) is not None:
                        raise CorruptRow(f"the rows of its table {table} were changed")
                    exchanges = _copy_conversations(db, shard, exchanges)
                self._ends.append(_last(db))
            self._index_answers(db)
            record_digests(db)
            db.execute("COMMIT")
        with self.path.open("rb+") as file:
            os.fsync(file.fileno())

    def _copy_samples(self, db: sqlite3.Connection) -> None:
        copied = 0
        for first in range(1, self.samples + 1, _ROUND):
            rows: list[_Row] = []
            for store in self.shards:
                with _reading(store.path) as shard:
                    rows += _samples(shard, store, first, first + _ROUND)
            copied += len(rows)
            db.executemany("INSERT INTO samples VALUES (?, ?, ?)", sorted(rows))
        if copied != self.samples:
            raise RunError(f"The shards hold {copied:,} samples, but their data has {self.samples:,}.")

    def _index_answers(self, db: sqlite3.Connection) -> None:
        """Create the index of the answers' keys; answers to one question in several shards are stored once."""
        try:
            db.execute(_ANSWERS_INDEX)
        except sqlite3.IntegrityError:
            db.execute("CREATE INDEX answers_merged ON answers (key)")
            different = db.execute(_DIFFERENT).fetchone()
            if different is not None:
                raise self._contradiction(*different) from None
            db.execute(f"DELETE FROM answers WHERE rowid IN ({_REPEATED})")  # noqa: S608  our own constants
            db.execute("DROP INDEX answers_merged")
            db.execute(_ANSWERS_INDEX)

    def _contradiction(self, kind: str, row: int, other: int, failed: int) -> RunError:
        one, two = (self._shard_of(each) for each in (row, other))
        advice = (
            f"Repeat the command of each with --retry-failed (--shard {one.shard} and --shard {two.shard})."
            if failed
            else "Run all shards with one verdict cache (MERILO_CACHE), which makes them use the first answer."
        )
        return RunError(
            f"Shards {one.shard} and {two.shard} ({one.path.parent}, {two.path.parent}) have different answers to the "
            f"same '{kind}' question, so they cannot be merged. {advice}"
        )

    def _shard_of(self, row: int) -> ShardStore:
        return next(store for store, end in zip(self.shards, self._ends, strict=True) if row <= end)


class _reading:  # noqa: N801  a context manager, used like a function
    """The open store of a shard; errors of SQLite and damaged rows raise RunError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._db = read_only(self._path, STORE_SCHEMA)
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise store_error(self._path, error) from error
        return self._db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._db.close()
        damaged = isinstance(error, CorruptRow | ValueError | TypeError)
        if isinstance(error, sqlite3.Error):
            damaged = problem_of(error) is not StoreProblem.DISK  # the disk of the merged store
        if damaged and isinstance(error, Exception):
            raise store_error(self._path, error) from error


def _samples(shard: sqlite3.Connection, store: ShardStore, first: int, end: int) -> Iterator[_Row]:
    asked = "SELECT row, id, record FROM samples WHERE row >= ? AND row < ? ORDER BY row"
    for row in shard.execute(asked, (first, end)):
        if not store.shard.holds(row[0]):
            raise RunError(f"{store.path} holds sample {row[0]}, which is not in shard {store.shard}.")
        yield row


def _copy_conversations(db: sqlite3.Connection, shard: sqlite3.Connection, before: int) -> int:
    """Copy texts, conversations and answers of a shard; return the number of the last conversation."""
    db.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", _texts(shard))
    sent = ((old + before, *rest) for old, *rest in shard.execute("SELECT * FROM exchanges ORDER BY id"))
    db.executemany("INSERT INTO exchanges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", sent)
    answers = shard.execute("SELECT *, exchange + ? FROM answers ORDER BY rowid", (before,))
    db.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", ((*rest, new) for *rest, _, new in answers))
    (last,) = db.execute("SELECT coalesce(max(id), 0) FROM exchanges").fetchone()
    return int(last)


def _texts(shard: sqlite3.Connection) -> Iterator[_Row]:
    for digest, text in shard.execute("SELECT digest, text FROM texts"):
        if _digest(text) != digest and digest_of(*map(_digest, json.loads(text))) != digest:
            raise CorruptRow("a text does not match its digest")
        yield digest, text


def _digest(text: str) -> bytes:
    """Return the digest of a text, uncached because each text is read once."""
    return digest_bytes(str.encode(text, "utf-8", "surrogatepass"))  # raises TypeError for anything but a text


def _last(db: sqlite3.Connection) -> int:
    (last,) = db.execute("SELECT coalesce(max(rowid), 0) FROM answers").fetchone()
    return int(last)
