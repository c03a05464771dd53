"""Conversion of the outcomes of a finished run between JSON Lines and Parquet. Its results do not change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.data.remote import refuse_url
from merilo.errors import RunError, UsageError
from merilo.runs.files import OUTCOMES
from merilo.runs.lock import RunLock
from merilo.runs.outcome_lines import as_table, is_table, outcome_lines
from merilo.runs.publish import part_of
from merilo.runs.run import Run
from merilo.runs.seal import publish, recover

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path


def convert_run(run: str | PathLike[str], form: str) -> Path:
    """Store the outcomes of a run as "jsonl" or "parquet"; return their file. Does nothing if they have that form.

    Raises UsageError for another form, without pyarrow, or for a run without a seal; RunError if it cannot be read or
    written.
    """
    refuse_url(run)
    wanted = bool(as_table(form))
    found = Run.open(run)
    if not found.sealed:
        raise UsageError(f"{found.path} has no seal. Check it and seal it first: merilo verify {found.path}")
    with RunLock(found.path):
        recover(found.path)
        try:
            there = found.file(OUTCOMES)
            if is_table(there) != wanted:
                with part_of(found.path / OUTCOMES).open("wb") as out:
                    out.writelines(outcome_lines(there))
                publish(found.path, {}, streamed=True, same=True, table=wanted)
        except (OSError, ValueError) as error:
            recover(found.path)  # removes the part files, which may have filled the disk
            raise RunError(f"Cannot convert {found.path} ({error}). Its outcomes were not changed.") from error
    return Run.open(found.path).file(OUTCOMES)
