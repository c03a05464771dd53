"""What the encoder has read, kept for a run: each text costs it once, however many questions are about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.data.sentences import sentences
from merilo.judges.encoder.kept import Kept
from merilo.judges.encoder.model import MARKS
from merilo.judges.encoder.windows import Window, windows

if TYPE_CHECKING:
    from merilo.judges.encoder.model import Encoded, Encoder

TOKENS: Final = 32_768
"""Kept by default: some 50 MB, 200 contexts."""


class Encodings:
    """Encoded texts, the most recently used; threads share it."""

    def __init__(self, encoder: Encoder, *, tokens: int = TOKENS) -> None:
        """`tokens`: how many to keep in all, 1.5 kB each."""
        self.encoder = encoder
        self._kept: Kept[str | tuple[str, ...], tuple[Encoded, ...]] = Kept(self._encode, size=_tokens, most=tokens)

    def read(self, text: str | tuple[str, ...]) -> tuple[Encoded, ...]:
        """The windows of a text, at least one.

        What fits is one window; a string that does not is cut by its sentences.
        """
        return self._kept[text]

    def _encode(self, text: str | tuple[str, ...]) -> tuple[Encoded, ...]:
        encoder = self.encoder
        longest = encoder.longest - MARKS
        if isinstance(text, str):
            pieces = encoder.wordpiece.ids(text)
            if len(pieces) <= longest:
                return (encoder.encode_window(Window.of(pieces)),)
            text = sentences(text)
        cut = windows(text, encoder.wordpiece, longest=longest)
        return tuple(encoder.encode_window(window) for window in cut)


def _tokens(encoded: tuple[Encoded, ...]) -> int:
    return sum(len(each.ids) for each in encoded)
