"""The files in a run's directory: names, bounded reading, atomic replacement, the lock, and errors of damaged files.

Atomic: a reader, or a crash at any time, finds the old content or the new content, never a part. The new content goes
to ``NAME.part`` next to the file, is flushed to the disk and renamed. A part file that a killed process left behind is
overwritten. If a running process is writing the part file, it is locked, and the next writer waits.

The lock keeps two processes from writing the same run. The operating system frees it when a process dies.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import sys
import time
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self

from merilo.errors import DataError, RunError
from merilo.runs.database import ERRORS, FORMAT, StoreProblem, connected, error_text, file_mode, problem_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from types import TracebackType

PART: Final = ".part"
"""Ending of the file in which the new content of a file is prepared."""
MANIFEST: Final = "manifest.json"
OUTCOMES: Final = "outcomes.jsonl"
SUMMARY: Final = "summary.json"
USAGE: Final = "usage.json"
STORE: Final = "store.sqlite"
INPUTS: Final = "inputs"
"""The name in a store of the digest of what a finished run was made of."""
LABELS: Final = "labels.jsonl"
SEAL: Final = "seal.json"
LEDGER: Final = "ledger.jsonl"
BATCHES: Final = "batches.sqlite"
LOCK: Final = ".lock"
WATCH: Final = "watch.sqlite"
"""The state of a watch, in its own directory."""
CALLS: Final = "calls"
"""The folder with the calls of an application, in the directory of a diagnosis."""

_WRITTEN: Final = (MANIFEST, OUTCOMES, SUMMARY, USAGE, SEAL, STORE)
RUN_FILES: Final = (
    *_WRITTEN,
    *(name + PART for name in _WRITTEN),
    *(name + suffix for name in (STORE, STORE + PART, BATCHES) for suffix in ("-wal", "-shm", "-journal")),
    LOCK,
    f"{LOCK}-journal",
    LEDGER,
    BATCHES,
)
"""Files that merilo writes in a run's directory, including those of a killed command; attached labels are not among
them."""
_NAMES: Final = frozenset({*RUN_FILES, LABELS, LABELS + PART})
MAX_JSON_BYTES: Final = 2**26
"""Maximum bytes of a JSON file: a run of a million samples writes less than 1 MiB."""
MAX_LINE_BYTES: Final = 2**27
"""Maximum bytes of a line of outcomes or of a ledger."""
_PART_WAIT_S: Final = 10.0
_POLL_S: Final = 0.01
_LOCK_WAIT_S: Final = 0.2
"""Seconds to wait for `is_locked` of another process, which holds the lock for less than a millisecond."""


def check_regular(directory: Path, *, writing: bool = False) -> None:
    """Raise RunError if the name of a run file belongs to a directory, a pipe, a device or a dangling link.

    Opening a pipe would wait for ever. `writing`: also refuse links, since they may lead to any file of the user.
    Raises OSError if the directory cannot be read.
    """
    with os.scandir(directory) as entries:
        files = sorted((entry for entry in entries if entry.name in _NAMES), key=lambda entry: entry.name)
    for entry in files:
        if (writing and entry.is_symlink()) or not entry.is_file():
            raise RunError(
                f"{directory / entry.name} is not a regular file. Remove it, or restore it from a copy of the run."
            )


def read_json_bytes(path: Path) -> bytes:
    """Return the content of a JSON file of a run. Raises OSError, and ValueError if it is too large."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_JSON_BYTES:
            raise ValueError(f"it has {size:,} bytes, more than {MAX_JSON_BYTES:,}")
        return file.read()


def bounded_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file with their ends. Raises ValueError for one that is too long to be merilo's."""
    for line in iter(partial(file.readline, MAX_LINE_BYTES + 1), b""):
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"a line has more than {MAX_LINE_BYTES:,} bytes")
        yield line


# -- replacement in one step -----------------------------------------------------------------------------


def part_of(path: Path) -> Path:
    """Return the path at which the new content of a file is prepared."""
    return path.with_name(path.name + PART)


