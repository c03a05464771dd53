"""The packaged files of the embedded judge, checked against the digests recorded when they were built."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import Final

from merilo.errors import DataError

LOCK: Final = "model.lock"
"""One line `SHA-256  name` per file, as sha256sum writes it. The weights file contains its own digest."""


def model_file(name: str) -> bytes:
    """Return the content of a file of the model. Raises DataError if it is missing or differs from the shipped one."""
    folder = files("merilo.judges")
    try:
        content = folder.joinpath(name).read_bytes()
        lines = folder.joinpath(LOCK).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read a file of the embedded judge ({error}); reinstall merilo.") from error
    # A damaged or edited model would give plausible numbers, so it must not be used silently.
    if f"{sha256(content).hexdigest()}  {name}" not in lines:
        raise DataError(
            f"{folder.joinpath(name)}, a file of the embedded judge, differs from the shipped one; reinstall merilo."
        )
    return content
