"""A model file and its tokenizer: the token ids of a pair of texts, and the logits for them.

This is the only module that imports tokenizers. A text is data: it cannot produce a special token, such as the
separator between the two texts. Nothing is truncated; `scores.py` divides texts that are too long.

One pair per call and one thread per call: the result of a pair then depends on nothing else, and batches save no time
on a CPU. Several threads share a session.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.errors import UsageError
from merilo.judges.encoder.model import open_session
from merilo.judges.local.card import filled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokenizers import Tokenizer

    from merilo.judges.local.card import Input

MISSING: Final = "local judges need the package tokenizers; install it: pip install 'merilo[local]'"
_MAX_FILE_BYTES: Final = 200_000_000
_MAX_ROUNDS: Final = 8
"""Attempts to remove special tokens from a text; each one breaks all those that are left."""
_PROBE: Final = "a"


class TokenIds(NamedTuple):
    """The input of the model for one pair."""

    ids: tuple[int, ...]
    types: tuple[int, ...]
    """`token_type_ids`: which of two texts a token belongs to."""


class ForgedToken(Exception):
    """A text contains a special token that cannot be removed."""


@dataclass(frozen=True, slots=True)
class _Special:
    """A special token of an input."""

    id: int
    type: int


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of an input, with slots."""

    template: str
    type: int


class PairTokens:
    """Turns the texts of a pair into token ids. Threads may share it."""

    def __init__(self, file: Path, form: Input) -> None:
        """Read a `tokenizer.json`. Raises UsageError if it is invalid or lacks a special token of the card."""
        self._tokenizer = _tokenizer(file)
        unknown = _unknown_id(self._tokenizer)
        added = self._tokenizer.get_added_tokens_decoder()
        self._pieces = _explicit(form, self._tokenizer, file) if form.special else _usual(form, self._tokenizer)
        own = {piece.id for piece in self._pieces if isinstance(piece, _Special)}
        self._special = (own | {number for number, token in added.items() if token.special}) - {unknown}

    def encode(self, texts: Mapping[str, str]) -> TokenIds:
        """Return the ids of the pair with these texts, by slot. Raises ForgedToken."""
        ids: list[int] = []
        types: list[int] = []
        for piece in self._pieces:
            new = (piece.id,) if isinstance(piece, _Special) else self._ids(filled(piece.template, texts))
            ids += new
            types += [piece.type] * len(new)
        return TokenIds(tuple(ids), tuple(types))

    def length(self, text: str) -> int:
        """Return the number of tokens of a text alone. Raises ForgedToken."""
        return len(self._ids(text))

    def _ids(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text, none of them special.

        A vocabulary may contain the letters of a special token, such as `</s>`, as one piece. A space within the
        letters divides it.
        """
        text = text.encode("utf-8", "replace").decode()  # half of a surrogate pair is not text to the tokenizer
        for _ in range(_MAX_ROUNDS):
            encoding = self._tokenizer.encode(text, add_special_tokens=False)
            spans = [span for each, span in zip(encoding.ids, encoding.offsets, strict=True) if each in self._special]
            if not spans:
                return tuple(encoding.ids)
            for start, end in sorted({*spans}, reverse=True):
                # Of one character nothing is left to divide, so it is removed.
                text = text[: start + 1] + " " + text[start + 1 :] if end > start + 1 else text[:start] + text[end:]
        raise ForgedToken


def _tokenizer(file: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    size = file.stat().st_size
    if size > _MAX_FILE_BYTES:
        raise UsageError(f"{file} must be at most {_MAX_FILE_BYTES:,} bytes long, got {size:,}.")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # noqa: BLE001  the package raises this type
        raise UsageError(f"Cannot read {file}: {_one_line(error)}.") from None
    tokenizer.no_truncation()  # many files ship with a limit of 128 or 512 tokens
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # the letters of a special token are letters
    return tokenizer


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id of the token for unknown words, which ordinary text produces."""
    model = json.loads(tokenizer.to_str())["model"]
    token, number = model.get("unk_token"), model.get("unk_id")
    return number if isinstance(number, int) else tokenizer.token_to_id(token) if isinstance(token, str) else None


def _explicit(form: Input, tokenizer: Tokenizer, file: Path) -> tuple[_Special | _Text, ...]:
    pieces: list[_Special | _Text] = []
    for piece in form.special:
        if piece.startswith("text:"):
            pieces.append(_Text(piece.removeprefix("text:"), 0))
            continue
        number = tokenizer.token_to_id(piece)
        if number is None:
            raise UsageError(f"{file} has no token {piece!r}, which the card lists under input.special.")
        pieces.append(_Special(number, 0))
    return tuple(pieces)


def _usual(form: Input, tokenizer: Tokenizer) -> tuple[_Special | _Text, ...]:
    """Return the pieces of the tokenizer's own form for one or two texts, read from an example."""
    texts = form.texts
    encoding = tokenizer.encode(_PROBE, _PROBE if len(texts) == 2 else None)
    pieces: list[_Special | _Text] = []
    seen: set[int] = set()
    for number, segment, place in zip(encoding.ids, encoding.type_ids, encoding.sequence_ids, strict=True):
        if place is None:
            pieces.append(_Special(number, segment))
        elif place not in seen:
            seen.add(place)
            pieces.append(_Text(texts[place], segment))
    if len(texts) == 2 and not _separated(pieces):
        raise UsageError("The tokenizer puts no special token between two texts; list them in the card: input.special.")
    return tuple(pieces)


def _separated(pieces: list[_Special | _Text]) -> bool:
    places = [place for place, piece in enumerate(pieces) if isinstance(piece, _Text)]
    return len(places) == 2 and places[1] > places[0] + 1


# -- the model file -----------------------------------------------------------------------------------


_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})
_MEMORY_FACTOR: Final = 1.6
"""Memory of a loaded model by the size of its file: 532 MB for 350 MB, measured with a DeBERTa of base size."""
_THREAD_BYTES: Final = 100_000_000
"""Memory of one running call."""
_INSIDE: Final = "escapes"
"""A word of onnxruntime's error about external data behind a link."""


