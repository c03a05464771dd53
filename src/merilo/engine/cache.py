"""The verdict cache: verdicts shared between runs in one SQLite file in the user's cache directory. The first writer
wins.

The cache may never break a run: every row is checked against its seal and against the question asked. A run that meets
damage, or a full disk, continues without a cache.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from merilo.engine.cache_file import CacheFile, default_path
from merilo.runs.database import (
    ERRORS,
    MAX_AT_ONCE,
    CommitPolicy,
    StoreProblem,
    error_text,
    file_mode,
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
_FRESH_S = 0.015  # after a look-up; then another process may have written since
_MAX_WAITING = 20_000
_MAX_ABSENT = 50_000
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
        self._claims = Claims(path.with_name(f"{path.name}.claims"))
        self._answered: list[bytes] = []  # keys of claims to give up with the next commit
        self._due = CommitPolicy(WRITE_ROWS, WRITE_SECONDS)
        self._waiting: dict[bytes, tuple[Verdict, Question[Any], str]] = {}  # pending: verdict, question, judge
        self._dropped: set[bytes] = set()  # rows to be deleted with the next commit; some failed their checks
        self._absent: set[bytes] = set()  # known misses, valid until another process writes
        self._version: int | None = None  # SQLite's data_version: changes when another process writes
        self._sources: dict[tuple[str, str], int] = {}
        self._not_before = 0.0
        self._looked = 0.0

    def notices(self) -> Sequence[str]:
        """Return messages for the user: the cache is no longer used."""
        return tuple(self._notices)

    def find(self, wanted: Mapping[bytes, Question[Any]]) -> dict[bytes, Verdict]:
        """Return the cached verdicts for these keys that are valid answers to their questions, with one look-up."""
        self._forget_if_changed()
        return self._found(wanted)

    def _found(self, wanted: Mapping[bytes, Question[Any]]) -> dict[bytes, Verdict]:
        found: dict[bytes, Verdict] = {}
        unknown: list[bytes] = []
        for key in wanted:
            if key in self._waiting:
                found[key] = self._waiting[key][0]
            elif key not in self._absent and key not in self._dropped:
                unknown += (key,)
        for row in self._rows(unknown):
            question = wanted[row[0]]
            verdict = _read(row, type(question).verdict)
            if verdict is not None and question.fault(verdict) is None:
                found[row[0]] = verdict
            else:
                self._dropped.add(row[0])
        self._absent.update([key for key in unknown if key not in found and key not in self._dropped])
        return found

    def _forget_if_changed(self) -> None:
        """Forget the known misses if another process has written since, or if too many are remembered."""
        self._looked = time.monotonic()
        version = self._data_version()
        if version is None or version != self._version or len(self._absent) > _MAX_ABSENT:
            self._absent.clear()
            self._version = version

    def _data_version(self) -> int | None:
        if self._file is not None:
            with suppress(*ERRORS):
                (version,) = self._file.db.execute("PRAGMA data_version").fetchone()
                return int(version)
        return None

    def claim(self, wanted: Mapping[bytes, Sequence[bytes]]) -> set[bytes]:
        """Claim work units: key of the unit → keys of its questions, which `find` did not find just before.

        Return the units not to ask now: another process asks one of their questions, or has answered all of them since
        `find`.
        """
        taken = {unit for unit, keys in wanted.items() if self._file is not None and not self._claims.take(keys)}
        if len(taken) < len(wanted) and self._data_version() != self._version:
            # a claim is given up after the commit of its verdict, so a verdict is there now or the claim is ours
            own = {unit: keys for unit, keys in wanted.items() if unit not in taken}
            there = {row[0] for row in self._rows([key for keys in own.values() for key in keys])} - self._dropped
            answered = {unit for unit, keys in own.items() if there.issuperset(keys)}
            self._claims.drop(key for unit in answered for key in own[unit])
            taken |= answered
        return taken

    def unclaim(self, keys: Sequence[bytes]) -> None:
        """Give up the claims of questions once the verdicts put so far are visible to other processes."""
        self._answered += keys
        if not self._due.pending:
            self._unclaim()

    def _unclaim(self) -> None:
        self._claims.drop(self._answered)
        self._answered.clear()

    def put(self, answered: Sequence[tuple[bytes, Question[Any], Verdict]], judge: str, *, paid: bool) -> list[Verdict]:
        """Store verdicts of a judge; return the verdicts that the cache holds now: an earlier one if it had one.

        A verdict that another process wrote within the last few milliseconds may be missed. It then stays in the cache,
        and the new one is stored in this run only.
        """
        if time.monotonic() - self._looked > _FRESH_S:
            self._forget_if_changed()
        unsure = {key: question for key, question, _ in answered if key not in self._absent}
        held = self._found(unsure) if unsure else {}
        kept: list[Verdict] = []
        new = 0
        for key, question, verdict in answered:
            earlier = held.get(key) if held else None
            if earlier is None and self._file is not None and len(self._waiting) < _MAX_WAITING:
                self._waiting[key] = (verdict, question, judge)
                self._absent.discard(key)
                new += 1
            kept += (verdict if earlier is None else earlier,)
        if new:
            self._due.add(paid=new if paid else 0)
        return kept

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
        self._unclaim()
        return None

    def close(self) -> str | None:
        """Commit and close; return a message if another process prevented the last commit."""
        problem = self.commit(wait_s=_LAST_WAIT_S)
        self._claims.close()
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
        self._version = None  # forget the known misses: the failed look-up may have missed rows
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


# -- claims: which process asks a question -------------------------------------------------------------
# A claim is a lock of the operating system on one byte of a file next to the cache; the position of the byte follows
# from the question's key. The system releases the locks of a process that dies, so a claim never goes stale, and
# nothing is written. The locks belong to the process, so runs in one process also share the claimed positions.

_POSITIONS: Final = 2**62
_HELD: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EDEADLK})
"""Errors of a lock that another process holds."""


@dataclass(slots=True)
class _ClaimFile:
    """The open file of this process; closing any descriptor of it would release all locks of the process."""

    number: int
    claimed: dict[int, Claims] = field(default_factory=dict["int", "Claims"])
    """Position → the run of this process that claimed it."""
    users: int = 0


_files: Final[dict[tuple[int, str], _ClaimFile]] = {}
"""By process, since a child does not inherit the locks, and path."""
_guard: Final = threading.Lock()


class Claims:
    """The claims of one run. Without a file that can be locked, every question can be claimed."""

    def __init__(self, path: Path) -> None:
        """`path`: the file to lock; it is created with the first claim."""
        self._name = (os.getpid(), os.path.realpath(path))
        self._file: _ClaimFile | None = None
        self._closed = False

    def take(self, keys: Iterable[bytes]) -> bool:
        """Claim all of these questions; return False, and claim none, if another run has claimed one of them."""
        taken: list[int] = []
        with _guard:
            file = None if self._closed else self._file or self._open()
            if file is None:
                return True
            for position in sorted(_positions(keys)):  # in one order, so that two runs cannot block each other
                owner = file.claimed.get(position)
                if owner is self:
                    continue
                if owner is None:
                    try:
                        _lock(file.number, position)
                    except OSError as error:
                        if error.errno not in _HELD:  # the file system has no locks
                            continue
                    else:
                        file.claimed[position] = self
                        taken += (position,)
                        continue
                self._drop(taken)
                return False
        return True

    def drop(self, keys: Iterable[bytes]) -> None:
        """Give up the claims of these questions; those that are not claimed are ignored."""
        with _guard:
            self._drop(_positions(keys))

    def close(self) -> None:
        """Give up all claims. Every question can be claimed from now on."""
        with _guard:
            self._closed = True
            file = self._file
            if file is not None:
                self._drop([position for position, owner in file.claimed.items() if owner is self])
                self._file = None
                file.users -= 1
                if not file.users:
                    _files.pop(self._name, None)
                    os.close(file.number)

    def _open(self) -> _ClaimFile | None:
        """Return the open file; None in a directory that cannot be written, where questions are not claimed."""
        file = self._file or _files.get(self._name)
        if file is None:
            try:
                flags, mode = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), file_mode(self._name[1])
                number = os.open(self._name[1], flags, mode)
            except OSError:
                return None
            file = _files[self._name] = _ClaimFile(number)
        if self._file is None:
            file.users += 1
            self._file = file
        return file

    def _drop(self, positions: Iterable[int]) -> None:
        file = self._file
        for position in positions:
            if file is not None and file.claimed.get(position) is self:
                del file.claimed[position]
                _unlock(file.number, position)


def _positions(keys: Iterable[bytes]) -> list[int]:
    return [int.from_bytes(key[:8], "big") % _POSITIONS for key in keys]


if sys.platform == "win32":
    import msvcrt

    def _lock(number: int, position: int) -> None:
        os.lseek(number, position, os.SEEK_SET)
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)

    def _unlock(number: int, position: int) -> None:
        os.lseek(number, position, os.SEEK_SET)
        msvcrt.locking(number, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(number: int, position: int) -> None:
        fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)

    def _unlock(number: int, position: int) -> None:
        fcntl.lockf(number, fcntl.LOCK_UN, 1, position)
