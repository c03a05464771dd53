"""The store of a run: its samples, every answer and failure its outcomes used, and the raw replies.

One SQLite file (plain rowid tables with unique indices, write-ahead log). Each text is stored once: a question holds
places in its sample, and a rubric is stored under its digest. New rows are held in memory, where look-ups find them,
until `commit` writes them. Only then are they durable.

The module is long because one class owns the file and all its tables.
"""

from __future__ import annotations

import json
import sqlite3
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from merilo.judging.digests import TEXTS
from merilo.judging.json_types import compact
from merilo.judging.verdicts import Failure, Verdict
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
from merilo.runs.records import Conversation, CorruptRow, Exchange, Line, SampleTexts, SavedReplies, StoredQuestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.providers.base import Reply
    from merilo.runs.outcomes import OutcomeRecord

__all__ = ["FORMAT", "Conversation", "Exchange", "SavedReplies", "Store", "StoredQuestion"]

_REMEMBERED_TEXTS = 1_000
_REMEMBERED_KEYS = 50_000
_REMEMBERED_SAMPLES = 600
_WAIT_S = 10.0
_PAGE = 256
_PAGE_BYTES = 2**24
"""Bytes of the values of a page after which it ends early, so that memory does not grow with the size of samples."""
_WAITING_SAMPLES = 256
_CACHED = Exchange("", "")
"""The conversation of answers from the cache."""
_SAMPLE_BY = {
    "id": "SELECT row, record FROM samples WHERE id = ?",
    "row": "SELECT row, record FROM samples WHERE row = ?",
}
_JOINED = "SELECT key, exchange, place, sample, failed, record FROM answers JOIN exchanges ON id = exchange"
_FOUND = (
    "SELECT key, answers.rowid, exchange, place, sample, failed, cached, judge, digest, text, record"
    " FROM answers JOIN exchanges ON id = exchange JOIN texts ON digest = rubric"
)


