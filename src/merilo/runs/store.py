"""The store of a run: its samples, every answer and failure its outcomes used, and the raw replies.

One SQLite file (plain rowid tables with unique indices, write-ahead log). Texts are stored once, under their digest; a
question is a row of digests. New rows are held in memory, where look-ups find them, until `commit` writes them. Only
then are they durable.

The module is long because one class owns the file and all its tables.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from merilo.judging.digests import TEXTS
from merilo.judging.json_types import compact
from merilo.runs import records
from merilo.runs.database import (
    COMMIT_ROWS,
    COMMIT_SECONDS,
    ERRORS,
    FORMAT,
    INCOMING,
    MAX_AT_ONCE,
    SCHEMA,
    STORE_SCHEMA,
    CommitPolicy,
    add_to_digests,
    connected,
    delete_rows,
    different_table,
    file_mode,
    places,
    record_digests,
    row_digest,
)
from merilo.runs.files import StoreErrorContext, no_run, other_format_error, store_error
from merilo.runs.records import Conversation, CorruptRow, Exchange, SavedReplies, StoredQuestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Failure, Verdict
    from merilo.providers.base import Reply
    from merilo.runs.outcomes import OutcomeRecord

__all__ = ["FORMAT", "Conversation", "Exchange", "SavedReplies", "Store", "StoredQuestion"]

_REMEMBERED_TEXTS = 20_000
_REMEMBERED_KEYS = 50_000
_REMEMBERED_SORTS = 1_000
_WAIT_S = 10.0
_PAGE = 256
_PAGE_BYTES = 2**24
"""Bytes of the values of a page after which it ends early, so that memory does not grow with the size of samples."""
_WAITING_SAMPLES = 256


class Store:
    """An open `store.sqlite`, for one thread only. Any call may raise RunError: a damaged file or a full disk."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self._error_context = StoreErrorContext(connection, path)
        self._due = CommitPolicy(COMMIT_ROWS, COMMIT_SECONDS)
        self._incoming = 0
        self._sample_rows: dict[str, tuple[int, str]] = {}  # pending, by id: position and record
        self._answers: dict[bytes, Answer] = {}  # pending, for look-ups
        self._answer_rows: list[tuple[Any, ...]] = []  # Any: the values of a row
        self._text_rows: list[tuple[bytes, str]] = []
        self._exchange_rows: list[tuple[Any, ...]] = []  # Any: the values of a row
        self._texts: dict[bytes, None] = {}  # written or pending
        self._absent: set[bytes] = set()  # known misses, so that storing these keys needs no look-up
        self._unsent: dict[tuple[str, str, float | None], int] = {}  # exchanges without a request share one row
        self._exchanges: int | None = None  # the highest number in use
        self._left: set[bytes] = set()  # keys of the sessions that were interrupted since the store was opened
        self._left_rows: list[tuple[bytes, int]] = []
        self._over: list[tuple[bytes, int]] = []  # pending deletions of partial replies: key and exchange
        self._handed_out: set[bytes] = set()  # keys whose partial replies a session has received already

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> Store:
        """Open the store at `path`; created with `create`. Raises RunError if it is missing, damaged or different."""
        return cls(_opened(path, create=create), path)

    @classmethod
    def read(cls, path: Path) -> Store:
        """Open the store at `path` for reading only, also on read-only media. Raises RunError."""
        return cls(_opened(path, create=None), path)

    def close(self) -> None:
        """Commit pending rows, merge the write-ahead log into the file and close."""
        try:
            self.commit()
            self._db.execute("PRAGMA journal_mode = DELETE")
        except ERRORS:
            pass  # read-only, or a reader has it open: the log stays next to the file and nothing is lost
        finally:
            self._db.close()

    def check(self) -> None:
        """Raise RunError if the rows of a table differ from its digest. Reads all rows."""
        self.commit()
        with self._error_context:
            if (table := different_table(self._db)) is not None:
                raise CorruptRow(f"the rows of its table {table} were changed")

    # samples

    def expect_samples(self) -> None:
        """Prepare to add samples; the present ones stay until `accept_samples`."""
        self.commit()
        self._incoming = 0
        with self._error_context:
            self._db.execute("DROP TABLE IF EXISTS incoming")
            self._db.execute(INCOMING)

    def accept_samples(self) -> None:
        """Replace the present samples by those added since `expect_samples`, except the samples of other shards."""
        self.commit()
        with self._error_context:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM incoming WHERE record = ''")
            self._db.execute("DROP TABLE samples")
            self._db.execute("ALTER TABLE incoming RENAME TO samples")
            record_digests(self._db, "samples")
            self._db.execute("COMMIT")

    def positions(self, ids: Sequence[str]) -> dict[str, int]:
        """Return those of these ids that were added already, each with its sample's position from 1."""
        found = {each: self._sample_rows[each][0] for each in ids if each in self._sample_rows}
        unknown = [each for each in ids if each not in found]
        for start in range(0, len(unknown), MAX_AT_ONCE):
            some = unknown[start : start + MAX_AT_ONCE]
            asked = f"SELECT id, row FROM incoming WHERE id IN ({places(len(some))})"  # noqa: S608  our own constants
            found.update(self._all(asked, *some))
        return found

    def add_new(self, sample: Sample, *, own: bool = True) -> None:
        """Store a sample with a new id; the caller has checked that with `positions`.

        `own`: False for a sample of another shard. Only its id and position are stored, until `accept_samples`.
        """
        self._incoming += 1
        self._sample_rows[sample.id] = (self._incoming, compact(sample.to_record()) if own else "")
        self._due.add(paid=0)
        if len(self._sample_rows) >= _WAITING_SAMPLES:
            self.commit()

    def samples(self) -> Iterator[Sample]:
        """Return all samples in dataset order, read in pages."""
        return map(self._sample, self.sample_records())

    def sample_records(self) -> Iterator[str]:
        """Return the stored JSON of all samples in dataset order, read in pages."""
        return (row[1] for row in self._rows("SELECT row, record FROM samples WHERE row > ? ORDER BY row LIMIT ?", 0))

    def sample(self, sample_id: str) -> Sample | None:
        """Return the sample with this id; None if there is none."""
        row = self._one("SELECT record FROM samples WHERE id = ?", sample_id)
        return None if row is None else self._sample(row[0])

    def sample_ids(self) -> Iterator[str]:
        """Return the ids of all samples, read in pages."""
        return (row[1] for row in self._rows("SELECT row, id FROM samples WHERE row > ? ORDER BY row LIMIT ?", 0))

    # answers

    def answer(self, key: bytes, verdict: type[Verdict]) -> Answer | None:
        """Return the verdict or failure stored under this key; None if it was not asked in this run."""
        return self.answers({key: verdict}).get(key)

    def answers(self, wanted: Mapping[bytes, type[Verdict]]) -> dict[bytes, Answer]:
        """Return those of the wanted answers that this run holds, by key, with one look-up."""
        found: dict[bytes, Answer] = {}
        unknown: list[bytes] = []
        for key in wanted:
            if key in self._answers:
                found[key] = self._answers[key]
            elif key not in self._absent:
                unknown += (key,)
        for start in range(0, len(unknown), MAX_AT_ONCE):
            self._look_up(unknown[start : start + MAX_AT_ONCE], wanted, found)
        return found

    def _look_up(self, keys: list[bytes], wanted: Mapping[bytes, type[Verdict]], found: dict[bytes, Answer]) -> None:
        with self._error_context:
            rows = self._db.execute(
                f"SELECT key, verdict, failure FROM answers WHERE key IN ({places(len(keys))})",  # noqa: S608  our own constants
                keys,
            ).fetchall()
            for key, verdict, failure in rows:
                found[key] = records.answer_from(verdict, failure, wanted[key])
        if len(rows) < len(keys):
            if len(self._absent) > _REMEMBERED_KEYS:
                self._absent.clear()
            self._absent.update([key for key in keys if key not in found])

    def keep(
        self,
        questions: Sequence[tuple[bytes, Question[Any], Answer]],
        exchange: Exchange | None,
        *,
        seconds: float = 0.0,
    ) -> list[Answer]:
        """Store answers that came from one conversation; `exchange` is None for answers from the cache.

        Return the answers that are stored now: for each key the first one.
        """
        number = None if exchange is None else self._exchange(exchange, seconds, alone=len(questions) == 1)
        paid = 1 if exchange is not None and exchange.replies else 0
        cached = 1 if exchange is None else 0
        answers: list[Answer] = []
        new = 0
        for key, question, answer in questions:
            if key not in self._absent and (earlier := self.answer(key, question.verdict)) is not None:
                answers += (earlier,)
                continue
            self._absent.discard(key)
            verdict, failure = records.answer_texts(answer)
            text = records.question_text(question, self._text, self._texts)
            self._answer_rows += ((key, question.kind, text, verdict, failure, cached, number),)
            self._answers[key] = answer
            new += 1
            answers += (answer,)
        if new:
            self._due.add(paid=paid * new)
        return answers

    def leave(
        self, key: bytes, exchange: Exchange, replies: Sequence[Reply | Failure | None], *, seconds: float = 0.0
    ) -> None:
        """Store the partial replies of an interrupted session, so that it can be resumed.

        `replies`: those of the exchange, with None for missing ones. If two sessions with the same key are interrupted,
        only the first one stored is resumed.
        """
        first = key not in self._left
        if first:
            self.forget(key)
        number = self._new_exchange(exchange, records.replies_text(replies), seconds)
        if first:
            self._left.add(key)
            self.unfinished[key] = number
            self._left_rows += ((key, number),)

    @cached_property
    def unfinished(self) -> dict[bytes, int]:
        """The sessions with partial replies: key → number of their exchange."""
        return dict(self._all("SELECT key, exchange FROM unfinished"))

    def saved_replies(self, key: bytes) -> SavedReplies | None:
        """Return the partial replies under this key, once; None if there are none."""
        if key not in self.unfinished or key in self._handed_out:
            return None
        self.commit()
        self._handed_out.add(key)
        row = self._one("SELECT replies, cost_usd FROM exchanges WHERE id = ?", self.unfinished[key])
        with self._error_context:
            return records.saved_replies_from(row)

    def forget(self, key: bytes) -> None:
        """Drop the partial replies under this key, because the rows stored since then contain them."""
        if (exchange := self.unfinished.pop(key, None)) is not None:
            self._left.discard(key)
            self._left_rows = [row for row in self._left_rows if row[0] != key]
            self._over += ((key, exchange),)
            self._due.add(paid=0)

    def drop_failures(self, failed: Iterable[OutcomeRecord] = ()) -> int:
        """Delete all failures so that their questions are asked again; return the number of deleted answers.

        `failed`: outcomes that failed. If none of its questions did, a reply was unreadable, and all are asked again.
        """
        self.commit()
        with self._error_context:
            lost = dict(self._db.execute("SELECT key, failure FROM answers WHERE failure IS NOT NULL"))
            keys = {
                key
                for outcome in failed
                if (trail := [bytes.fromhex(each) for each in outcome.get("trail", ())])
                and not any(json.loads(lost[key]) == outcome.get("error") for key in trail if key in lost)
                for key in trail
            }
            self._db.execute("BEGIN IMMEDIATE")
            dropped = delete_rows(self._db, "answers", "failure IS NOT NULL")
            dropped += sum(delete_rows(self._db, "answers", "key = ?", (key,)) for key in keys)
            self._db.execute("COMMIT")
        return dropped

    def remark(self, name: str) -> str | None:
        """Return the text that `put_copy` stored under this name; None if there is none."""
        row = self._one("SELECT value FROM meta WHERE name = ?", name)
        return None if row is None else str(row[0])

    def put_copy(self, name: str, text: str) -> None:
        """Store a text under a name, such as the content of a file, which `merilo runs verify` compares with it."""
        with self._error_context:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, text))

    def asked(self, key: bytes) -> StoredQuestion | None:
        """Return the question under this key with its answer, rubric and raw replies; None if there is none."""
        row, sent = self._found(key)
        return None if row is None else self._asked(row, sent)

    def conversation(self, key: bytes) -> Conversation | None:
        """Return the conversation that answered the question under this key, with all its questions in order.

        For an answer from the cache: that question only, without judge, rubric and replies.
        """
        row, sent = self._found(key)
        if row is None:
            return None
        with self._error_context:
            rows = [row] if sent.replies is None else self._same_conversation(row)
        asked = tuple(self._asked(each, sent) for each in rows)
        return Conversation(sent.judge, sent.rubric, sent.replies or (), asked, cached=asked[0].cached)

    def _found(self, key: bytes) -> tuple[tuple[Any, ...] | None, _Sent]:  # Any: the values of a row
        """Return the row of the answer under this key, and the conversation that it came from."""
        self.commit()
        row = self._one(self._select("key = ?"), key)
        if row is None:
            return None, _NOTHING_SENT
        if row[-1] is None:
            return row, _NOTHING_SENT
        query = "SELECT text, judge, replies FROM exchanges JOIN texts ON digest = rubric WHERE id = ?"
        sent = self._one(query, row[-1])
        with self._error_context:
            if sent is None:
                raise CorruptRow("a conversation is missing")
            rubric, judge, replies = sent
            return row, _Sent(judge, rubric, records.replies_from(replies))

    def keys(self) -> Iterator[bytes]:
        """Return every key with an answer, in ascending order, read in pages."""
        self.commit()
        return (row[0] for row in self._rows("SELECT key FROM answers WHERE key > ? ORDER BY key LIMIT ?", b""))

    def copy(self, path: Path) -> None:
        """Write this store as one closed file at `path`, which must not exist."""
        self.commit()
        with self._error_context:
            path.touch(file_mode(path))
            self._db.execute("VACUUM INTO ?", (str(path),))
            copy = sqlite3.connect(path, isolation_level=None)
            try:
                copy.execute("DELETE FROM meta WHERE name = 'ledger'")  # the ledger belongs to this run only
            finally:
                copy.close()

    def cached_count(self) -> int:
        """Return the number of answers that came from the cache."""
        self.commit()
        return int(self._one("SELECT count(*) FROM answers WHERE cached")[0])

    @property
    def ledger_lines(self) -> int:
        """Minimum number of lines of this run's ledger; 0 if it has none."""
        with self._error_context:
            return int(self.remark("ledger") or 0)

    def note_ledger(self, lines: int) -> None:
        """Record the number of lines of this run's ledger, so that a truncated or missing one is detected."""
        self.put_copy("ledger", str(lines))

    def record_results(self, *digests: str) -> None:
        """Record the digests of the results that this store belongs to (see runs/seal.py); durable on return."""
        self.commit()
        with self._error_context:
            # in WAL mode, a commit with NORMAL may be lost in a power failure; the seal must not be
            self._db.execute("PRAGMA synchronous = FULL")
            self.put_copy("results", " ".join(digests))
            self._db.execute("PRAGMA synchronous = NORMAL")

    # writing

    def due(self) -> bool:
        """Return True if the pending rows should be committed."""
        return self._due.due()

    def due_in(self) -> float | None:
        """Return the seconds until a commit is due; 0.0 if it is due now, None if nothing is pending."""
        return self._due.due_in()

    def commit(self) -> None:
        """Make all pending rows durable against a crash of the process."""
        if not self._due.pending:
            return
        with self._error_context:
            self._db.execute("BEGIN IMMEDIATE")
            if self._sample_rows:
                samples = ((row, sample_id, record) for sample_id, (row, record) in self._sample_rows.items())
                self._db.executemany("INSERT INTO incoming VALUES (?, ?, ?)", samples)
            # OR IGNORE: `_texts` remembers a limited number, so a text may be written already
            self._db.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", self._text_rows)
            self._db.executemany("INSERT INTO exchanges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self._exchange_rows)
            self._db.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", self._answer_rows)
            added = {"exchanges": self._exchange_rows, "answers": self._answer_rows}
            add_to_digests(self._db, {table: sum(map(row_digest, rows)) for table, rows in added.items()})
            for key, exchange in self._over:
                self._db.execute("DELETE FROM unfinished WHERE key = ?", (key,))
                delete_rows(self._db, "exchanges", "id = ?", (exchange,))
            self._db.executemany("INSERT INTO unfinished VALUES (?, ?)", self._left_rows)
            self._db.execute("COMMIT")
        self._due.clear()
        for rows in (self._answers, self._sample_rows, self._text_rows, self._exchange_rows, self._answer_rows):
            rows.clear()
        self._left_rows.clear()
        self._over.clear()

    def _exchange(self, exchange: Exchange, seconds: float, *, alone: bool) -> int:
        """Return the row number of a conversation. Conversations about one question without any request share a row."""
        # conversations with several questions keep their own row: the row shows what was asked together
        if exchange.replies or not alone:
            return self._new_exchange(exchange, records.replies_text(exchange.replies), seconds)
        sort = (exchange.judge, exchange.rubric, exchange.cost_usd)
        number = self._unsent.get(sort)
        if number is None:
            if len(self._unsent) >= _REMEMBERED_SORTS:
                self._unsent.clear()
            number = self._unsent[sort] = self._new_exchange(exchange, records.NOT_SENT, 0.0)
        return number

    def _new_exchange(self, exchange: Exchange, replies: str, seconds: float) -> int:
        if self._exchanges is None:
            self._exchanges = int(self._one("SELECT coalesce(max(id), 0) FROM exchanges")[0])
        self._exchanges += 1
        rubric = TEXTS[exchange.rubric]
        if rubric not in self._texts:
            self._text(rubric, exchange.rubric)
        row = (
            self._exchanges,
            exchange.judge,
            rubric,
            replies,
            len(exchange.replies),
            *records.tokens_of(exchange.replies),
            None if exchange.cost_usd is None else float(exchange.cost_usd),  # as SQLite returns it
            float(seconds),
        )
        self._exchange_rows += (row,)
        self._due.add(paid=0)
        return self._exchanges

    def _select(self, where: str) -> str:
        columns = "rowid, key, kind, question, verdict, failure, cached, exchange"
        return f"SELECT {columns} FROM answers WHERE {where}"  # noqa: S608  our own constants

    def _asked(self, row: tuple[Any, ...], sent: _Sent) -> StoredQuestion:
        _, key, kind, record, verdict, failure, cached, _ = row
        with self._error_context:
            question = records.question_from(kind, record, self._read_text)
            answer = records.answer_from(verdict, failure, question.verdict)
        return StoredQuestion(key, question, answer, bool(cached), sent.judge, sent.rubric, sent.replies or ())

    def _same_conversation(self, row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the rows of the same conversation, which were written one after another."""
        found = [row]
        for where, end in (("rowid < ? ORDER BY rowid DESC", 0), ("rowid > ? ORDER BY rowid", -1)):
            for other in self._db.execute(self._select(where), (row[0],)):
                if other[-1] != row[-1]:
                    break
                found.insert(0 if end == 0 else len(found), other)
        return found

    def _text(self, digest: bytes, text: str | tuple[str, ...]) -> None:
        if digest not in self._texts:
            if len(self._texts) >= _REMEMBERED_TEXTS:
                self._texts.clear()
            self._texts[digest] = None
            written = text if isinstance(text, str) else records.texts_text(text)
            self._text_rows += ((digest, written),)

    def _read_text(self, digest: bytes) -> str:
        row = self._one("SELECT text FROM texts WHERE digest = ?", digest)
        if row is None:
            raise CorruptRow("a text is missing")
        return str(row[0])

    def _sample(self, record: str) -> Sample:
        from merilo.data.sample import Sample

        with self._error_context:
            return Sample.from_record(json.loads(record))

    def _one(self, statement: str, *values: object) -> Any:  # Any: a row of the statement's columns, or None
        with self._error_context:
            return self._db.execute(statement, values).fetchone()

    def _rows(self, statement: str, last: object) -> Iterator[Any]:  # Any: rows of the statement's columns
        """Yield rows in pages. Their first column is greater than `last` and grows."""
        while True:
            rows: list[Any] = []
            size = 0
            with self._error_context:
                for row in self._db.execute(statement, (last, _PAGE)):
                    rows.append(row)
                    size += sum(len(value) for value in row if isinstance(value, str | bytes))
                    if size > _PAGE_BYTES:
                        break
            if not rows:
                return
            yield from rows
            last = rows[-1][0]

    def _all(self, statement: str, *values: object) -> list[Any]:  # Any: rows of the statement's columns
        with self._error_context:
            return self._db.execute(statement, values).fetchall()


def _opened(path: Path, *, create: bool | None) -> sqlite3.Connection:
    """Return a connection to a store of this format; `create`: None for reading only. Raises RunError."""
    if not create and not path.exists():
        raise no_run(path.parent, path.name)
    db: sqlite3.Connection | None = None
    try:
        db = connected(path, STORE_SCHEMA, wait_s=_WAIT_S, reading=create is None)
        if create is not None:
            db.execute("PRAGMA journal_mode = WAL")
        if create:
            _create(db)
        (found,) = db.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    except (sqlite3.Error, TypeError, ValueError) as error:
        if db is not None:
            db.close()  # rolls an unfinished transaction back
        raise store_error(path, error) from error
    if found != str(FORMAT):
        db.close()
        raise other_format_error(path, found)
    return db


def _create(db: sqlite3.Connection) -> None:
    """Create the tables of a new store, unless they exist."""
    db.execute("BEGIN IMMEDIATE")
    if not db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[0]:
        for statement in SCHEMA:
            db.execute(statement)
        db.execute("INSERT INTO meta VALUES ('format', ?)", (str(FORMAT),))
        record_digests(db)
    db.execute("COMMIT")


@dataclass(frozen=True, slots=True)
class _Sent:
    """A stored conversation. `replies` is None if nothing was sent; its questions are then not recorded together."""

    judge: str
    rubric: str
    replies: tuple[dict[str, Any], ...] | None  # Any: replies as they were recorded


_NOTHING_SENT = _Sent("", "", None)
