"""Vectors and similarities from the encoder."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_encoder import ENCODER, EXPECTED

from merilo.judges.encoder.model import Embedder, Encodings

EMBEDDER = Embedder(Encodings(ENCODER))
TEXTS = [each["text"] for each in EXPECTED["encoded"]]
LONG = "It was built in 1931. It is 1280 m long. It was built in 1932. It is 1281 m long. " * 3


def test_a_vector_is_the_encoders() -> None:
    """The vector of a text that fits is the one that torch gives it."""
    expected = [each["pooled"] for each in EXPECTED["encoded"]]
    np.testing.assert_allclose(EMBEDDER.vectors(TEXTS), expected, atol=2e-5)


def test_the_end_of_a_long_text_counts() -> None:
    """Two long texts that differ in their last sentence have different vectors."""
    one, other = EMBEDDER.vectors([f"{LONG} It was long.", f"{LONG} Who built the bridge?"])
    assert np.abs(one - other).max() > 1e-3


@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6), st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6)
)
def test_a_similarity_knows_nothing_of_its_neighbours(left: list[str], right: list[str]) -> None:
    """Each number is, to the bit, what the two texts alone give; in [-1, 1], and 1 for a text and itself."""
    found = EMBEDDER.similarities(left, right)
    for row, one in enumerate(left):
        for column, other in enumerate(right):
            assert found[row, column] == EMBEDDER.similarities([one], [other])[0, 0]
            assert -1 <= found[row, column] <= 1
            if one == other:
                assert found[row, column] == pytest.approx(1, abs=1e-5)
