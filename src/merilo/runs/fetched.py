"""Finished runs at an address, such as s3://bucket/runs/first: copied to a temporary directory, then read there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.data.remote import fetched_files, is_url, redacted
from merilo.errors import RunError
from merilo.runs.files import LABELS, LEDGER, MANIFEST, OUTCOMES, SEAL, STORE, SUMMARY, USAGE

if TYPE_CHECKING:
    from os import PathLike

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
