"""Atomic file replacement: a reader, or a crash at any time, finds the old content or the new content, never a part.

The new content goes to ``NAME.part`` next to the file, is flushed to the disk and renamed. A part file that a killed
process left behind is overwritten. If a running process is writing the part file, it is locked, and the next writer
waits.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from merilo.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Generator

PART: Final = ".part"
_WAIT_S: Final = 10.0
_POLL_S: Final = 0.01


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
    until = time.monotonic() + _WAIT_S
    while True:
        number = os.open(part, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        out: IO[bytes] = os.fdopen(number, "wb")
        if _lock(number) and _is_at(number, part):  # another writer may have renamed the file that was just locked
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
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _is_at(number: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    own = os.fstat(number)
    return (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)
