"""Writes a run as one portable file (a tape): its samples, every question with its answer and raw replies, its
outcomes.

JSON Lines, gzipped if the name ends in .gz. Each line is an object with one name::

    {"merilo_tape": 1, "merilo": ..., "samples": n, "questions": n, "cached": n}
    {"manifest": {...}}
    {"sample": {...}}         in dataset order
    {"text": [name, ...]}     a long text, or texts that belong together, before what first refers to it
    {"conversation": {...}}   judge, rubric, raw replies, and the questions with keys and answers;
                              in the order in which outcomes need them
    {"outcome": {...}}        as in outcomes.jsonl
    {"summary": {...}}
    {"end": ...}              the digest of all lines above

Equal runs give equal bytes: times, tokens and costs are not included.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from contextlib import ExitStack, closing
from dataclasses import fields
from hashlib import blake2b
from typing import IO, TYPE_CHECKING, Any, Final, cast

from merilo.data.source import open_unpacked
from merilo.errors import RunError, UsageError
from merilo.judging.digests import digest_text, digest_texts
from merilo.judging.json_types import compact
from merilo.judging.later_fields import later_fields
from merilo.judging.verdicts import Failure
from merilo.runs.files import read_json_bytes
from merilo.runs.outcome_lines import outcome_lines
from merilo.runs.publish import staged
from merilo.runs.run import OUTCOMES, SUMMARY, Run, open_store
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from merilo.judging.questions import Question
    from merilo.runs.store import Conversation, Store, StoredQuestion

TAPE_FORMAT: Final = 1
HEAD: Final = "merilo_tape"
HELD_TEXTS: Final = 10_000
"""Maximum number of texts that can be referred to. When it is reached, writer and reader forget them all."""
_SHORT = 60
"""Maximum characters of a text that is written in place instead of in a text line."""


def check_tape_path(path: Path) -> None:
    """Raise UsageError if a tape cannot be written here; called before anything is paid for."""
    if path.is_dir():
        raise UsageError(f"{path} is a directory. --record needs a file name, such as tape.jsonl.gz.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path} cannot be written: the directory {path.parent} does not exist. Create it first.")
    if path.exists() and path.stat().st_size and not is_tape(path):
        raise UsageError(f"{path} exists and is not a tape. Choose another name for --record.")


def is_tape(path: Path) -> bool:
    """Return True for a file that starts like a tape."""
    try:
        with open_unpacked(path) as lines:
            return lines.read(len(HEAD) + 3) == f'{{"{HEAD}"'.encode()
    except (OSError, EOFError, zlib.error):
        return False


def write_tape(run: Run, path: Path) -> int:
    """Write the run to `path`; return the number of its answers without raw replies, because they came from the cache.

    An existing file is replaced once the new tape is complete. A run that was stopped before its first outcome gives no
    tape. Raises RunError if it cannot be written.
    """
    if not run.file(OUTCOMES).exists():
        return 0
    try:
        with ExitStack() as stack:
            store = open_store(run)
            stack.callback(store.close)
            out = stack.enter_context(staged(path))
            if path.suffix == ".gz":
                zipped = gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0)
                out = cast("IO[bytes]", stack.enter_context(zipped))
            _Writer(out).write(run, store)
            cached = store.spent().cached
    except (OSError, sqlite3.Error) as error:
        raise RunError(
            f"The tape {path} cannot be written ({error}). The run is stored in {run.path}: "
            "repeat the command with that directory as --out to write the tape."
        ) from error
    return cached


class _Writer:
    """Writes the lines of one tape."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._digest = blake2b(digest_size=16)
        self._texts: set[bytes] = set()

    def write(self, run: Run, store: Store) -> None:
        head = {
            HEAD: TAPE_FORMAT,
            "merilo": version(),
            "samples": store.sample_count(),
            "questions": sum(1 for _ in store.keys()),  # noqa: SIM118  a store is not a dict
            "cached": store.spent().cached,
        }
        self._line(compact(head))
        self._named("manifest", run.manifest.to_fields())
        for sample in store.samples():
            self._named("sample", sample.to_record())
        for conversation in _conversations(run, store):
            self._conversation(conversation)
        for line in _lines(run):
            self._line(f'{{"outcome":{line}}}')  # copied unchanged: a replay must reproduce these bytes
        if run.file(SUMMARY).exists():
            self._named("summary", json.loads(read_json_bytes(run.file(SUMMARY))))
        self._named("end", self._digest.hexdigest())

    def _conversation(self, conversation: Conversation) -> None:
        record: dict[str, object] = {}
        if not conversation.cached:
            record["judge"] = conversation.judge
            record["rubric"] = self._value(conversation.rubric)
            record["replies"] = [_untimed(reply) for reply in conversation.replies]
        record["asked"] = [self._asked(asked) for asked in conversation.asked]
        self._named("conversation", record)

    def _asked(self, asked: StoredQuestion) -> dict[str, object]:
        record: dict[str, object] = {"key": asked.key.hex(), "kind": asked.question.kind}
        record["question"] = self._question(asked.question)
        if isinstance(asked.answer, Failure):
            record["failure"] = asked.answer.to_fields()
        else:
            record["verdict"] = json.loads(asked.answer.to_json())
        return record

    def _question(self, question: Question[Any]) -> dict[str, object]:
        later = later_fields(type(question))
        values = {field.name: getattr(question, field.name) for field in fields(question)}
        return {name: self._value(value) for name, value in values.items() if value or name not in later}

    def _value(self, value: object) -> object:
        """Return the value or, if it is long, a reference to an earlier text line."""
        if isinstance(value, tuple):
            texts = cast("tuple[str, ...]", value)  # the only tuples that questions have
            return self._text(digest_texts(texts), list(texts)) if sum(map(len, texts)) > _SHORT else list(texts)
        if isinstance(value, str) and len(value) > _SHORT:
            return self._text(digest_text(value), value)
        return value

    def _text(self, digest: bytes, value: object) -> dict[str, str]:
        if digest not in self._texts:
            if len(self._texts) >= HELD_TEXTS:
                self._texts.clear()
            self._texts.add(digest)
            self._named("text", [digest.hex(), value])
        return {"text": digest.hex()}

    def _named(self, name: str, value: object) -> None:
        self._line(compact({name: value}))

    def _line(self, line: str) -> None:
        data = line.encode("utf-8", "replace") + b"\n"
        self._digest.update(data)
        self._out.write(data)


def _conversations(run: Run, store: Store) -> Iterator[Conversation]:
    """Yield each conversation once: in the order in which outcomes need them, then the remaining ones by key."""
    with closing(sqlite3.connect("")) as seen:  # a private file: a set in memory would grow with the run
        seen.execute("CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID")
        for key in _keys(run, store):
            if seen.execute("SELECT 1 FROM seen WHERE key = ?", (key,)).fetchone():
                continue
            conversation = store.conversation(key)
            if conversation is not None:
                keys = [(asked.key,) for asked in conversation.asked]
                seen.executemany("INSERT OR IGNORE INTO seen VALUES (?)", keys)
                yield conversation


def _keys(run: Run, store: Store) -> Iterator[bytes]:
    for record in run.records():
        yield from map(bytes.fromhex, record.get("trail", ()))
    yield from store.keys()


def _lines(run: Run) -> Iterator[str]:
    for line in outcome_lines(run.file(OUTCOMES)):
        yield line.decode().rstrip("\n")


def _untimed(reply: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    return {name: value for name, value in reply.items() if name not in {"usage", "seconds"}}
