"""The file of the encoder's weights: tensors and graphs in one safetensors file, read by memory map.

The layout is that of the `safetensors` format (8 bytes of length, a JSON header, the tensors without gaps), so other
tools can open it. Its `__metadata__` contains `sha256`, the digest of all bytes after the header, and `model`, a JSON
object about the model. It contains no Python code.
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
_MAX_HEADER_BYTES: Final = 1 << 20
_TYPES: Final[Mapping[str, type[np.generic]]] = {"F32": np.float32, "I8": np.int8, "U8": np.uint8}


@dataclass(frozen=True, eq=False)
class Weights:
    """The content of a weights file. The arrays are read-only views into the file."""

    fingerprint: str
    """SHA-256 of the header, which contains the digest of the rest: changes with any byte of the file."""
    model: Mapping[str, Any]  # Any: parsed JSON
    """Metadata of the model in the file: sizes, names of heads, calibration."""
    _tensors: Mapping[str, NDArray[Any]] = field(repr=False)  # Any: the file declares the type

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read weights from a file and check them against its digest; takes about 20 ms for 27 MB.

        Raises DataError if the file is missing, truncated, changed or not a weights file.
        """
        try:
            with path.open("rb") as file:
                try:
                    content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
                except ValueError:  # an empty file cannot be mapped
                    content = memoryview(b"")
            return cls._of(content)
        except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
            message = (
                f"{path} is not a complete file of encoder weights ({error}); reinstall merilo or export it again."
            )
            raise DataError(message) from error

    @classmethod
    def _of(cls, content: memoryview) -> Self:
        begin = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
        # The length comes from the file: a damaged one could ask for gigabytes.
        if not _LENGTH_BYTES < begin <= min(len(content), _MAX_HEADER_BYTES):
            raise ValueError("its header is missing")
        header: dict[str, Any] = json.loads(bytes(content[_LENGTH_BYTES:begin]))
        metadata = header.pop("__metadata__")
        digest = sha256(content[begin:]).hexdigest()
        if digest != metadata["sha256"]:
            raise ValueError(f"the SHA-256 of its tensors is {digest}, expected {metadata['sha256']}")
        model: dict[str, Any] = json.loads(metadata["model"])
        tensors = {name: _tensor(each, content[begin:]) for name, each in header.items()}
        return cls(sha256(content[:begin]).hexdigest(), model, tensors)

    def floats(self, name: str) -> NDArray[np.float32]:
        """Return a tensor of 32-bit floats."""
        return self._typed(name, np.float32)

    def bytes_of(self, name: str) -> bytes:
        """Return a copy of a tensor of bytes: a graph or a text."""
        return self._typed(name, np.uint8).tobytes()

    def int8(self, name: str) -> NDArray[np.int8]:
        """Return a tensor of whole numbers in [-127, 127]."""
        return self._typed(name, np.int8)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def _typed(self, name: str, wanted: type[Any]) -> NDArray[Any]:
        found = self._tensors.get(name)
        if found is None or found.dtype != np.dtype(wanted):
            actual = "no tensor" if found is None else str(found.dtype)
            raise DataError(f"The encoder weights need the tensor {name!r} as {np.dtype(wanted)}, got {actual}.")
        return found


def _tensor(entry: Mapping[str, Any], data: memoryview) -> NDArray[Any]:  # Any: the file declares the type
    low, high = cast("tuple[int, int]", entry["data_offsets"])
    if not 0 <= low <= high <= len(data):
        raise ValueError(f"a tensor has the offsets {low} to {high} in {len(data)} bytes")
    return np.frombuffer(data[low:high], dtype=_TYPES[entry["dtype"]]).reshape(entry["shape"])
