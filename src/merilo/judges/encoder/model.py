"""The encoder, which reads each text alone, and the reader, which scores a short text against a long one.

A text passes the encoder's lower layers once, however many texts it is paired with. Its vector needs the upper layers
too, at first use. Each text is a separate call without padding, so other texts never change its result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from merilo.bounded_cache import BoundedCache
from merilo.errors import DataError, UsageError
from merilo.judges.encoder.graphs import Graph
from merilo.judges.encoder.windows import Window
from merilo.judges.encoder.wordpiece import WordPiece

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from merilo.judges.encoder.weights import Weights

FORMAT: Final = 1
"""Version of the names and shapes in a weights file."""
MARKS: Final = 2
"""Special tokens of every text: one before it and one after it."""
OPENED_TOKENS: Final = 4_096
"""Tokens of long texts in the reader's cache, for the next short texts: 25 MB."""
BEGUN_TOKENS: Final = 4_096
"""Tokens of short texts in the reader's cache, for the next long texts: 19 MB."""


class Encoded:
    """A text, or a window of one, encoded; not to be changed."""

    __slots__ = ("_pooled", "_upper", "ids", "lower", "window")

    def __init__(self, window: Window, ids: NDArray[np.int32], lower: NDArray[np.float32], upper: Graph) -> None:
        self.window: Final = window
        """The sentences of the text that it contains, and where they end."""
        self.ids: Final = ids
        """The token ids, with the special tokens at the beginning and end."""
        self.lower: Final = lower
        """Tokens × width, float32: the token vectors after the lower layers."""
        self._upper = upper
        self._pooled: NDArray[np.float32] | None = None

    @property
    def pooled(self) -> NDArray[np.float32]:
        """The mean of the last layer's token vectors, scaled to length 1; computed at first use."""
        found = self._pooled
        if found is None:
            found = self._pooled = _row(self._upper(lower=self.lower))
        return found

    def part(self, sentence: int) -> Part:
        """Return one of `window.sentences` as encoded within the window; it may have no tokens."""
        at = self.window.sentences.index(sentence)
        start = self.window.ends[at - 1] if at else 0
        return Part(self, slice(1 + start, 1 + self.window.ends[at]))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some tokens of an encoded text, encoded in the context of all of it; costs nothing."""

    whole: Encoded
    tokens: slice

    @property
    def ids(self) -> NDArray[np.int32]:
        """The token ids."""
        return self.whole.ids[self.tokens]

    @property
    def lower(self) -> NDArray[np.float32]:
        """Tokens × width, float32."""
        return self.whole.lower[self.tokens]


class Encoder:
    """Texts to token vectors and text vectors; threads may share it."""

    def __init__(self, weights: Weights) -> None:
        """Load the graphs. Raises DataError if the file has a later format or lacks a part."""
        if weights.model.get("format") != FORMAT:
            raise DataError(
                f"The encoder weights have format {weights.model.get('format')!r}, expected {FORMAT}; "
                f"use the version of merilo that they belong to."
            )
        self._weights = weights
        vocabulary = weights.bytes_of("vocabulary").decode("utf-8").split("\n")
        self.wordpiece = WordPiece(vocabulary)
        self.longest = int(weights.model["longest"])
        """Maximum tokens of a text, special tokens included; a longer text is read in windows."""
        self._words = weights.int8("words")
        self._scales = weights.floats("words.scales")
        self._places = weights.floats("places")
        self._lower = Graph(weights.bytes_of("lower.onnx"))

    @cached_property
    def _upper(self) -> Graph:
        return Graph(self._weights.bytes_of("upper.onnx"))

    def encode(self, text: str) -> Encoded:
        """Encode a text that fits, as most questions, statements and sentences do.

        Raises UsageError if it is too long: no text is truncated silently. `windows` accepts any text.
        """
        return self.encode_window(Window.of(self.wordpiece.ids(text)))

    def encode_window(self, window: Window) -> Encoded:
        """Encode a window. Raises UsageError if it has too many pieces."""
        pieces = window.pieces
        if len(pieces) + MARKS > self.longest:
            most = self.longest - MARKS
            raise UsageError(f"A text of {len(pieces)} tokens exceeds the maximum of {most}; read it in windows.")
        ids = np.array([self.wordpiece.first, *pieces, self.wordpiece.last], dtype=np.int32)
        scales = self._scales[ids]
        words = self._words[ids].reshape(*scales.shape, -1) * scales[:, :, None]
        embedded = words.reshape(len(ids), -1) + self._places[: len(ids)]
        return Encoded(window, ids, self._lower(embedded=embedded), self._upper)


class Reader:
    """Logits for a short text and a long one, both encoded already; threads may share it."""

    def __init__(self, weights: Weights) -> None:
        """Load the graphs. Raises DataError if the file lacks one."""
        self.heads = _spans(cast("Mapping[str, int]", weights.model["heads"]))
        """The positions of each task's logits."""
        self.features = int(weights.model["features"])
        """Number of features of each token of the short text in addition to its vector; 0 for none."""
        self._begin = Graph(weights.bytes_of("begin.onnx"))
        self._open = Graph(weights.bytes_of("open.onnx"))
        self._nearest = Graph(weights.bytes_of("nearest.onnx"))
        self._graph = Graph(weights.bytes_of("reader.onnx"))
        self._begun: BoundedCache[Encoded, NDArray[np.float32]] = BoundedCache(
            self._beginning, size=_tokens, max_size=BEGUN_TOKENS
        )
        self._opened: BoundedCache[Encoded, NDArray[np.float32]] = BoundedCache(
            self._opening, size=_tokens, max_size=OPENED_TOKENS
        )

    def logits(
        self, short: Encoded, long: Encoded | Part, *, features: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Return the logits of all heads, in the order of `heads`. The part that needs one text only is cached.

        `features`: tokens of the short text, special tokens included, × `features`; required if the model takes any.
        Raises UsageError for another shape.
        """
        whole, tokens = (long.whole, long.tokens) if isinstance(long, Part) else (long, slice(None))
        # Exact token matches are an additional input of the reader.
        same = short.ids[:, None] == long.ids
        arrays: dict[str, NDArray[Any]] = {  # Any: floats and whole numbers
            "short": short.lower,
            "short_shared": same.any(1).astype(np.int64),
            "long": long.lower,
            "begun": self._begun[short],
            "opened": self._opened[whole][tokens],
            "long_shared": same.any(0).astype(np.int64),
        }
        wanted, given = (len(short.ids), self.features), None if features is None else features.shape
        if given != (wanted if self.features else None):
            raise UsageError(f"The reader expects features of shape {wanted} (none if the width is 0), got {given}.")
        if features is not None:
            arrays["features"] = features
        return _row(self._graph(**arrays))

    def nearest(self, short: Encoded, long: Encoded | Part) -> NDArray[np.float32]:
        """Return, for each token of the short text, its highest cosine with a token of the long one; -1 if that is
        empty.

        This is a graph and not a product in numpy, whose threads would take several times the processor time of the
        reader.
        """
        if not len(long.ids):
            return np.full(len(short.ids), -1, dtype=np.float32)
        return self._nearest(short=short.lower, long=long.lower)

    def _beginning(self, short: Encoded) -> NDArray[np.float32]:
        """Return the part of the attention that depends on the short text alone."""
        return self._begin(short=short.lower)

    def _opening(self, long: Encoded) -> NDArray[np.float32]:
        """Return the part of the attention that depends on the long text alone."""
        return self._open(long=long.lower)


def _tokens(encoded: Encoded, _: NDArray[np.float32]) -> int:
    return len(encoded.ids)


def _row(only: NDArray[np.float32]) -> NDArray[np.float32]:
    return only.reshape(-1)


def _spans(heads: Mapping[str, int]) -> dict[str, slice]:
    spans: dict[str, slice] = {}
    start = 0
    for name, width in heads.items():
        spans[name] = slice(start, start + width)
        start += width
    return spans
