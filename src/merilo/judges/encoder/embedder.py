"""Vectors of texts and how alike two texts are, from the same encoder that the judge reads with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from merilo.judges.encoder.encodings import Encodings


_LONGEST_KEPT: Final = 20_000
"""Characters; of a longer text only the vector is kept, and only while it is needed."""


class Embedder:
    """The vectors of all-MiniLM-L6-v2; for a text of several windows the mean of theirs, of length 1 again."""

    def __init__(self, encodings: Encodings) -> None:
        self._encodings = encodings

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Texts × width, each row of length 1; a text without a word has a vector too, and it means nothing."""
        return np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, 0), dtype=np.float32)

    def similarities(self, left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
        """Left × right cosines, in [-1, 1]."""
        if not left or not right:
            return np.zeros((len(left), len(right)), dtype=np.float32)
        # Not a matrix product: its rounding may depend on how many rows there are.
        found: NDArray[np.float32] = np.einsum("ik,jk->ij", self.vectors(left), self.vectors(right), optimize=False)
        return found.clip(-1, 1)

    def _vector(self, text: str) -> NDArray[np.float32]:
        if len(text) > _LONGEST_KEPT:
            pooled = [window.pooled for window in self._encodings.windows(text)]
        else:
            pooled = [window.pooled for window in self._encodings.read(text)]
        if len(pooled) == 1:
            return pooled[0]
        mean = np.stack(pooled).mean(axis=0)
        found: NDArray[np.float32] = mean / np.sqrt(np.square(mean).sum())
        return found