class Store:
    """An open `store.sqlite`, for one thread only. Any call may raise RunError: a damaged file or a full disk."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self._error_context = StoreErrorContext(connection, path)
        self._due = CommitPolicy(COMMIT_ROWS, COMMIT_SECONDS)
        self._incoming = 0
        self._sample_rows: dict[str, tuple[int, bytes]] = {}  # pending, by id: position and record
        self._answers: dict[bytes, Answer] = {}  # pending, for look-ups
        self._answer_rows: list[tuple[Any, ...]] = []  # Any: the values of a row
        self._text_rows: list[tuple[bytes, str]] = []
        self._exchange_rows: list[tuple[Any, ...]] = []  # Any: the values of a row
        self._texts: set[bytes] = set()  # digests of rubrics that are written or pending
        self._absent: set[bytes] = set()  # known misses, so that storing these keys needs no look-up
        self._sample_texts: dict[str | int, SampleTexts] = {}  # by id or row of the sample
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
            self._db.execute("DELETE FROM incoming WHERE record = x''")
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
        self._sample_rows[sample.id] = (self._incoming, records.packed(compact(sample.to_record())) if own else b"")
        self._due.add(paid=0)
        if len(self._sample_rows) >= _WAITING_SAMPLES:
            self.commit()

    def samples(self) -> Iterator[Sample]:
        """Return all samples in dataset order, read in pages."""
        return map(self._sample, self.sample_records())

    def sample_records(self) -> Iterator[str]:
        """Return the stored JSON of all samples in dataset order, read in pages."""
        pages = self._rows("SELECT row, record FROM samples WHERE row > ? ORDER BY row LIMIT ?", 0)
        return (self._record(record) for _, record in pages)

    def sample(self, sample_id: str) -> Sample | None:
        """Return the sample with this id; None if there is none."""
        row = self._one("SELECT record FROM samples WHERE id = ?", sample_id)
        return None if row is None else self._sample(self._record(row[0]))

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
            keys = unknown[start : start + MAX_AT_ONCE]
            for key, (_, failed, line) in self.lines(keys).items():
                with self._error_context:
                    found[key] = records.answer_from(line.answer, wanted[key], failed=failed)
            if len(self._absent) > _REMEMBERED_KEYS:
                self._absent.clear()
            self._absent.update([key for key in keys if key not in found])
        return found

    def lines(self, keys: Sequence[bytes]) -> dict[bytes, tuple[int, bool, Line]]:
        """Return the committed answers under these keys: row of the sample, True for a failure, question and answer."""
        found: dict[bytes, tuple[int, bool, Line]] = {}
        for start in range(0, len(keys), MAX_AT_ONCE):
            some = keys[start : start + MAX_AT_ONCE]
            last, asked = 0, list[Line]()
            query = f"{_JOINED} WHERE key IN ({places(len(some))}) ORDER BY exchange"
            for key, exchange, place, sample, failed, record in self._all(query, *some):
                with self._error_context:
                    if exchange != last:
                        last, asked = exchange, records.conversation_from(record)[1]
                    if place >= len(asked):
                        raise CorruptRow("an answer is missing")
                found[key] = sample, bool(failed), asked[place]
        return found

    def taken(self, line: tuple[int, bool, Line], question: Question[Any]) -> Answer | None:
        """Return the answer of a line of `lines` if it is about this question, word for word; otherwise None."""
        row, failed, (kind, text, answer) = line
        if kind != question.kind or records.question_text(question, self._texts_of("row", row)) != text:
            return None
        with self._error_context:
            return records.answer_from(answer, question.verdict, failed=failed)

    def keep(
        self,
        questions: Sequence[tuple[bytes, Question[Any], Answer]],
        exchange: Exchange | None,
        *,
        sample: str | None = None,
        seconds: float = 0.0,
    ) -> list[Answer]:
        """Store answers that came from one conversation; `exchange` is None for answers from the cache.

        `sample`: the id of the sample that the questions are about. Return the answers that are stored now: for each
        key the first one.
        """
        answers: list[Answer] = []
        lines: list[Line] = []
        rows: list[tuple[bytes, bool]] = []
        texts = self._texts_of("id", sample)
        for key, question, answer in questions:
            if key not in self._absent and (earlier := self.answer(key, question.verdict)) is not None:
                answers += (earlier,)
                continue
            self._absent.discard(key)
            text = records.question_text(question, texts)
            lines += (Line(question.kind, text, records.answer_text(answer)),)
            rows += ((key, type(answer) is Failure),)
            self._answers[key] = answer
            answers += (answer,)
        if rows or exchange is not None:
            given = exchange or _CACHED
            number = self._new_exchange(given, records.replies_text(given.replies), lines, seconds)
            cached = int(exchange is None)
            self._answer_rows += [
                (key, number, place, texts.row, int(failed), cached) for place, (key, failed) in enumerate(rows)
            ]
            if rows:
                self._due.add(paid=len(rows) if given.replies else 0)
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
        number = self._new_exchange(exchange, records.replies_text(replies), [], seconds)
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
        row = self._one("SELECT record, cost_usd FROM exchanges WHERE id = ?", self.unfinished[key])
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
            failures = [key for (key,) in self._all("SELECT key FROM answers WHERE failed")]
            lost = {key: line.answer for key, (*_, line) in self.lines(failures).items()}
            keys = {
                key
                for outcome in failed
                if (trail := [bytes.fromhex(each) for each in outcome.get("trail", ())])
                and not any(json.loads(lost[key]) == outcome.get("error") for key in trail if key in lost)
                for key in trail
            }
            self._db.execute("BEGIN IMMEDIATE")
            dropped = delete_rows(self._db, "answers", "failed")
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
        found = self._found(key)
        return None if found is None else self._conversation(found, [found]).asked[0]

    def conversation(self, key: bytes) -> Conversation | None:
        """Return the conversation that answered the question under this key, with all its questions in order.

        For an answer from the cache: that question only, without judge, rubric and replies.
        """
        found = self._found(key)
        if found is None:
            return None
        with self._error_context:
            count = len(records.conversation_from(found.record)[1])
        first = found.row - found.place  # they were written one after another
        where = "answers.rowid BETWEEN ? AND ? AND exchange = ? ORDER BY place"
        near = self._all(f"{_FOUND} WHERE {where}", first, first + count, found.exchange)
        return self._conversation(found, [found] if found.cached else [_Found(*each) for each in near])

    def _found(self, key: bytes) -> _Found | None:
        self.commit()
        row = self._one(f"{_FOUND} WHERE key = ?", key)
        if row is None and self._one("SELECT 1 FROM answers WHERE key = ?", key):
            with self._error_context:
                raise CorruptRow("a conversation is missing")
        return None if row is None else _Found(*row)

    def _conversation(self, found: _Found, rows: Sequence[_Found]) -> Conversation:
        """Return the conversation of an answer with the questions in these rows."""
        with self._error_context:
            text, lines = records.conversation_from(found.record)
            replies: tuple[dict[str, Any], ...] = tuple(json.loads(text))  # Any: replies as they were recorded
            if len(lines) <= max(row.place for row in rows):
                raise CorruptRow("an answer is missing")
            if TEXTS[found.rubric] != found.digest:
                raise CorruptRow("a text does not match its digest")
        asked = [self._asked(row, lines[row.place], replies) for row in rows]
        return Conversation(found.judge, found.rubric, replies, tuple(asked), cached=bool(found.cached))

    def _asked(self, row: _Found, line: Line, replies: tuple[dict[str, Any], ...]) -> StoredQuestion:
        texts = self._texts_of("row", row.sample)
        with self._error_context:
            question = records.question_from(line.kind, line.question, texts)
            answer = records.answer_from(line.answer, question.verdict, failed=bool(row.failed))
        return StoredQuestion(row.key, question, answer, bool(row.cached), row.judge, row.rubric, replies)

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
                copy.execute("DELETE FROM meta WHERE name IN ('ledger', 'inputs')")  # they belong to this run only
            finally:
                copy.close()

    def answer_count(self, *, cached: bool = False) -> int:
        """Return the number of answers, or of those that came from the cache."""
        self.commit()
        return int(self._one("SELECT count(*) FROM answers WHERE cached >= ?", cached)[0])

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
            self._db.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)", self._answer_rows)
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

    def _new_exchange(self, exchange: Exchange, replies: str, lines: Sequence[Line], seconds: float) -> int:
        if self._exchanges is None:
            self._exchanges = int(self._one("SELECT coalesce(max(id), 0) FROM exchanges")[0])
        self._exchanges += 1
        rubric = TEXTS[exchange.rubric]
        if rubric not in self._texts:
            if len(self._texts) >= _REMEMBERED_TEXTS:  # a custom judge may have a rubric per question
                self._texts.clear()
            self._texts.add(rubric)
            self._text_rows += ((rubric, exchange.rubric),)
        row = (
            self._exchanges,
            exchange.judge,
            rubric,
            records.packed(records.conversation_text(replies, lines)),
            len(exchange.replies),
            *records.tokens_of(exchange.replies),
            None if exchange.cost_usd is None else float(exchange.cost_usd),  # as SQLite returns it
            float(seconds),
        )
        self._exchange_rows += (row,)
        self._due.add(paid=0)
        return self._exchanges

    def _texts_of(self, column: str, value: str | int | None) -> SampleTexts:
        """Return the texts of the sample with this value in a column; those of no sample if there is none."""
        found = self._sample_texts.get(value) if value else records.NO_SAMPLE
        if found is None:
            row = self._one(_SAMPLE_BY[column], value)
            if len(self._sample_texts) >= _REMEMBERED_SAMPLES:
                self._sample_texts.clear()
            found = records.NO_SAMPLE if row is None else SampleTexts(row[0], self._record(row[1]))
            self._sample_texts[value or 0] = found
        return found

    def _record(self, data: bytes) -> str:
        with self._error_context:
            return records.unpacked(data)

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


class _Found(NamedTuple):
    """The row of an answer, and its conversation."""

    key: bytes
    row: int
    exchange: int
    place: int
    sample: int
    failed: int
    cached: int
    judge: str
    digest: bytes
    rubric: str
    record: bytes