@contextmanager
def staged(path: Path) -> Generator[IO[bytes]]:
    """Yield a binary file whose content replaces `path` once the block ends without an error.

    A device or a pipe is written directly. Raises OSError if the file cannot be written, RunError if another process
    is writing it for too long.
    """
    target = _regular(path)
    if target is None:
        with path.open("wb") as device:
            yield device
        return
    part = part_of(target)
    out = _locked(part, target)
    try:
        with out:
            yield out
            flush(out)
            if target.exists():
                part.chmod(target.stat().st_mode & 0o777)
            if sys.platform == "win32":
                out.close()  # an open file cannot be renamed there
            part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def write_file(path: Path, content: bytes | str) -> None:
    """Replace a file by this content, text as UTF-8. Raises the errors of `staged`."""
    with staged(path) as out:
        out.write(content.encode("utf-8", "replace") if isinstance(content, str) else content)


@contextmanager
def writing(path: str | PathLike[str], advice: str = "choose another file") -> Generator[None]:
    """Raise RunError for an error of the file system in this block: `path` cannot be written; then the advice."""
    try:
        yield
    except OSError as error:
        raise RunError(f"Cannot write {path} ({error.strerror or error}); {advice}.") from error


def create_file(path: Path, content: bytes) -> None:
    """Write a new file. If it exists with exactly this content, it is left unchanged.

    Raises FileExistsError if it has other content, and the errors of `staged`.
    """
    if path.exists():
        if path.is_file() and path.read_bytes() == content:
            return
        raise FileExistsError(path)
    with staged(path) as out:
        if path.exists():  # another process wrote it meanwhile
            raise FileExistsError(path)
        out.write(content)


def flush(out: IO[bytes]) -> None:
    """Write the data of an open file that Python and the system buffer to the disk."""
    out.flush()
    os.fsync(out.fileno())


def sync_directory(path: Path) -> None:
    """Write the names in a directory to the disk, on systems that can."""
    if sys.platform == "win32":
        return
    with suppress(OSError):  # some network file systems refuse; the rename is still atomic
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _regular(path: Path) -> Path | None:
    """Return the file to replace, with links resolved; None for a device, a pipe or a terminal."""
    if path.exists() and not path.is_file():
        return None
    if path.is_relative_to("/dev") or path.is_relative_to("/proc"):  # /dev/stdout may lead to a regular file
        return None
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _locked(part: Path, target: Path) -> IO[bytes]:
    """Open the part file, empty and locked against other processes. Raises RunError if one holds it for too long."""
    until = time.monotonic() + _PART_WAIT_S
    while True:
        flags = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)  # a link could lead to any file
        number = os.open(part, os.O_RDWR | os.O_CREAT | flags, file_mode(part))
        out: IO[bytes] = os.fdopen(number, "wb")
        with suppress(FileNotFoundError):  # another writer may have renamed the file that was just locked
            if _lock(number) and os.path.samestat(os.fstat(number), part.lstat()):
                out.truncate(0)
                return out
        out.close()
        if time.monotonic() > until:
            raise RunError(f"{target} is being written by another process. Wait for it and try again.")
        time.sleep(_POLL_S)


def _lock(number: int) -> bool:
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)  # a file system without locks
    return True


# -- the lock of a run ------------------------------------------------------------------------------------


