"""The verdict cache: verdicts shared between runs in one SQLite file in the user's cache directory. The first writer
wins.

The cache may never break a run: every row is checked against its seal and against the question asked. A run that meets
damage, or a full disk, continues without a cache. merilo writes to a file only if it is its own, by its application id.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.data.config_files import user_directory
from merilo.errors import RunError
from merilo.runs.database import (
    ERRORS,
    MAX_AT_ONCE,
    CommitPolicy,
    StoreProblem,
    connected,
    error_text,
    places,
    problem_of,
    seal,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict

FORMAT: Final = 2
MARK: Final = 0x6D65_726C
"""SQLite `application_id` of a cache file: "merl"."""

_OPEN_WAIT_S = 30.0
_MAGIC = b"SQLite format 3\0"
_TABLES = (
    "CREATE TABLE sources (id INTEGER PRIMARY KEY, judge TEXT NOT NULL, kind TEXT NOT NULL, UNIQUE (judge, kind))",
    "CREATE TABLE verdicts (key BLOB NOT NULL, verdict BLOB NOT NULL, seal INTEGER, source INTEGER, added INTEGER)",
    "CREATE UNIQUE INDEX verdicts_key ON verdicts (key)",
)


def default_path() -> Path:
    """Return `$MERILO_CACHE`, or `merilo/verdicts.sqlite` in the user's cache directory if it is not set."""
    if named := os.environ.get("MERILO_CACHE"):
        return Path(named)
    return user_directory("cache") / "verdicts.sqlite"


@dataclass
class CacheFile:
    """An open cache file. Belongs to one thread."""

    path: Path
    db: sqlite3.Connection

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> CacheFile:
        """Open the cache at `path`; with `create`, make it if there is none.

        Raises RunError for a damaged file, any other file, another format, and if the system denies access.
        """
        try:
            if create:
                path.parent.mkdir(0o700, parents=True, exist_ok=True)
            if not _is_ours(path):
                raise RunError(
                    f"{path} is not a verdict cache of merilo. Set MERILO_CACHE to another file, or run without a "
                    "cache (--no-cache)."
                )
            file = cls(path, _opened(path))
            (version,) = file.db.execute("PRAGMA user_version").fetchone()
            if version != FORMAT:
                file.close()
                raise RunError(
                    f"The verdict cache {path} has format {version}; this merilo reads format {FORMAT}. "
                    "Set MERILO_CACHE to another file."
                )
        except (OSError, *ERRORS) as error:
            raise unusable(path, error) from error
        return file

    @contextmanager
    def writing(self, wait_s: float) -> Generator[sqlite3.Connection]:
        """Run one transaction. Waits up to `wait_s` while another process writes."""
        self.db.execute(f"PRAGMA busy_timeout = {wait_s * 1000:.0f}")
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield self.db
            self.db.execute("COMMIT")
        except BaseException:
            with suppress(*ERRORS):
                self.db.rollback()
            raise

    def close(self) -> None:
        """Close the file."""
        with suppress(*ERRORS):
            self.db.close()


def _is_ours(path: Path) -> bool:
    """Return True for an SQLite file with merilo's application id, an empty one or none; nothing is written."""
    if not path.is_file():  # opening a pipe would wait for ever
        return not path.exists()
    with path.open("rb") as file:
        head = file.read(100)
    return not head or (head.startswith(_MAGIC) and int.from_bytes(head[68:72], "big") == MARK)


def _opened(path: Path) -> sqlite3.Connection:
    """Return a connection to the cache, with its tables created. Raises one of ERRORS."""
    give_up = time.monotonic() + _OPEN_WAIT_S
    while True:
        db = connected(path, _TABLES, wait_s=_OPEN_WAIT_S)
        try:
            if db.execute("PRAGMA user_version").fetchone() == (0,):
                db.execute("BEGIN IMMEDIATE")
                if db.execute("PRAGMA user_version").fetchone() == (0,):  # another process may have been faster
                    for statement in _TABLES:
                        db.execute(statement)
                    db.execute(f"PRAGMA application_id = {MARK}")
                    db.execute(f"PRAGMA user_version = {FORMAT}")
                db.execute("COMMIT")
            db.execute("PRAGMA journal_mode = WAL")
        except ERRORS as error:
            db.close()
            if problem_of(error) is not StoreProblem.BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.05)  # while opening, SQLite refuses some locks at once, whatever the busy timeout
        else:
            return db


