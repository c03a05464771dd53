"""Claims: which questions the processes that share a verdict cache have in flight, so that each is asked once.

A claim is a lock of the operating system on one byte of a file next to the cache; the position of the byte follows
from the question's key. The system releases the locks of a process that dies, so a claim never goes stale, and nothing
is written. The locks belong to the process, so runs in one process also share the claimed positions.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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
                number = os.open(self._name[1], os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
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
