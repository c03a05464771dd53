"""Where a run lies: the directory that was named, or a new one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.errors import RunError
from merilo.runs.ledger import LEDGER
from merilo.runs.lock import LOCK
from merilo.runs.publish import PART, write_file
from merilo.runs.run import MANIFEST, OUTCOMES, SEAL, STORE, SUMMARY, USAGE

if TYPE_CHECKING:
    from os import PathLike

RUNS = Path(".merilo") / "runs"
"""Runs that were not given a place, under the working directory."""
_WRITTEN: Final = (MANIFEST, OUTCOMES, SUMMARY, USAGE, SEAL, STORE)
RUN_FILES: Final = (
    *_WRITTEN,
    *(name + PART for name in _WRITTEN),
    *(name + suffix for name in (STORE, STORE + PART) for suffix in ("-wal", "-shm", "-journal")),
    LOCK,
    f"{LOCK}-journal",
    LEDGER,
)
"""The files that merilo writes in a run's directory, those of a killed command included; attached labels are not."""


def run_directory(out: str | PathLike[str] | None, name: str) -> tuple[Path, bool]:
    """The run's directory, and whether it was made just now; None makes one named after the data and the time.

    Raises RunError for a place that cannot hold a run.
    """
    if out is None:
        return _new_directory(name), True
    path = Path(out)
    if path.is_file():
        raise RunError(f"{path} is a file; a run is a directory: choose another name.")
    made = not path.exists()
    if not made and not (path / STORE).exists() and any(not each.name.startswith(".") for each in path.iterdir()):
        raise RunError(f"{path} holds other files and no run; choose an empty or a new directory.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path} cannot be made ({error.strerror}); choose another directory.") from error
    return path, made


def _new_directory(name: str) -> Path:
    RUNS.mkdir(parents=True, exist_ok=True)
    ignore = RUNS.parent / ".gitignore"
    if not ignore.exists():
        write_file(ignore, "*\n")
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in range(1, 1000):
        path = RUNS / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise RunError(f"{RUNS} holds a thousand runs of this second; name the run with out (--out).")
