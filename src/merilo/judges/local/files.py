"""The files of a local model: weights outside of the ONNX file, and the digests of all of them."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from hashlib import sha256
from mmap import ACCESS_READ, mmap
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from merilo.judges.local.find import FoundModel

_READ_BYTES: Final = 2**20
_LOCATION: Final = re.compile(rb"\x0a\x08location\x12([\x01-\x7f])")
"""How a protobuf writes the key `location` of a tensor's external data, and the length of the file name after it."""
_MAX_EXTERNAL: Final = 1_000


def external_files(model: Path) -> tuple[Path, ...]:
    """Return the files with weights that an ONNX file names, sorted.

    Raises UsageError for a name that is not in the model's folder, or a file that is missing.
    """
    with model.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise UsageError(f"{model} is empty.")
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            names = {content[match.end() : match.end() + match[1][0]] for match in _LOCATION.finditer(content)}
    if len(names) > _MAX_EXTERNAL:
        raise UsageError(f"{model} has {len(names):,} external files; at most {_MAX_EXTERNAL:,} are supported.")
    return tuple(_external(model, name) for name in sorted(names))


def _external(model: Path, raw: bytes) -> Path:
    name = raw.decode("utf-8", "replace")
    if (
        len(PurePosixPath(name).parts) != 1
        or name in {".", ".."}
        or "\\" in name
        or ":" in name
        or not name.isprintable()
    ):
        raise UsageError(f"{model} reads weights from {name!r}, which is not a file in its folder.")
    path = model.parent / name
    if not path.is_file():
        raise UsageError(f"{path} is missing: {model.name} stores its weights there.")
    return path


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file as hex digits."""
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def digests(found: FoundModel) -> Mapping[str, str]:
    """Return the SHA-256 of each file that the model uses, by its place in the model's folder.

    Raises UsageError if a file is missing or differs from `judge.lock`. A file is read again only if it has changed.
    """
    result: dict[str, str] = {}
    for path in (found.model, *external_files(found.model), found.tokenizer):
        name = path.relative_to(found.folder).as_posix()
        status = path.stat()
        result[name] = _digest_of(path, status.st_size, status.st_mtime_ns)
        expected = found.lock.files.get(name) if found.lock is not None else None
        if expected not in {None, result[name]}:
            raise UsageError(
                f"{path} differs from the file that was fetched. Fetch it again: merilo judge check local:{found.name}."
            )
    return result


@lru_cache(maxsize=256)
def _digest_of(path: Path, size: int, modified_ns: int) -> str:
    del size, modified_ns
    return file_digest(path)
