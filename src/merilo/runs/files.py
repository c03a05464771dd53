"""The files in a run's directory: their names, and a check that each of them is a regular file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from merilo.errors import RunError
from merilo.runs.publish import PART

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST: Final = "manifest.json"
OUTCOMES: Final = "outcomes.jsonl"
TABLE: Final = "outcomes.parquet"
"""The outcomes as Parquet, instead of OUTCOMES (`runs/outcome_table.py`)."""
SUMMARY: Final = "summary.json"
USAGE: Final = "usage.json"
STORE: Final = "store.sqlite"
LABELS: Final = "labels.jsonl"
SEAL: Final = "seal.json"
LEDGER: Final = "ledger.jsonl"
BATCHES: Final = "batches.sqlite"
LOCK: Final = ".lock"

_WRITTEN: Final = (MANIFEST, OUTCOMES, TABLE, SUMMARY, USAGE, SEAL, STORE)
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


def check_regular(directory: Path) -> None:
    """Raise RunError if the name of a run file belongs to a directory, a pipe, a device or a dangling link.

    Opening a pipe would wait for ever. Raises OSError if the directory cannot be read.
    """
    with os.scandir(directory) as entries:
        wrong = sorted(entry.name for entry in entries if entry.name in _NAMES and not entry.is_file())
    if wrong:
        raise RunError(
            f"{directory / wrong[0]} is not a regular file. Remove it, or restore it from a copy of the run."
        )
