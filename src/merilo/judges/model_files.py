"""The files of the embedded judge in the package, held to the digests that were written down when they were made."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import Final

from merilo.errors import DataError

LOCK: Final = "model.lock"
"""A line `SHA-256  name` for each file, as sha256sum writes it. The weights hold a digest of their own."""


def model_file(name: str) -> bytes:
    """What a file of the model holds. Raises DataError where it is not there or not what was shipped."""
    folder = files("merilo.judges")
    try:
        content = folder.joinpath(name).read_bytes()
        lines = folder.joinpath(LOCK).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"A file of the embedded judge cannot be read ({error}); install merilo anew.") from error
    if f"{sha256(content).hexdigest()}  {name}" not in lines:
        raise DataError(
            f"{folder.joinpath(name)}, a file of the embedded judge, is not what was shipped; install merilo anew."
        )
    return content