class RunLock:
    """Lock held while a run is written; a context manager. Raises RunError on entry if another process holds it.

    It is an SQLite database, because SQLite's file locks work the same on every system and never go stale.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._db: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        with suppress(OSError):  # a directory that cannot be read is reported below
            check_regular(self._directory, writing=True)
        try:
            self._db = connected(self._directory / LOCK, (), wait_s=_LOCK_WAIT_S)
            self._db.execute("BEGIN EXCLUSIVE")
        except ERRORS as error:
            if self._db is not None:
                self._db.close()
            raise self._error(error) from error
        return self

    def _error(self, error: Exception) -> RunError:
        where, problem = self._directory, problem_of(error)
        if problem is StoreProblem.BUSY:
            return RunError(f"{where} is being written by another process. Wait for it or choose another directory.")
        if problem is StoreProblem.DAMAGED:
            return RunError(f"{where / LOCK} is not a lock file of merilo ({error}). Delete it and try again.")
        return RunError(f"{where} cannot be written ({error}). Choose another directory (--out).")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._db is not None:
            self._db.close()


def is_locked(directory: Path) -> bool:
    """Return True if a process is writing the run. Changes no file; a lock file that is damaged locks nothing."""
    if not (directory / LOCK).is_file():  # opening a pipe would wait for ever
        return False
    try:
        with closing(connected(directory / LOCK, (), wait_s=0.0, reading=True)) as db:
            db.execute("SELECT 1 FROM sqlite_master")
    except ERRORS as error:
        return problem_of(error) is StoreProblem.BUSY
    return False


# -- errors: which file, what is wrong with it, and what to do --------------------------------------------

_SENTENCES: Final[Mapping[StoreProblem, str]] = {
    StoreProblem.BUSY: "{path} is being written by another process. Wait for it and try again.",
    StoreProblem.NOT_WRITABLE: "{path} cannot be opened or written ({error}). Make it writable or choose another "
    "directory.",
    StoreProblem.DISK: "{path} cannot be written or read ({error}): the disk is full or fails. Free some space and "
    "repeat the command to resume; the answers so far are stored.",
    StoreProblem.DAMAGED: "{path} is damaged ({error}). Start a new run in another directory (--out); answers in the "
    "verdict cache are reused.",
}


class StoreErrorContext(AbstractContextManager[Any]):  # Any: nothing uses what it yields
    """Context manager that turns an error in its block into a RunError and rolls back an open transaction."""

    __slots__ = ("_db", "_path")

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, sqlite3.Error | ValueError | TypeError | KeyError | DataError | RecursionError):
            with suppress(*ERRORS):
                self._db.rollback()
            raise store_error(self._path, error) from error


def no_run(path: Path, lacking: str) -> RunError:
    """Return the error for a path without a run: a file, nothing at all, or a directory that lacks a file."""
    if path.is_file():
        return RunError(f"{path} is a file, not a run. To evaluate it: merilo run {path}")
    if not path.exists():
        return RunError(f"No such run: {path}. To list runs: merilo runs")
    return RunError(f"Not a run directory: {path} (no {lacking}).")


def other_format_error(path: Path, found: object) -> RunError:
    """Return the error for a run or a store of another format."""
    return RunError(f"{path} has format {found}; this merilo reads format {FORMAT}. Use the merilo that wrote it.")


def missing_text_error(path: Path, sample: str) -> RunError:
    """Return the error for a run with outcomes of a sample that its store does not contain."""
    return RunError(f"{path} is damaged: it has outcomes of sample {sample!r}, but not the sample.")


def store_error(path: Path, error: Exception) -> RunError:
    """Return the RunError for an error of SQLite or for damaged content."""
    problem = problem_of(error) if isinstance(error, sqlite3.Error) else StoreProblem.DAMAGED
    return RunError(_SENTENCES[problem].format(path=path, error=error_text(error)))


def truncated_error(path: Path, done: int, outcome_samples: int) -> RunError:
    """Return the error for a run whose outcomes are of more or fewer samples than its summary states."""
    return RunError(
        f"{path} is damaged: its summary covers {done:,} samples, its outcomes {outcome_samples:,}. Copy the whole run "
        "again, or repeat its command with this directory (--out)."
    )


@contextmanager
def reading_outcomes(path: Path) -> Generator[None]:
    """Turn an error in the block, which reads the outcomes at `path`, into a RunError."""
    try:
        yield
    except FileNotFoundError:
        raise unwritten_error(path) from None
    except (OSError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise damaged_error(path, error) from error


def unwritten_error(path: Path) -> RunError:
    """Return the error for a file that a stopped run has not written yet."""
    return RunError(
        f"{path} does not exist: the run was stopped before writing it. "
        f"Repeat its command with --out {shlex.quote(str(path.parent))} to resume."
    )


def damaged_error(path: Path, why: object) -> RunError:
    """Return the error for a file of a run that is damaged or, if `why` is an OSError, cannot be read."""
    fault = "cannot be read" if isinstance(why, OSError) else "is damaged"
    return RunError(f"{path} {fault} ({why}). Repeat the command that wrote the run, with the same directory.")