def unusable(path: Path, error: Exception) -> RunError:
    """Return the error of a cache that cannot be used."""
    if problem_of(error) is StoreProblem.DAMAGED:
        why = f"The verdict cache {path} is damaged ({error_text(error)})."
        return RunError(f"{why} Delete it, or run without a cache (--no-cache).")
    return RunError(
        f"The verdict cache {path} cannot be used ({error_text(error)}). Make it writable, set MERILO_CACHE to another "
        "file, or run without a cache (--no-cache)."
    )


# -- its contents, and removing some -------------------------------------------------------------------
# Other processes may use the cache at the same time.

_ROWS = 10_000
_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class JudgeEntryCount:
    """Number and age of the verdicts of one judge on one kind of question. Judge and kind are None in old entries."""

    judge: str | None
    kind: str | None
    verdicts: int
    oldest: int
    """Time when the first of them was stored, in seconds since 1970."""
    newest: int


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of a cache, by judge and kind of question."""

    path: Path
    size_bytes: int
    shares: tuple[JudgeEntryCount, ...] = ()
    """Most verdicts first."""

    @property
    def verdicts(self) -> int:
        """Total number of verdicts."""
        return sum(share.verdicts for share in self.shares)


@dataclass(frozen=True, slots=True)
class Pruned:
    """Result of pruning a cache."""

    verdicts: int
    freed_bytes: int
    """Bytes by which the file shrank; 0 if another process prevented it."""
    left: int
    """Number of verdicts left."""
    notices: tuple[str, ...] = ()


def contents(path: Path) -> Contents:
    """Return the contents of the cache at `path`; empty if there is none. Raises RunError if it cannot be used."""
    if not path.exists():
        return Contents(path, 0)
    with _present(path) as file:
        rows = file.db.execute(
            "SELECT judge, kind, count(*), min(added), max(added) FROM verdicts LEFT JOIN sources ON id = source"
            " GROUP BY source ORDER BY count(*) DESC, judge, kind"
        ).fetchall()
    shares = (JudgeEntryCount(*row) for row in rows)
    return Contents(path, _size(path), tuple(shares))


def prune(path: Path, *, before: int | None = None) -> Pruned:
    """Delete verdicts stored before a time (seconds since 1970), or all. Raises RunError if it cannot be used."""
    if not path.exists():
        return Pruned(0, 0, 0)
    size = _size(path)
    notices: list[str] = []
    with _present(path) as file:
        gone = sum(_deleted(file, before))
        (left,) = file.db.execute("SELECT count(*) FROM verdicts").fetchone()
        if gone:
            notices += _shrink(file.db)
    return Pruned(gone, max(0, size - _size(path)), left, tuple(notices))


@contextmanager
def _present(path: Path) -> Generator[CacheFile]:
    """Open the cache, and turn an error of SQLite in the block into a RunError."""
    with closing(CacheFile.open(path, create=False)) as file:
        try:
            yield file
        except ERRORS as error:
            raise unusable(path, error) from error


def _deleted(file: CacheFile, before: int | None) -> Iterator[int]:
    """Delete rows in many short transactions, between which other processes can write; yield the count of each."""
    (last,) = file.db.execute("SELECT coalesce(max(rowid), 0) FROM verdicts").fetchone()
    wanted, values = ("", ()) if before is None else (" AND added < ?", (before,))
    for start in range(0, last, _ROWS):
        with file.writing(_WAIT_S) as db:
            rows = db.execute(
                f"DELETE FROM verdicts WHERE rowid > ? AND rowid <= ?{wanted}",  # noqa: S608  our own constants
                (start, min(start + _ROWS, last), *values),
            )
            yield rows.rowcount


def _shrink(db: sqlite3.Connection) -> list[str]:
    """Return free space to the file system; return a notice if that is not possible now."""
    try:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:
        return [f"The file could not be shrunk now ({error_text(error)}). Its free space will be used by new verdicts."]
    return []


def _size(path: Path) -> int:
    parts = (path, path.with_name(path.name + "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


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
            # before new rows: a key that was dropped may have been answered again
            db.executemany("DELETE FROM verdicts WHERE key = ?", [(key,) for key in self._dropped])
            # another process may have stored an answer since the look-up, and the first one counts
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
