"""The file of the encoder's weights: tensors and graphs in one safetensors file, read by memory map.

The layout is that of the `safetensors` format (8 bytes of length, a JSON header, the tensors without a gap), so other
tools can open it. Its `__metadata__` holds `sha256`, the digest of all bytes behind the header, and `model`, a JSON
object about the model. Nothing in it is code that Python would run.
"""

from __future__ import annotations

import json
import mmap
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Self, cast

import numpy as np

from merilo.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_LENGTH_BYTES: Final = 8
_MOST_HEADER_BYTES: Final = 1 << 20
_TYPES: Final[Mapping[str, type[np.generic]]] = {"F32": np.float32, "I8": np.int8, "U8": np.uint8}


@dataclass(frozen=True, eq=False)
class Weights:
    """What a weights file holds; the arrays are views into the file and cannot be written."""

    fingerprint: str
    """SHA-256 of the header, which names that of the rest: changes with any byte of the file."""
    model: Mapping[str, Any]  # Any: parsed JSON
    """What the file says of its model: sizes, names of heads, calibration."""
    _tensors: Mapping[str, NDArray[Any]] = field(repr=False)  # Any: the type stands in the file

    @classmethod
    def read(cls, path: Path) -> Self:
        """The weights in a file, checked against the digest in it: some 20 ms for 27 MB.

        Raises DataError when the file is cut short, changed or no such file.
        """
        try:
            with path.open("rb") as file:
                try:
                    content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
                except ValueError:  # an empty file cannot be mapped
                    content = memoryview(b"")
            return cls._of(content)
        except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
            told = f"{path} is no whole file of encoder weights ({error}); install merilo anew, or export it again."
            raise DataError(told) from error

    @classmethod
    def _of(cls, content: memoryview) -> Self:
        begin = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
        if not _LENGTH_BYTES < begin <= min(len(content), _MOST_HEADER_BYTES):
            raise ValueError("its header is missing")
        header: dict[str, Any] = json.loads(bytes(content[_LENGTH_BYTES:begin]))
        told = header.pop("__metadata__")
        found = sha256(content[begin:]).hexdigest()
        if found != told["sha256"]:
            raise ValueError(f"the SHA-256 of its tensors is {found}, expected {told['sha256']}")
        model: dict[str, Any] = json.loads(told["model"])
        tensors = {name: _tensor(each, content[begin:]) for name, each in header.items()}
        return cls(sha256(content[:begin]).hexdigest(), model, tensors)

    def floats(self, name: str) -> NDArray[np.float32]:
        """A tensor of 32-bit floats."""
        return self._typed(name, np.float32)

    def bytes_of(self, name: str) -> bytes:
        """A copy of a tensor of bytes: a graph or a text."""
        return self._typed(name, np.uint8).tobytes()

    def int8(self, name: str) -> NDArray[np.int8]:
        """A tensor of whole numbers in [-127, 127]."""
        return self._typed(name, np.int8)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def _typed(self, name: str, wanted: type[Any]) -> NDArray[Any]:
        found = self._tensors.get(name)
        if found is None or found.dtype != np.dtype(wanted):
            held = "no tensor" if found is None else str(found.dtype)
            raise DataError(f"The encoder weights need the tensor {name!r} as {np.dtype(wanted)}, got {held}.")
        return found


def _tensor(told: Mapping[str, Any], data: memoryview) -> NDArray[Any]:  # Any: the type stands in the file
    low, high = cast("tuple[int, int]", told["data_offsets"])
    if not 0 <= low <= high <= len(data):
        raise ValueError(f"a tensor lies at {low} to {high} of {len(data)} bytes")
    return np.frombuffer(data[low:high], dtype=_TYPES[told["dtype"]]).reshape(told["shape"])
