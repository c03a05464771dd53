"""The lines of a ledger file: JSON arrays whose last item is a checksum of all lines so far."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from merilo.runs.files import bounded_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SEAL_BYTES: Final = len(b',"00000000"]')
_DECODE: Final = json.JSONDecoder().raw_decode  # a third of the time of json.loads, for lines whose checksum holds


def entries(path: Path) -> Iterator[tuple[str, list[Any]]]:  # Any: JSON
    """Yield the entries of a ledger file, each as it is written and as values. Raises ValueError."""
    sealed = 0
    with path.open("rb") as file:
        for line in bounded_lines(file):
            if not line.endswith(b"\n"):  # half a line of a killed process
                return
            sealed, body = checked(line[:-1], sealed)
            yield body, values_of(body)


def checked(line: bytes, before: int) -> tuple[int, str]:
    """Return the checksum of a line and the line up to it. `before`: the checksum of the line before."""
    body = line[:-_SEAL_BYTES]
    found = crc32(body, before)
    if line[-_SEAL_BYTES:] != b',"%08x"]' % found:
        raise ValueError("wrong checksum")
    return found, body.decode()


def values_of(body: str) -> list[Any]:  # Any: JSON
    """Return the items of a line before its checksum. Raises ValueError."""
    found: list[Any] = _DECODE(f"{body}]")[0]
    return found
