"""The directory of a run: the one that the user named, a new one, one built in one step, or a copy of an address."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.data.remote import fetched_files, is_url, redacted, refuse_url
from merilo.errors import RunError
from merilo.runs.files import LABELS, LEDGER, MANIFEST, OUTCOMES, RUN_FILES, SEAL, STORE, SUMMARY, USAGE
from merilo.runs.lock import RunLock
from merilo.runs.publish import PART, sync_directory, write_file
from merilo.runs.seal import inspect_seal

if TYPE_CHECKING:
    from collections.abc import Generator
    from os import PathLike

RUNS = Path(".merilo") / "runs"
"""Directory of runs without a given place, relative to the working directory."""

_FILES_OF_OTHERS: Final = frozenset(".csv .htm .html .json .jsonl .md .parquet .pdf .tsv .txt .xlsx".split())
"""Suffixes of files that a user may expect instead of a run."""


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
    if made and (str(path) == "-" or path.suffix.lower() in _FILES_OF_OTHERS):
        raise RunError(
            f"A run is a directory, such as runs/{path.stem}, but {path} looks like a file. To write one later: merilo "
            "report RUN (HTML) or merilo export RUN --out FILE (a table)."
        )
    if not made and not (path / STORE).exists() and any(not each.name.startswith(".") for each in path.iterdir()):
        raise RunError(f"{path} holds other files and no run. Choose an empty or a new directory.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path} cannot be created ({error.strerror}). Choose another directory.") from error
    return path, made


def free_directory(name: str) -> Path:
    """Return a place for a new run named after the data and the time."""
    RUNS.mkdir(parents=True, exist_ok=True)
    ignore = RUNS.parent / ".gitignore"
    if not ignore.exists():
        write_file(ignore, "*\n")
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (RUNS / (stem if number == 1 else f"{stem}-{number}") for number in range(1, 1000))
    found = next((path for path in names if not path.exists()), None)
    if found is None:
        raise RunError(f"{RUNS} holds a thousand runs started in this second. Name the run's directory (--out).")
    return found


@contextmanager
def built(target: Path) -> Generator[Path]:
    """Yield a hidden, locked directory in which the block writes a finished run, which then moves to `target`.

    So a command that fails or is killed leaves no part of a run, and the same command finishes. A run with equal
    results that `target` already holds stays. Raises RunError for any other content, or if a file cannot be written.
    """
    try:
        _check_target(target)
        staged = target.with_name(f".{target.name}{PART}")
        _make(staged)
        try:
            with RunLock(staged):
                yield staged
            _settle(staged, target)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
    except (OSError, sqlite3.Error) as error:
        raise RunError(f"Cannot write {target} ({error}). Choose another directory (--out).") from error


def _check_target(path: Path) -> None:
    """Raise RunError for a directory that holds anything but a run, which the new one may equal."""
    if path.name in {"", ".."}:
        raise RunError(f"{path} does not name a new directory. Choose another (--out).")
    own = {*RUN_FILES, LABELS}
    if any(each.name not in own for each in path.iterdir()) if path.is_dir() else path.exists():
        raise RunError(f"{path} holds other files. Choose a new directory (--out).")
    path.absolute().parent.mkdir(parents=True, exist_ok=True)


def _make(staged: Path) -> None:
    """Create the directory in which a run is built; remove what a killed command has left there."""
    if staged.exists():
        if not staged.is_dir() or any(each.name not in RUN_FILES for each in staged.iterdir()):
            raise RunError(f"{staged} is in the way: the run is built there first. Move it, or choose another --out.")
        with RunLock(staged):  # raises while another command is writing
            shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(exist_ok=True)


def _settle(staged: Path, target: Path) -> None:
    """Move the finished run to its directory. If an equal run is there, that one stays."""
    if target.exists() and any(target.iterdir()):
        there, new = _results(target), _results(staged)
        if there is None or there != new:
            raise RunError(f"{target} already holds a run with other results. Choose a new directory (--out).")
        shutil.rmtree(staged, ignore_errors=True)
        return
    with suppress(FileNotFoundError):
        target.rmdir()  # an empty directory, which not every system replaces
    staged.rename(target)
    sync_directory(target.absolute().parent)


def _results(path: Path) -> str | None:
    found = inspect_seal(path)
    return None if found.broken or found.seal is None else found.seal.results


def _new_directory(name: str) -> Path:
    while True:
        with suppress(FileExistsError):  # another command took the name
            path = free_directory(name)
            path.mkdir()
            return path


_FILES: Final = (SEAL, MANIFEST, SUMMARY, USAGE, OUTCOMES, STORE, LABELS, LEDGER)


def local_run(path: str | PathLike[str]) -> Path:
    """Return the directory of a run; of an address, a copy that exists until this process ends.

    The caller compares it with its seal, as any run, so a file that was damaged on the way is found. Raises RunError if
    there is no finished run at the address.
    """
    if not isinstance(path, str) or not is_url(path):
        return Path(path)
    found = fetched_files(path, _FILES)
    if not (found / SEAL).exists():
        raise RunError(f"There is no finished run at {redacted(path)} (no {SEAL}).")
    return found
