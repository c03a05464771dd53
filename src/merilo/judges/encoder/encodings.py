"""Cache of encoded texts for a run: each text is encoded once, however many questions use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.data.sentences import sentences
from merilo.judges.encoder.model import MARKS
from merilo.judges.encoder.wordpiece import Window, windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from merilo.judges.encoder.model import Encoded, Encoder

TOKENS: Final = 32_768
"""Default cache size in tokens: about 50 MB, or 200 contexts."""


_CHARACTERS_PER_TOKEN: Final = 1_500
"""Characters that take as much memory as one cached token (384 floats)."""


class Encodings:
    """The most recently used encoded texts; threads may share it."""

    def __init__(self, encoder: Encoder, *, tokens: int = TOKENS) -> None:
        """Create an empty cache. `tokens`: its size, at 1.5 kB per token."""
        self.encoder = encoder
        self._kept: BoundedCache[str | tuple[str, ...], tuple[Encoded, ...]] = BoundedCache(
            self._encode, size=_tokens, max_size=tokens
        )

    def read(self, text: str | tuple[str, ...]) -> tuple[Encoded, ...]:
        """Return the windows of a text, at least one.

        A text that fits is one window; a longer string is split by its sentences.
        """
        return self._kept[text]

    def windows(self, text: str | tuple[str, ...]) -> Iterator[Encoded]:
        """Yield the same windows one at a time without caching them, for texts of any length."""
        encoder = self.encoder
        longest = encoder.longest - MARKS
        if isinstance(text, str):
            pieces = encoder.wordpiece.ids(text)
            if len(pieces) <= longest:
                yield encoder.encode_window(Window.of(pieces))
                return
            text = sentences(text)
        for window in windows(text, encoder.wordpiece, longest=longest):
            check_cancelled()
            yield encoder.encode_window(window)

    def _encode(self, text: str | tuple[str, ...]) -> tuple[Encoded, ...]:
        return tuple(self.windows(text))


def _tokens(text: str | tuple[str, ...], encoded: tuple[Encoded, ...]) -> int:
    """Return the tokens of an entry, plus the tokens that would take the memory of its text."""
    # The key of the cache is the text itself, which for a long text takes more memory than expected.
    characters = len(text) if isinstance(text, str) else sum(map(len, text))
    return sum(len(each.ids) for each in encoded) + characters // _CHARACTERS_PER_TOKEN


# Vectors of texts and cosine similarities, from the same encoder that the judge uses.

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
