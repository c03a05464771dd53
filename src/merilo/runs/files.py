"""The files in a run's directory: their names, a check that each is a regular file, and bounded reading."""

from __future__ import annotations

import os
from functools import partial
from typing import IO, TYPE_CHECKING, Final

from merilo.data import json_records
from merilo.errors import RunError
from merilo.runs.publish import PART

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANIFEST: Final = "manifest.json"
OUTCOMES: Final = "outcomes.jsonl"
SUMMARY: Final = "summary.json"
USAGE: Final = "usage.json"
STORE: Final = "store.sqlite"
LABELS: Final = "labels.jsonl"
SEAL: Final = "seal.json"
LEDGER: Final = "ledger.jsonl"
BATCHES: Final = "batches.sqlite"
LOCK: Final = ".lock"
WATCH: Final = "watch.sqlite"
"""The state of a watch, in its own directory."""

_WRITTEN: Final = (MANIFEST, OUTCOMES, SUMMARY, USAGE, SEAL, STORE)
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
MAX_JSON_BYTES: Final = 2**26
"""Maximum bytes of a JSON file: a run of a million samples writes less than 1 MiB."""
MAX_LINE_BYTES: Final = 2**27
"""Maximum bytes of a line of outcomes or of a ledger."""
_SPARSE_BYTES: Final = 2**30
"""Bytes from which a file is refused if it occupies less than a thousandth of them on the disk."""


def check_regular(directory: Path, *, writing: bool = False) -> None:
    """Raise RunError if the name of a run file belongs to a directory, a pipe, a device, a dangling link or a file of
    holes.

    Opening a pipe would wait for ever. `writing`: also refuse links, since
    they may lead to any file of the user. Raises OSError if the directory cannot be read.
    """
    with os.scandir(directory) as entries:
        files = sorted((entry for entry in entries if entry.name in _NAMES), key=lambda entry: entry.name)
    for entry in files:
        linked = writing and entry.is_symlink()
        fault = "is not a regular file" if linked or not entry.is_file() else ""
        if not fault and _is_sparse(found := entry.stat()):
            fault = f"has {found.st_size:,} bytes, nearly all of them holes"
        if fault:
            raise RunError(f"{directory / entry.name} {fault}. Remove it, or restore it from a copy of the run.")


def _is_sparse(found: os.stat_result) -> bool:
    blocks: int | None = getattr(found, "st_blocks", None)  # Windows has none
    return blocks is not None and found.st_size > _SPARSE_BYTES and blocks * 512 < found.st_size / 1_000


def read_json_bytes(path: Path) -> bytes:
    """Return the content of a JSON file of a run. Raises OSError, and ValueError if it is too large."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_JSON_BYTES:
            raise ValueError(f"it has {size:,} bytes, more than {MAX_JSON_BYTES:,}")
        content = file.read()
    check_values(content)
    return content


def bounded_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file with their ends. Raises ValueError for one that is too long to be merilo's."""
    for line in iter(partial(file.readline, MAX_LINE_BYTES + 1), b""):
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"a line has more than {MAX_LINE_BYTES:,} bytes")
        check_values(line)
        yield line


def check_values(content: bytes | str) -> None:
    """Raise ValueError for JSON whose values would take many times its size: each empty list takes 64 bytes."""
    if len(content) > json_records.MAX_VALUES:
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        if json_records.has_too_many_values(text):
            raise ValueError(f"it has more than {json_records.MAX_VALUES:,} values")
