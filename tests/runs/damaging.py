"""Ways in which a file gets damaged, and a child process that the system treats badly."""

import ctypes
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = 4096


def flip(data: bytearray, source: random.Random) -> None:
    """Turn one bit over."""
    data[source.randrange(len(data))] ^= 1 << source.randrange(8)


def flips(data: bytearray, source: random.Random) -> None:
    """Turn many bits over."""
    for _ in range(source.choice([10, 100, 2000])):
        flip(data, source)


def truncate(data: bytearray, source: random.Random) -> None:
    """Cut the file off, perhaps to nothing."""
    del data[source.randrange(len(data)) :]


def garbage(data: bytearray, source: random.Random) -> None:
    """Nothing of what was there."""
    data[:] = source.randbytes(source.randrange(1, 20_000))


def lost_page(data: bytearray, source: random.Random) -> None:
    """Zeros, or anything, in the place of one page."""
    start = source.randrange(len(data) // PAGE) * PAGE
    data[start : start + PAGE] = source.choice([bytes(PAGE), source.randbytes(PAGE)])


def bad_head(data: bytearray, source: random.Random) -> None:
    """One bit of the file's head turned over."""
    data[source.randrange(100)] ^= 1 << source.randrange(8)


WAYS: tuple[Callable[[bytearray, random.Random], None], ...] = (flip, flips, truncate, garbage, lost_page, bad_head)


def python(
    code: str, *arguments: object, file_limit: int | None = None, obeying: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own.

    `file_limit`: no file of it may become larger, in bytes. `obeying`: permissions bind it, also where the tests run as
    root.
    """

    def prepare() -> None:
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
        if obeying and os.geteuid() == 0:
            for capability in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, for what it executes
                ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP

    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        preexec_fn=prepare,
    )


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """`merilo` with these arguments, as `python`."""
    return python("from merilo.cli import main; main()", *arguments, **options)


def copied(path: Path, data: bytes, damage: Callable[[bytearray, random.Random], None], seed: int) -> None:
    """Write a damaged copy of `data`."""
    changed = bytearray(data)
    damage(changed, random.Random(seed))
    path.write_bytes(changed)
