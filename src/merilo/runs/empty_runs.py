"""Removal of the directory of a run that was stopped before anything was answered."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from merilo.errors import RunError
from merilo.runs.balance import balance_in
from merilo.runs.database import ERRORS, read_only
from merilo.runs.files import MANIFEST, RUN_FILES, STORE, SUMMARY, read_json_bytes
from merilo.runs.lock import RunLock
from merilo.runs.schema import STORE_SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

_ANSWERED: Final = (
    "SELECT EXISTS (SELECT 1 FROM exchanges) OR EXISTS (SELECT 1 FROM answers WHERE NOT cached)"
    " OR EXISTS (SELECT 1 FROM unfinished)"
)


def is_worthless(directory: Path) -> bool:
    """Return True if a stopped run has nothing to resume from: no answer, no score, no request that may be billed.

    The caller holds the run's lock. Answers from the cache do not count, because the next run finds them there. A
    directory with other files, such as an event log, is never worthless. For a finished run the result is meaningless.
    """
    try:
        if any(each.name not in RUN_FILES for each in directory.iterdir()):
            return False
        if not (directory / MANIFEST).exists():
            return True  # no question was asked before it was written
        with closing(read_only(directory / STORE, STORE_SCHEMA)) as db:
            (answered,) = db.execute(_ANSWERED).fetchone()
        balance = balance_in(directory)  # a request without a reply may have been billed: its charge must stay
        requests = balance.answered.requests + balance.unanswered.requests
        return not answered and not requests and not _scored(directory / SUMMARY)
    except (*ERRORS, RunError, OSError, ValueError, LookupError, TypeError):
        return False


def discard(directory: Path) -> bool:
    """Remove the directory of a stopped run if it is worthless; return True if it was removed."""
    with RunLock(directory):
        if not is_worthless(directory):
            return False
        shutil.rmtree(directory, ignore_errors=True)
    return not directory.exists()


def _scored(summary: Path) -> bool:
    if not summary.exists():
        return False
    found: Any = json.loads(read_json_bytes(summary))  # Any: JSON of unknown shape
    return any(row["scored"] for row in found["metrics"])
