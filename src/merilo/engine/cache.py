"""The verdict cache: verdicts shared between runs in one SQLite file in the user's cache directory. The first writer
wins.

The cache may never break a run: every row is checked against its seal and against the question asked. A run that meets
damage, or a full disk, continues without a cache.
"""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, Any

from merilo.engine.cache_file import CacheFile, default_path
from merilo.runs.database import (
    ERRORS,
    MAX_AT_ONCE,
    CommitPolicy,
    StoreProblem,
    error_text,
    places,
    problem_of,
    seal,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict

__all__ = ["VerdictCache", "default_path"]

WRITE_ROWS = 256
WRITE_SECONDS = 0.25
"""Seconds between commits. A kill loses at most these entries of the cache; the run has stored every answer long
before."""
_MAX_WAITING = 20_000
_AGAIN_S = 1.0
_WRITE_WAIT_S = 0.5
_LAST_WAIT_S = 30.0


class VerdictCache:
    """An open cache; contains verdicts only, never failures or verdicts with which a plan failed.

    Belongs to one thread; processes may share the file. Stored verdicts are held in memory, where look-ups find them,
    until `commit`.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the cache. Raises RunError if it cannot be used."""
        self._notices: list[str] = []
        self._file: CacheFile | None = CacheFile.open(path)
        self._due = CommitPolicy(WRITE_ROWS, WRITE_SECONDS)
        self._waiting: dict[bytes, tuple[Verdict, Question[Any], str]] = {}  # pending: verdict, question, judge
        self._dropped: set[bytes] = set()  # rows to be deleted with the next commit; some failed their checks
        self._sources: dict[tuple[str, str], int] = {}
        self._not_before = 0.0

    def notices(self) -> Sequence[str]:
        """Return messages for the user: the cache is no longer used."""
        return tuple(self._notices)

    def find(self, wanted: Mapping[bytes, Question[Any]]) -> dict[bytes, Verdict]:
        """Return the cached verdicts for these keys that are valid answers to their questions, with one look-up."""
        found: dict[bytes, Verdict] = {}
        unknown: list[bytes] = []
        for key in wanted:
            if key in self._waiting:
                found[key] = self._waiting[key][0]
            elif key not in self._dropped:
                unknown += (key,)
        for row in self._rows(unknown):
            question = wanted[row[0]]
            verdict = _read(row, type(question).verdict)
            if verdict is not None and question.fault(verdict) is None:
                found[row[0]] = verdict
            else:
                self._dropped.add(row[0])
        return found

    def put(self, answered: Iterable[tuple[bytes, Question[Any], Verdict]], judge: str, *, paid: bool) -> None:
        """Store verdicts of a judge. If another process stores one under the same key first, that one stays."""
        new = 0
        for key, question, verdict in answered:
            if self._file is not None and len(self._waiting) < _MAX_WAITING:
                self._waiting[key] = (verdict, question, judge)
                new += 1
        if new:
            self._due.add(paid=new if paid else 0)

    def drop(self, keys: Sequence[bytes]) -> None:
        """Delete the verdicts under these keys."""
        for key in keys:
            if self._waiting.pop(key, None) is None and self._file is not None:
                self._dropped.add(key)
                self._due.add(paid=0)

    def due(self) -> bool:
        """Return True if pending verdicts should be committed."""
        return self._due.due() and time.monotonic() >= self._not_before

    def due_in(self) -> float | None:
        """Return the seconds until a commit is due; 0.0 if it is due now, None if nothing is pending."""
        seconds = self._due.due_in()
        return None if seconds is None else max(seconds, self._not_before - time.monotonic())

    def commit(self, *, wait_s: float = _WRITE_WAIT_S) -> StoreProblem | None:
        """Make all verdicts put so far durable and visible to other processes; return the problem that prevented it, if
        any.

        If another process writes for longer than `wait_s`, the verdicts stay pending in memory.
        """
        if self._due.pending and self._file is not None:
            try:
                self._write(self._file, wait_s)
            except ERRORS as error:
                return self._suffer(error)
        self._waiting.clear()
        self._dropped.clear()
        self._due.clear()
        return None

    def close(self) -> str | None:
        """Commit and close; return a message if another process prevented the last commit."""
        problem = self.commit(wait_s=_LAST_WAIT_S)
        if self._file is None:
            return None
        file, self._file = self._file, None
        file.close()
        if problem is not StoreProblem.BUSY:
            return None
        return (
            f"Another process kept the verdict cache {file.path} locked for {_LAST_WAIT_S:g} s. "
            "The last verdicts are stored in the run only."
        )

    def _rows(self, keys: list[bytes]) -> Iterator[tuple[Any, ...]]:  # Any: a damaged file may hold anything
        for start in range(0, len(keys), MAX_AT_ONCE):
            some = keys[start : start + MAX_AT_ONCE]
            if self._file is None:
                return
            asked = f"SELECT key, verdict, seal FROM verdicts WHERE key IN ({places(len(some))})"  # noqa: S608  our own constants
            try:
                rows = self._file.db.execute(asked, some).fetchall()
            except ERRORS as error:
                self._suffer(error)
                continue
            yield from rows

    def _write(self, file: CacheFile, wait_s: float) -> None:
        now = int(time.time())
        with file.writing(wait_s) as db:
            rows: list[tuple[object, ...]] = []
            for key, (verdict, question, judge) in self._waiting.items():
                text = verdict.to_json().encode()
                kind = (judge, question.kind)
                source = self._sources[kind] if kind in self._sources else self._source(db, *kind)
                rows += ((key, text, seal(key, text), source, now),)
            db.executemany("DELETE FROM verdicts WHERE key = ?", [(key,) for key in self._dropped])
            db.executemany("INSERT OR IGNORE INTO verdicts VALUES (?, ?, ?, ?, ?)", rows)

    def _source(self, db: sqlite3.Connection, judge: str, kind: str) -> int:
        db.execute("INSERT OR IGNORE INTO sources (judge, kind) VALUES (?, ?)", (judge, kind))
        found = db.execute("SELECT id FROM sources WHERE judge = ? AND kind = ?", (judge, kind)).fetchone()
        if found is None or not isinstance(found[0], int):
            raise sqlite3.DatabaseError("its table of sources is damaged")
        number = self._sources[judge, kind] = found[0]
        return number

    def _suffer(self, error: Exception) -> StoreProblem:
        """Handle an error of SQLite: retry later, or continue without a cache. Return its kind."""
        problem = problem_of(error)
        if problem is StoreProblem.BUSY:
            self._not_before = time.monotonic() + _AGAIN_S
        elif self._file is not None:
            file, self._file = self._file, None
            file.close()
            what = "is damaged" if problem is StoreProblem.DAMAGED else "cannot be written"
            advice = " Delete it after this run." if problem is StoreProblem.DAMAGED else ""
            why = f"The verdict cache {file.path} {what} ({error_text(error)})."
            self._notices.append(f"{why} This run continues without it.{advice}")
        return problem


def _read(row: tuple[Any, ...], kind: type[Verdict]) -> Verdict | None:
    key, text, sealed = row
    if not isinstance(text, bytes) or seal(key, text) != sealed:
        return None
    try:
        return kind.from_json(text)
    except ValueError:  # written by a merilo version with other fields
        return None
