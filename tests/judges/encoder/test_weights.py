"""The file of the encoder's weights."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tiny_encoder import PATH, WEIGHTS

from merilo.errors import DataError
from merilo.judges.encoder.model import Weights

CONTENT = PATH.read_bytes()
HEADER_BYTES = 8 + int.from_bytes(CONTENT[:8], "little")


def test_a_file_tells_what_its_model_is() -> None:
    """What stood beside the tensors when the file was written is read again."""
    assert WEIGHTS.model["name"] == "tiny"
    heads = [("grade", 2), ("sentence", 1), ("sufficient", 1), ("supported", 3), ("addresses", 1)]
    assert list(WEIGHTS.model["heads"].items()) == heads  # in the order of the logits


@given(st.integers(HEADER_BYTES, len(CONTENT) - 1), st.integers(1, 255))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_a_changed_tensor_is_noticed(tmp_path: Path, place: int, change: int) -> None:
    """One other byte behind the header, and the file is refused."""
    path = tmp_path / "changed"
    path.write_bytes(CONTENT[:place] + bytes([CONTENT[place] ^ change]) + CONTENT[place + 1 :])
    with pytest.raises(DataError, match="SHA-256"):
        Weights.read(path)


@given(st.integers(0, len(CONTENT) - 1))
@example(0)
@example(8)
@example(HEADER_BYTES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_a_file_cut_short_is_noticed(tmp_path: Path, length: int) -> None:
    """A file that ends anywhere before its end is refused."""
    path = tmp_path / "short"
    path.write_bytes(CONTENT[:length])
    with pytest.raises(DataError, match="not a complete file of encoder weights"):
        Weights.read(path)


@given(st.integers(0, HEADER_BYTES - 1), st.integers(1, 255))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_a_changed_header_changes_the_fingerprint(tmp_path: Path, place: int, change: int) -> None:
    """One other byte in the header, and the file is refused or has another fingerprint."""
    path = tmp_path / "changed"
    path.write_bytes(CONTENT[:place] + bytes([CONTENT[place] ^ change]) + CONTENT[place + 1 :])
    try:
        found = Weights.read(path)
    except DataError:
        return
    assert found.fingerprint != WEIGHTS.fingerprint


def test_whole_numbers_stay_whole() -> None:
    """Word vectors are held in 8 bits, with a scale for each 32 numbers of a word."""
    words = WEIGHTS["words"]
    assert words.dtype == np.int8
    assert WEIGHTS["words.scales"].shape == (len(words), words.shape[1] // 32)
