"""Cache of encoded texts for a run: each text is encoded once, however many questions use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.data.sentences import sentences
from merilo.judges.encoder.model import MARKS
from merilo.judges.encoder.wordpiece import Window, windows

if TYPE_CHECKING:
    from collections.abc import Iterator

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
