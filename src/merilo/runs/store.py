"""What a run holds on disk: its samples, every answer and failure its outcomes used, and the raw replies.

One SQLite file (plain rowid tables with unique indices, write-ahead log). Texts are stored once, under their
digest; a question is a row of digests. Writes gather in a transaction that is committed when it is due.
"""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

from merilo.errors import RunError
from merilo.judging.digests import digest_text, digest_texts
from merilo.judging.questions import KINDS, Question
from merilo.judging.verdicts import Failure, FailureKind, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.providers.base import Reply

FORMAT = 1
COMMIT_ROWS = 50
COMMIT_SECONDS = 0.02
_REMEMBERED_TEXTS = 20_000

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE samples (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
CREATE TABLE texts (digest BLOB NOT NULL, text TEXT NOT NULL);
CREATE UNIQUE INDEX texts_digest ON texts (digest);
CREATE TABLE exchanges (id INTEGER PRIMARY KEY, judge TEXT NOT NULL, rubric BLOB NOT NULL,
    replies TEXT NOT NULL, requests INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER,
    cost_usd REAL, seconds REAL NOT NULL);
CREATE TABLE answers (key BLOB NOT NULL, kind TEXT NOT NULL, question TEXT NOT NULL,
    verdict TEXT, failure TEXT, cached INTEGER NOT NULL, exchange INTEGER);
CREATE UNIQUE INDEX answers_key ON answers (key);
"""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What was sent and received to get some answers: one conversation with a judge."""

    judge: str
    rubric: str
    replies: tuple[Reply | Failure, ...] = ()
    cost_usd: float | None = None
    """None when the price is unknown; 0.0 when it is free."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as stored, with its answer and the raw replies behind it."""

    key: bytes
    question: Question[Any]
    answer: Answer
    cached: bool
    judge: str
    rubric: str
    replies: tuple[dict[str, Any], ...]  # Any: replies as they were recorded


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has cost so far, earlier interrupted parts included."""

    requests: int
    cached: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None


class Store:
    """An open `store.sqlite`. Belongs to one thread; not for sharing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._pending = 0
        self._since = time.monotonic()
        self._texts: dict[bytes, None] = {}

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> Store:
        """The store at `path`; made there with `create`. Raises RunError when it is missing, damaged or newer."""
        if not create and not path.exists():
            raise RunError(f"{path} does not exist: this is not the directory of a run.")
        try:
            db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            made = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[0]
            if create and not made:
                db.executescript(f"BEGIN; {_SCHEMA} INSERT INTO meta VALUES ('format', '{FORMAT}'); COMMIT;")  # noqa: S608  our own constants
            (found,) = db.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
        except (sqlite3.Error, TypeError) as error:
            raise RunError(f"{path} cannot be read as the store of a run ({error}); start a new run.") from error
        if int(found) > FORMAT:
            raise RunError(f"{path} has format {found}, this merilo reads up to {FORMAT}; upgrade merilo.")
        return cls(db)

    @classmethod
    def read(cls, path: Path) -> Store:
        """The store at `path` for reading only, also where nothing may be written. Raises RunError."""
        try:
            db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
            db.execute("SELECT value FROM meta").fetchone()
        except sqlite3.Error as error:
            raise RunError(f"{path} cannot be read as the store of a run ({error}).") from error
        return cls(db)

    def close(self) -> None:
        """Commit what is pending, fold the write-ahead log into the one file and close."""
        try:
            self.commit()
            self._db.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError:
            pass  # read only, or a reader is at it: the log stays beside the file, nothing is lost
        finally:
            self._db.close()

    # samples

    def expect_samples(self) -> None:
        """Make room for samples to be added; the present ones stay until `accept_samples`."""
        self.commit()
        self._db.execute("DROP TABLE IF EXISTS incoming")
        self._db.execute(
            "CREATE TABLE incoming (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL)"
        )

    def accept_samples(self) -> None:
        """Let the samples added since `expect_samples` take the place of the present ones."""
        self.commit()
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("DROP TABLE samples")
        self._db.execute("ALTER TABLE incoming RENAME TO samples")
        self._db.execute("COMMIT")

    def add_sample(self, sample: Sample) -> int | None:
        """Store a sample; None when stored, else the position (from 1) of the sample that has its id already."""
        record = json.dumps(sample.to_record(), ensure_ascii=False, separators=(",", ":"))
        try:
            self._write("INSERT INTO incoming (id, record) VALUES (?, ?)", (sample.id, record))
        except sqlite3.IntegrityError:
            (row,) = self._db.execute("SELECT row FROM incoming WHERE id = ?", (sample.id,)).fetchone()
            return int(row)
        return None

    def samples(self) -> Iterator[Sample]:
        """All samples in dataset order, read in pages."""
        from merilo.data.sample import Sample

        last, page = 0, 256
        while rows := self._db.execute(
            "SELECT row, record FROM samples WHERE row > ? ORDER BY row LIMIT ?", (last, page)
        ).fetchall():
            for row, record in rows:
                yield Sample.from_record(json.loads(record))
                last = row

    def sample(self, sample_id: str) -> Sample | None:
        """The sample with this id."""
        from merilo.data.sample import Sample

        row = self._db.execute("SELECT record FROM samples WHERE id = ?", (sample_id,)).fetchone()
        return Sample.from_record(json.loads(row[0])) if row else None

    def sample_count(self) -> int:
        """How many samples are stored."""
        (count,) = self._db.execute("SELECT count(*) FROM samples").fetchone()
        return int(count)

    # answers

    def answer(self, key: bytes, verdict: type[Verdict]) -> Answer | None:
        """The verdict or failure stored under this key; None when it was not asked in this run."""
        row = self._db.execute("SELECT verdict, failure FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else _answer(row[0], row[1], verdict)

    def keep(
        self,
        questions: Sequence[tuple[bytes, Question[Any], Answer]],
        exchange: Exchange | None,
        *,
        seconds: float = 0.0,
    ) -> list[Answer]:
        """Store answers that came from one conversation; `exchange` None: they were taken from the cache.

        Returns what is held now, answer by answer: the one that came first under its key.
        """
        number = None if exchange is None else self._exchange(exchange, seconds)
        held: list[Answer] = []
        for key, question, answer in questions:
            verdict, failure = _columns(answer)
            written = self._write(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key, question.kind, self._question(question), verdict, failure, exchange is None, number),
            )
            earlier = None if written.rowcount else self.answer(key, question.verdict)
            held.append(answer if earlier is None else earlier)
        return held

    def drop_failures(self) -> int:
        """Forget all failures so that they are asked again; how many there were."""
        (count,) = self._db.execute("SELECT count(*) FROM answers WHERE failure IS NOT NULL").fetchone()
        self._write("DELETE FROM answers WHERE failure IS NOT NULL", ())
        return int(count)

    def asked(self, key: bytes) -> Asked | None:
        """The question under this key with its answer, rubric and raw replies."""
        row = self._db.execute(
            "SELECT kind, question, verdict, failure, cached, exchange FROM answers WHERE key = ?", (key,)
        ).fetchone()
        if row is None:
            return None
        kind, question, verdict, failure, cached, number = row
        judge, rubric, replies = self._exchange_of(number)
        answer = _answer(verdict, failure, KINDS[kind].verdict)
        return Asked(key, self._read_question(kind, question), answer, bool(cached), judge, rubric, replies)

    def spent(self) -> Spent:
        """Requests, tokens and money over all conversations; None where any part is unknown."""
        requests, known_in, known_out, known_cost, count, tokens_in, tokens_out, cost = self._db.execute(
            "SELECT coalesce(sum(requests), 0), count(input_tokens), count(output_tokens), count(cost_usd),"
            " count(*), sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM exchanges"
        ).fetchone()
        (cached,) = self._db.execute("SELECT count(*) FROM answers WHERE cached").fetchone()
        return Spent(
            requests=requests,
            cached=cached,
            input_tokens=(tokens_in or 0) if known_in == count else None,
            output_tokens=(tokens_out or 0) if known_out == count else None,
            cost_usd=(cost or 0.0) if known_cost == count else None,
        )

    # writing

    def due(self) -> bool:
        """True when the pending rows should be committed."""
        return self._pending >= COMMIT_ROWS or (self._pending > 0 and time.monotonic() - self._since >= COMMIT_SECONDS)

    def commit(self) -> None:
        """Make everything written so far durable against a crash of the process."""
        if self._pending:
            self._pending = 0
            if self._db.in_transaction:
                self._db.execute("COMMIT")

    def _write(self, statement: str, values: tuple[object, ...]) -> sqlite3.Cursor:
        if not self._pending:
            self._db.execute("BEGIN IMMEDIATE")
            self._since = time.monotonic()
        self._pending += 1
        return self._db.execute(statement, values)

    def _exchange(self, exchange: Exchange, seconds: float) -> int:
        rubric = self._text(digest_text(exchange.rubric), exchange.rubric)
        replies = [_reply_record(reply) for reply in exchange.replies]
        usages = [reply["usage"] for reply in replies if "usage" in reply]
        written = self._write(
            "INSERT INTO exchanges VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                exchange.judge,
                rubric,
                json.dumps(replies, ensure_ascii=False, separators=(",", ":")),
                len(replies),
                _total(usage["input_tokens"] for usage in usages),
                _total(usage["output_tokens"] for usage in usages),
                exchange.cost_usd,
                seconds,
            ),
        )
        return written.lastrowid or 0

    def _exchange_of(self, number: int | None) -> tuple[str, str, tuple[dict[str, Any], ...]]:
        row = self._db.execute(
            "SELECT judge, text, replies FROM exchanges JOIN texts ON digest = rubric WHERE id = ?", (number,)
        ).fetchone()
        return (row[0], row[1], tuple(json.loads(row[2]))) if row else ("", "", ())

    def _text(self, digest: bytes, text: str) -> bytes:
        if digest not in self._texts:
            self._write("INSERT OR IGNORE INTO texts VALUES (?, ?)", (digest, text))
            if len(self._texts) >= _REMEMBERED_TEXTS:
                self._texts.clear()
            self._texts[digest] = None
        return digest

    def _question(self, question: Question[Any]) -> str:
        record: dict[str, object] = {}
        for field in fields(question):
            value = getattr(question, field.name)
            if isinstance(value, tuple):
                value = cast("tuple[str, ...]", value)  # the only tuples that questions have
                digest = digest_texts(value)
                if digest not in self._texts:
                    self._text(digest, json.dumps(value, ensure_ascii=False))
                record[field.name] = {"texts": digest.hex()}
            elif isinstance(value, str) and field.name not in {"role", "language"}:
                record[field.name] = {"text": self._text(digest_text(value), value).hex()}
            else:
                record[field.name] = value
        return json.dumps(record, separators=(",", ":"))

    def _read_text(self, digest: bytes) -> str:
        (text,) = self._db.execute("SELECT text FROM texts WHERE digest = ?", (digest,)).fetchone()
        return str(text)

    def _read_question(self, kind: str, record: str) -> Question[Any]:
        values: dict[str, Any] = json.loads(record)  # Any: the fields of the question type named by `kind`
        for name, value in values.items():
            if isinstance(value, dict):
                ((form, digest),) = cast("dict[str, str]", value).items()
                text = self._read_text(bytes.fromhex(digest))
                values[name] = text if form == "text" else tuple(json.loads(text))
        return KINDS[kind](**values)


def _columns(answer: Answer) -> tuple[str | None, str | None]:
    if isinstance(answer, Failure):
        return None, json.dumps({"kind": answer.kind, "message": answer.message}, ensure_ascii=False)
    return answer.to_json(), None


def _answer(verdict: str | None, failure: str | None, kind: type[Verdict]) -> Answer:
    if verdict is not None:
        return kind.from_json(verdict)
    record = json.loads(failure or "{}")
    return Failure(FailureKind(record["kind"]), record["message"])


def _reply_record(reply: Reply | Failure) -> dict[str, Any]:  # Any: JSON
    if isinstance(reply, Failure):
        return {"failure": {"kind": reply.kind.value, "message": reply.message}}
    usage = {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens}
    return {
        "texts": list(reply.texts),
        "finish": reply.finish.value,
        "path": reply.path.value,
        "model": reply.model,
        "usage": usage,
    }


def _total(numbers: Iterator[int | None]) -> int | None:
    known = list(numbers)
    return None if any(number is None for number in known) else sum(number or 0 for number in known)
