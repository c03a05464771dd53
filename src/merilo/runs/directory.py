"""The directory of a run: the one that the user named, or a new one."""

from __future__ import annotations

import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from merilo.data.remote import refuse_url
from merilo.errors import RunError
from merilo.runs.files import STORE
from merilo.runs.lock import RunLock
from merilo.runs.publish import PART, write_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

RUNS = Path(".merilo") / "runs"
"""Directory of runs without a given place, relative to the working directory."""
_STAGED_BYTES = 8
"""Random bytes in the name of a staging directory."""
_SETTLING_S = 60.0
"""Seconds after which an unlocked staging directory counts as left behind by a killed command."""


def run_directory(out: str | PathLike[str] | None, name: str) -> tuple[Path, bool]:
    """Return the run's directory, and whether it was just created; None creates one named after the data and the time.

    Raises RunError for a path that cannot hold a run.
    """
    if out is None:
        return _new_directory(name), True
    refuse_url(out)
    path = Path(out)
    if path.is_file():
        raise RunError(f"{path} is a file, but a run needs a directory. Choose another name.")
    made = not path.exists()
    if not made and not (path / STORE).exists() and any(not each.name.startswith(".") for each in path.iterdir()):
        raise RunError(f"{path} holds other files and no run. Choose an empty or a new directory.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path} cannot be created ({error.strerror}). Choose another directory.") from error
    return path, made


def staging_directory() -> Path:
    """Return a new hidden directory for a run; `settle` moves it to its final place once the run is finished.

    Staging directories of killed commands are removed.
    """
    _make_runs()
    for left in RUNS.glob(f".{'[0-9a-f]' * 2 * _STAGED_BYTES}{PART}"):
        with suppress(RunError, OSError):
            if time.time() - left.stat().st_mtime > _SETTLING_S:
                with RunLock(left):  # raises if its command is still running
                    shutil.rmtree(left, ignore_errors=True)
    staged = RUNS / f".{secrets.token_hex(_STAGED_BYTES)}{PART}"
    staged.mkdir()
    return staged


def settle(staged: Path, name: str) -> Path:
    """Move a finished run from its staging directory to one named after the data and the time; return that one."""
    for path in _free_names(name):
        with suppress(OSError):  # another command took the name
            staged.rename(path)
            return path
    raise _too_many()


def _new_directory(name: str) -> Path:
    _make_runs()
    for path in _free_names(name):
        with suppress(FileExistsError):
            path.mkdir()
            return path
    raise _too_many()


def _make_runs() -> None:
    RUNS.mkdir(parents=True, exist_ok=True)
    ignore = RUNS.parent / ".gitignore"
    if not ignore.exists():
        write_file(ignore, "*\n")


def _free_names(name: str) -> Iterator[Path]:
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (RUNS / (stem if number == 1 else f"{stem}-{number}") for number in range(1, 1000))
    return (path for path in names if not path.exists())


def _too_many() -> RunError:
    return RunError(f"{RUNS} holds a thousand runs started in this second. Name the run's directory (--out).")