def memory_problem(files: tuple[Path, ...], threads: int, free: int | None) -> str | None:
    """Return why a model does not fit into the free memory, as a sentence; None if it does or that is unknown."""
    size = sum(path.stat().st_size for path in files)
    needed = int(size * _MEMORY_FACTOR) + threads * _THREAD_BYTES
    if free is None or needed <= free:
        return None
    return (
        f"{files[0]} needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free. "
        "Close other programs, or use a smaller model."
    )


def free_memory() -> int | None:
    """Return the bytes of memory that new programs can use; None if unknown."""
    if sys.platform != "linux":
        return None
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    amounts = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(amounts[0]) * 1024 if amounts else None


class ModelSession:
    """A loaded model. Equal ids give equal logits, in any thread and any process of the machine."""

    def __init__(self, model: Path, labels: int) -> None:
        """Load an ONNX file. Raises UsageError if it is damaged, or is not a model of pairs with this many labels."""
        self._labels = labels
        self._model = model
        try:
            self._session = open_session(str(model))  # by path: external data cannot be read from bytes
        except Exception as error:  # noqa: BLE001  onnxruntime has one type for each kind of damage
            raise UsageError(f"Cannot load {model}: {_advice(error)}") from None
        self._inputs = [(each.name, each.type, each.shape) for each in self._session.get_inputs()]
        self._check_inputs()
        outputs = [each.name for each in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]

    def _check_inputs(self) -> None:
        names = {name for name, _, _ in self._inputs}
        if "input_ids" not in names or names - _INPUTS:
            shown = ", ".join(sorted(names))
            raise UsageError(f"{self._model} takes {shown}; a model of pairs takes {', '.join(sorted(_INPUTS))}.")
        for name, kind, shape in self._inputs:
            if kind not in {"tensor(int64)", "tensor(int32)"} or len(shape) != 2:
                raise UsageError(f"{self._model}: the input {name} is {kind} {shape}, not a table of integers.")
            if isinstance(shape[1], int) or (isinstance(shape[0], int) and shape[0] != 1):
                raise UsageError(f"{self._model} takes inputs of the shape {shape} only. Export it with dynamic axes.")

    def logits(self, tokens: TokenIds) -> tuple[float, ...]:
        """Return one logit per label. Raises UsageError if the model returns something else."""
        import numpy as np

        length = len(tokens.ids)
        values = {
            "input_ids": tokens.ids,
            "attention_mask": (1,) * length,
            "token_type_ids": tokens.types,
            "position_ids": tuple(range(length)),
        }
        arrays = {
            name: np.array([values[name]], np.int64 if kind == "tensor(int64)" else np.int32)
            for name, kind, _ in self._inputs
        }
        try:
            (first,) = self._session.run([self._output], arrays)
        except Exception as error:  # noqa: BLE001  onnxruntime has one type for each kind of failure
            raise UsageError(f"{self._model} cannot be run: {_advice(error)}") from None
        if first.size != self._labels or first.ndim > 2:
            shape = " by ".join(map(str, first.shape))
            raise UsageError(f"{self._model} returns {shape} numbers for a pair; the card has {self._labels} labels.")
        return tuple(float(each) for each in first.reshape(-1))


def _advice(error: Exception) -> str:
    import onnxruntime

    text = " ".join(str(error).split())[:300]
    if _INSIDE in text:
        return (
            f"onnxruntime {onnxruntime.__version__} refuses weights in a file behind a link, as 1.24 does. "
            "Use another version: pip install -U onnxruntime."
        )
    return f"{text.rstrip('.')}."
