"""Vectors of texts and cosine similarities, from the same encoder that the judge uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from merilo.judges.encoder.encodings import Encodings


_MAX_KEPT: Final = 20_000
"""Characters. Token vectors of a longer text are not cached, so that it does not fill the memory."""


class Embedder:
    """The vectors of all-MiniLM-L6-v2; a text of several windows gets the mean of theirs, scaled to length 1."""

    def __init__(self, encodings: Encodings) -> None:
        self._encodings = encodings

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return texts × width, each row of length 1. A text without words has a vector too, without meaning."""
        return np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, 0), dtype=np.float32)

    def similarities(self, left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
        """Return left × right cosines, in [-1, 1]."""
        if not left or not right:
            return np.zeros((len(left), len(right)), dtype=np.float32)
        # Not a matrix product: its rounding may depend on the number of rows.
        found: NDArray[np.float32] = np.einsum("ik,jk->ij", self.vectors(left), self.vectors(right), optimize=False)
        return found.clip(-1, 1)

    def _vector(self, text: str) -> NDArray[np.float32]:
        if len(text) > _MAX_KEPT:
            pooled = [window.pooled for window in self._encodings.windows(text)]
        else:
            pooled = [window.pooled for window in self._encodings.read(text)]
        if len(pooled) == 1:
            return pooled[0]
        mean = np.stack(pooled).mean(axis=0)
        found: NDArray[np.float32] = mean / np.sqrt(np.square(mean).sum())
        return found
