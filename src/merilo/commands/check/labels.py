"""The label files for a check: the user's files, or the sample that ships with merilo."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.data.labels import read_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from merilo.data.labels import Labelled

SAMPLE: Final = ("examples", "labels")
"""Path of the labelled sample inside the package."""


@dataclass(frozen=True, slots=True)
class LabelFile:
    """A label file that was read."""

    name: str
    sha256: str
    records: int


def label_files(paths: Sequence[str | PathLike[str]]) -> list[tuple[LabelFile, tuple[Labelled, ...]]]:
    """Read each file; the sample in the package if no file is named. Raises what `read_labels` raises."""
    if paths:
        return _files(map(Path, paths))
    with as_file(files("merilo").joinpath(*SAMPLE)) as folder:
        return _files(sorted(folder.glob("*.jsonl.gz")))


def _files(paths: Iterable[Path]) -> list[tuple[LabelFile, tuple[Labelled, ...]]]:
    listed = list(paths)
    read_labels(listed)  # reading all together rejects ids that occur in two files
    found: list[tuple[LabelFile, tuple[Labelled, ...]]] = []
    for path in listed:
        records = read_labels([path])
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        found.append((LabelFile(path.name, digest, len(records)), records))
    return found
