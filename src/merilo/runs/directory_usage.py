"""Requests of a run directory that is not open: their cost, means for estimates, and whether there are any.

The directory of a run that was stopped before anything was answered is removed.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.errors import RunError
from merilo.runs.database import ERRORS, read_only
from merilo.runs.files import LEDGER, MANIFEST, RUN_FILES, STORE, SUMMARY
from merilo.runs.ledger import Balance, Ledger
from merilo.runs.lock import RunLock
from merilo.runs.manifest import read_summary
from merilo.runs.schema import STORE_SCHEMA
from merilo.runs.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def balance_in(directory: Path) -> Balance:
    """Return the requests and spending of the run in this directory; empty if there is no run. Raises RunError."""
    if not (directory / STORE).exists():
        return Balance()
    with closing(Store.read(directory / STORE)) as store:
        lines = store.ledger_lines
        if lines or (directory / LEDGER).exists():
            return Ledger.read(directory / LEDGER, lines=lines).balance
        return Balance()


_ANSWERED: Final = (
    "SELECT EXISTS (SELECT 1 FROM exchanges) OR EXISTS (SELECT 1 FROM answers WHERE NOT cached)"
    " OR EXISTS (SELECT 1 FROM unfinished)"
)


def is_worthless(directory: Path) -> bool:
    """Return True if a stopped run has nothing to resume from: no answer, no score, no request that may be billed.

    The caller holds the run's lock. Answers from the cache do not count, because the next run finds them there. A
    directory with other files is never worthless. For a finished run the result is meaningless.
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
        return not (answered or requests or _scored(directory / SUMMARY))
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
    return summary.exists() and any(row.scored for row in read_summary(summary).metrics)


LEAST = 10
"""Minimum number of conversations through a rubric whose means are used to predict the next ones."""


@dataclass(frozen=True, slots=True)
class MeasuredUsage:
    """Means over the conversations of one judge through one rubric, re-asks included."""

    conversations: int
    requests: float
    input_tokens: float
    output_tokens: float
    seconds: float


def measured_in(store: Path) -> Mapping[tuple[str, bytes], MeasuredUsage]:
    """Return means by judge and digest of the rubric, if there are enough conversations and all tokens are known.

    Empty if the store cannot be read.
    """
    statement = (
        "SELECT judge, rubric, count(*), sum(requests), sum(input_tokens), sum(output_tokens), sum(seconds)"
        " FROM exchanges WHERE requests > 0 GROUP BY judge, rubric"
        " HAVING count(*) >= ? AND count(input_tokens) = count(*) AND count(output_tokens) = count(*)"
    )
    try:
        with closing(read_only(store, STORE_SCHEMA)) as db:
            rows = db.execute(statement, (LEAST,)).fetchall()
    except ERRORS:
        return {}
    return {
        (judge, rubric): MeasuredUsage(count, *(total / count for total in totals))
        for judge, rubric, count, *totals in rows
    }
