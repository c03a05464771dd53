"""The encoder, which reads each text alone, and the reader, which scores a short text against a long one.

A text passes the encoder's lower layers once, however many texts it is paired with. Its vector needs the upper layers
too, at first use. Each text is a separate call without padding, so other texts never change its result.
"""

from __future__ import annotations

import json
import mmap
import os
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Self, cast

import numpy as np

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.data.sentences import sentences
from merilo.errors import DataError, UsageError
from merilo.judges.encoder.wordpiece import Window, WordPiece, windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from onnxruntime import InferenceSession


# -- sessions of onnxruntime --------------------------------------------------------------------------
# The only module that opens sessions of onnxruntime: a graph of tensor operations, ready to run on one CPU core.
# From version 1.29, onnxruntime writes a machine identifier to the user's folder and reports its use to its maker,
# unless `ORT_DISABLE_TELEMETRY` is set before it is loaded. merilo sends no telemetry, so it is set here. The wheels
# for Windows emit events of the system's own tracing instead; those are switched off after the import.

_ERRORS_ONLY: Final = 3


class Graph:
    """A graph that takes named arrays and returns one array of 32-bit floats; threads may share it.

    Equal arrays give equal bytes, also in other processes of the machine: each call uses one thread.
    """

    def __init__(self, content: bytes) -> None:
        """Load a serialised ONNX model; its weights are converted to floats here, once."""
        self._session = open_session(content)

    def __call__(self, **arrays: NDArray[Any]) -> NDArray[np.float32]:  # Any: the graph defines the types it takes
        """Return the output for these inputs."""
        return self._session.run(None, arrays)[0]


def open_session(model: bytes | str) -> InferenceSession:
    """Return a session on one CPU core for a serialised model, or for the path of a model file."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


# -- the file of weights ------------------------------------------------------------------------------
# The layout is that of the `safetensors` format (8 bytes of length, a JSON header, the tensors without gaps), so other
# tools can open it. Its `__metadata__` contains `sha256`, the digest of all bytes after the header, and `model`, a
# JSON object about the model. It contains no Python code.

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
        tensors = {
            name: np.frombuffer(content[begin:][slice(*each["data_offsets"])], _TYPES[each["dtype"]]).reshape(
                each["shape"]
            )
            for name, each in header.items()
        }
        return cls(sha256(content[:begin]).hexdigest(), model, tensors)

    def __getitem__(self, name: str) -> NDArray[Any]:  # Any: the file declares the type
        """Return a tensor."""
        return self._tensors[name]


# -- the encoder and the reader -----------------------------------------------------------------------

MARKS: Final = 2
"""Special tokens of every text: one before it and one after it."""
OPENED_TOKENS: Final = 4_096
"""Tokens of long texts in the reader's cache, for the next short texts: 25 MB."""
BEGUN_TOKENS: Final = 1_024
"""Tokens of short texts in the reader's cache, for the next long texts: 5 MB."""


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
        """Load the graphs."""
        self._weights = weights
        vocabulary = weights["vocabulary"].tobytes().decode("utf-8").split("\n")
        self.wordpiece = WordPiece(vocabulary)
        self.longest = int(weights.model["longest"])
        """Maximum tokens of a text, special tokens included; a longer text is read in windows."""
        self._words = weights["words"]
        self._scales = weights["words.scales"]
        self._places = weights["places"]
        self._lower = Graph(weights["lower.onnx"].tobytes())

    @cached_property
    def _upper(self) -> Graph:
        return Graph(self._weights["upper.onnx"].tobytes())

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
        """Load the graphs."""
        self.heads = _spans(cast("Mapping[str, int]", weights.model["heads"]))
        """The positions of each task's logits."""
        self._begin = Graph(weights["begin.onnx"].tobytes())
        self._open = Graph(weights["open.onnx"].tobytes())
        self._nearest = Graph(weights["nearest.onnx"].tobytes())
        self._graph = Graph(weights["reader.onnx"].tobytes())
        # the parts of the attention that depend on one text alone
        self._begun: BoundedCache[Encoded, NDArray[np.float32]] = BoundedCache(
            lambda short: self._begin(short=short.lower), size=_tokens, max_size=BEGUN_TOKENS
        )
        self._opened: BoundedCache[Encoded, NDArray[np.float32]] = BoundedCache(
            lambda long: self._open(long=long.lower), size=_tokens, max_size=OPENED_TOKENS
        )

    def logits(self, short: Encoded, long: Encoded | Part, *, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the logits of all heads, in the order of `heads`. The part that needs one text only is cached.

        `features`: a row for each token of the short text, special tokens included.
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
            "features": features,
        }
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


# -- scores of pairs ----------------------------------------------------------------------------------

_LEAST: Final = np.float32(1e-9)


@dataclass(frozen=True, slots=True)
class PairScore:
    """The scores of one pair of a short text and a long one."""

    logits: NDArray[np.float32]
    """The logits of the reader, all heads."""
    covered: float
    """Mean over the short text's tokens of the highest cosine with a token of the long text; rare tokens weigh more."""


class PairScorer:
    """Scorer of pairs of a short text and a long one, each encoded already; threads may share it."""

    def __init__(self, reader: Reader, rarity: NDArray[np.float32]) -> None:
        """Create a scorer. `rarity`: for each token of the vocabulary, from 0 (in most texts) to 1 (in few)."""
        self._reader = reader
        self._rarity = rarity

    def see(self, short: Encoded, long: Encoded | Part) -> PairScore:
        """Return the scores of one pair."""
        check_cancelled()
        near, rare = self._reader.nearest(short, long), self._rarity[short.ids]
        logits = self._reader.logits(short, long, features=np.stack([near, rare], 1))
        return PairScore(logits, _covered(near, rare))

    def covered(self, short: Encoded, long: Encoded | Part) -> float:
        """Return `PairScore.covered` alone, at a thirtieth of the cost."""
        check_cancelled()
        return _covered(self._reader.nearest(short, long), self._rarity[short.ids])

    def logits_of(self, task: str, sights: Sequence[PairScore], part: int = 0) -> NDArray[np.float64]:
        """Return one logit of a task for each pair."""
        place = self._reader.heads[task].start + part
        return np.array([sight.logits[place] for sight in sights], dtype=np.float64)


def _covered(near: NDArray[np.float32], rare: NDArray[np.float32]) -> float:
    weight = rare + _LEAST
    return float((near * weight).sum() / weight.sum())


# -- encoded texts, each encoded once ------------------------------------------------------------------

TOKENS: Final = 20_480
"""Default cache size in tokens: about 31 MB, or 80 contexts of 200 words. A run asks about few enough at once."""


_CHARACTERS_PER_TOKEN: Final = 1_500
"""Characters that take as much memory as one cached token (384 floats)."""


class Encodings:
    """The most recently used encoded texts; threads may share it."""

    def __init__(self, encoder: Encoder, *, tokens: int = TOKENS) -> None:
        """Create an empty cache. `tokens`: its size, at 1.5 kB per token."""
        self.encoder = encoder
        self._kept: BoundedCache[str | tuple[str, ...], tuple[Encoded, ...]] = BoundedCache(
            lambda text: tuple(self.windows(text)), size=_tokens_with_text, max_size=tokens
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


def _tokens_with_text(text: str | tuple[str, ...], encoded: tuple[Encoded, ...]) -> int:
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
        windows = self._encodings.windows(text) if len(text) > _MAX_KEPT else self._encodings.read(text)
        pooled = [window.pooled for window in windows]
        if len(pooled) == 1:
            return pooled[0]
        mean = np.stack(pooled).mean(axis=0)
        found: NDArray[np.float32] = mean / np.sqrt(np.square(mean).sum())
        return found
