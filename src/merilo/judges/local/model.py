"""A model file and its tokenizer: the token ids of a pair of texts, and the logits for them.

This is the only module that imports tokenizers. A text is data: it cannot produce a special token, such as the
separator between the two texts. Nothing is truncated; `PairScorer` divides texts that are too long.

One pair per call and one thread per call: the result of a pair then depends on nothing else, and batches save no time
on a CPU. Several threads share a session.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.errors import UsageError
from merilo.judges.encoder.model import open_session
from merilo.judges.local.card import Card, Input, Output, Windows, filled
from merilo.judging.verdicts import Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tokenizers import Tokenizer


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


class Unscored(Exception):
    """A pair of texts cannot be scored; the failure says why."""

    def __init__(self, message: str, kind: FailureKind = FailureKind.PERMANENT) -> None:
        super().__init__(message)
        self.failure = Failure(kind, message)


class _Piece(NamedTuple):
    """A special token of an input, or a text with slots."""

    type: int
    """Which of two texts it belongs to."""
    id: int | None = None
    """The number of a special token; None for a text."""
    template: str = ""


class PairTokens:
    """Turns the texts of a pair into token ids. Threads may share it."""

    def __init__(self, file: Path, form: Input) -> None:
        """Read a `tokenizer.json`. Raises UsageError if it is invalid or lacks a special token of the card."""
        self._tokenizer = _tokenizer(file)
        added = self._tokenizer.get_added_tokens_decoder()
        self._pieces = _explicit(form, self._tokenizer, file) if form.special else _usual(form, self._tokenizer)
        special = {piece.id for piece in self._pieces} | {number for number, token in added.items() if token.special}
        self._special = special - {_unknown_id(self._tokenizer)}

    def encode(self, texts: Mapping[str, str]) -> TokenIds:
        """Return the ids of the pair with these texts, by slot. Raises Unscored."""
        ids: list[int] = []
        types: list[int] = []
        for piece in self._pieces:
            new = self.ids(filled(piece.template, texts)) if piece.id is None else (piece.id,)
            ids += new
            types += [piece.type] * len(new)
        return TokenIds(tuple(ids), tuple(types))

    def ids(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text alone, none of them special. Raises Unscored.

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
        raise Unscored("A text contains a special token of the model that cannot be removed. Use another judge.")


def _tokenizer(file: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    size = file.stat().st_size
    if size > _MAX_FILE_BYTES:
        raise UsageError(f"{file} must be at most {_MAX_FILE_BYTES:,} bytes long, got {size:,}.")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # noqa: BLE001  the package raises this type
        raise UsageError(f"Cannot read {file}: {' '.join(str(error).split())[:200]}.") from None
    tokenizer.no_truncation()  # many files ship with a limit of 128 or 512 tokens
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # the letters of a special token are letters
    return tokenizer


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id of the token for unknown words, which ordinary text produces."""
    model = json.loads(tokenizer.to_str())["model"]
    token, number = model.get("unk_token"), model.get("unk_id")
    return number if isinstance(number, int) else tokenizer.token_to_id(token) if isinstance(token, str) else None


def _explicit(form: Input, tokenizer: Tokenizer, file: Path) -> list[_Piece]:
    pieces: list[_Piece] = []
    for piece in form.special:
        number = None if piece.startswith("text:") else tokenizer.token_to_id(piece)
        if number is None and not piece.startswith("text:"):
            raise UsageError(f"{file} has no token {piece!r}, which the card lists under input.special.")
        pieces.append(_Piece(0, number, piece.removeprefix("text:")))
    return pieces


def _usual(form: Input, tokenizer: Tokenizer) -> list[_Piece]:
    """Return the pieces of the tokenizer's own form for one or two texts, read from an example."""
    texts = form.texts
    encoding = tokenizer.encode(_PROBE, _PROBE if len(texts) == 2 else None)
    pieces: list[_Piece] = []
    at: dict[int, int] = {}  # the place of each text among the pieces
    for number, segment, place in zip(encoding.ids, encoding.type_ids, encoding.sequence_ids, strict=True):
        if place is None:
            pieces.append(_Piece(segment, number))
        elif place not in at:
            at[place] = len(pieces)
            pieces.append(_Piece(segment, template=texts[place]))
    if len(texts) == 2 and max(at.values()) - min(at.values()) < 2:
        raise UsageError("The tokenizer puts no special token between two texts; list them in the card: input.special.")
    return pieces


# -- the model file -----------------------------------------------------------------------------------


_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})
_INTEGERS: Final = {"tensor(int64)": "int64", "tensor(int32)": "int32"}
_INSIDE: Final = "escapes"
"""A word of onnxruntime's error about external data behind a link."""


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
        self._inputs = {each.name: each.type for each in self._session.get_inputs()}
        if "input_ids" not in self._inputs or self._inputs.keys() - _INPUTS:
            shown = ", ".join(sorted(self._inputs))
            raise UsageError(f"{model} takes {shown}; a model of pairs takes {', '.join(sorted(_INPUTS))}.")
        for each in self._session.get_inputs():
            if each.type not in _INTEGERS or len(each.shape) != 2:
                raise UsageError(
                    f"{model}: the input {each.name} is {each.type} {each.shape}, not a table of integers."
                )
            if isinstance(each.shape[1], int) or (isinstance(each.shape[0], int) and each.shape[0] != 1):
                raise UsageError(f"{model} takes inputs of the shape {each.shape} only. Export it with dynamic axes.")
        outputs = [each.name for each in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]

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
        arrays = {name: np.array([values[name]], _INTEGERS[kind]) for name, kind in self._inputs.items()}
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


# -- scores --------------------------------------------------------------------------------------------
# Of pairs of texts by one model: windows of whole sentences, logits, probabilities, and golden pairs.


class Window(NamedTuple):
    """Consecutive sentences, or a part of one sentence that is too long."""

    first: int
    """Index of the first sentence."""
    last: int
    """Index of the last sentence."""
    text: str


def windows(sentences: Sequence[str], form: Windows, fits: Callable[[str], bool]) -> Iterator[Window]:
    """Yield the windows of some sentences, in order; blank sentences are skipped. All sentences are covered.

    A window has as many whole sentences as fit, at least one. `fits` returns True if the model reads a window whole.
    """
    numbered = [(place, text) for place, text in enumerate(sentences) if text.strip()]

    def joined(start: int, end: int) -> str:
        return form.joined_by.join(text for _, text in numbered[start:end])

    def whole(text: str) -> bool:
        return (form.words is None or len(text.split()) <= form.words) and fits(text)

    start = end = 0
    while end < len(numbered):
        end = start + 1
        while end < len(numbered) and whole(joined(start, end + 1)):
            end += 1
        first, last = numbered[start][0], numbered[end - 1][0]
        yield from (Window(first, last, part) for part in _parts(joined(start, end), whole))
        start = max(start + 1, end - form.overlap)


def _parts(text: str, whole: Callable[[str], bool]) -> Iterator[str]:
    """Yield a text; in halves, between words if possible, while it is too long."""
    words = text.split()
    if len(text) < 2 or whole(text):
        yield from [text] if words else []
    elif len(words) > 1:
        middle = len(words) // 2
        yield from _parts(" ".join(words[:middle]), whole)
        yield from _parts(" ".join(words[middle:]), whole)
    else:
        yield from _parts(text[: len(text) // 2], whole)
        yield from _parts(text[len(text) // 2 :], whole)


# -- probabilities of pairs ---------------------------------------------------------------------------


class PairScore(NamedTuple):
    """What the model says about one pair."""

    probability: float
    """Probability of yes, calibrated if the card has a curve."""
    highest: float
    """Probability of the highest grade; that of yes, unless the model has an option for each grade."""
    contradiction: float = 0.0
    """Probability of the contradiction label; 0 if the card has none."""


def pair_score(logits: Sequence[float], card: Card, kind: str) -> PairScore:
    """Return the score of one pair, from one logit per label or per option. Raises Unscored."""
    if not all(map(math.isfinite, logits)):
        raise Unscored("the local model returned a number that is not finite", FailureKind.BROKEN)
    if (question := card.questions.get(kind)) is not None:
        weights = [math.exp((logit - max(logits)) / question.temperature) for logit in logits]
        p = {option: weight / sum(weights) for option, weight in zip(question.options, weights, strict=True)}
        return PairScore(min(1.0, sum(p[option] for option in question.yes)), p[question.yes[-1]])
    output, curve = card.output, card.calibration.get(kind)
    yes = _logit(logits, output, output.yes)
    p_yes = sigmoid(yes if curve is None else curve.scale * yes + curve.shift)
    against = 0.0 if output.contradiction is None else sigmoid(_logit(logits, output, output.contradiction))
    return PairScore(p_yes, p_yes, against)


def _logit(logits: Sequence[float], output: Output, label: str) -> float:
    """Return log(p / (1 - p)) of a label."""
    place = output.labels.index(label)
    if output.head == "sigmoid":
        return logits[place]
    others = [logit for index, logit in enumerate(logits) if index != place]
    top = max(others)
    return logits[place] - top - math.log(sum(math.exp(logit - top) for logit in others))


def sigmoid(value: float) -> float:
    """Return 1 / (1 + exp(-value)), without overflow."""
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    power = math.exp(value)
    return power / (1 + power)


_MAX_BYTES: Final = 50_000_000
"""Memory for the logits of pairs; equal pairs occur in questions of different kinds."""
_TOKEN_BYTES: Final = 24
_PAIR_BYTES: Final = 500


@dataclass(frozen=True)
class PairScorer:
    """A model and its card. Threads may share it."""

    card: Card
    tokens: PairTokens
    run: Callable[[TokenIds], tuple[float, ...]]
    """Returns the logits of a pair."""

    @cached_property
    def _known(self) -> BoundedCache[TokenIds, tuple[float, ...]]:
        return BoundedCache(self.run, size=_bytes_of, max_size=_MAX_BYTES)

    def logits(self, texts: Mapping[str, str]) -> tuple[float, ...]:
        """Return the logits of a pair, given by slot. Raises Unscored if the model cannot read it whole."""
        check_cancelled()
        pair = self.tokens.encode(texts)
        if len(pair.ids) > self.card.input.max_tokens:
            raise Unscored(f"A pair of texts has {len(pair.ids):,} tokens. {self.limit}")
        return self._known[pair]

    @property
    def limit(self) -> str:
        """The length of the model's input, and what to do about a longer text."""
        most = self.card.input.max_tokens
        return f"local:{self.card.name} reads at most {most:,} per pair. Shorten the text, or use another judge."

    def of(self, kind: str) -> KindScorer:
        """Return the scorer for questions of a kind that the card answers."""
        return KindScorer(self, kind, {name: slot for slot, name in self.card.answers.given[kind].use.items()})


def _bytes_of(pair: TokenIds, logits: tuple[float, ...]) -> int:
    return _PAIR_BYTES + _TOKEN_BYTES * (len(pair.ids) + len(pair.types) + len(logits))


@dataclass(frozen=True)
class KindScorer:
    """Scores pairs for one kind of question; texts are given by the field of the question."""

    scorer: PairScorer
    kind: str
    slots: Mapping[str, str]
    """The slot of each field."""

    @property
    def answer(self) -> Any:  # Any: the options differ by kind, and each function knows its own
        """The card's options for this kind."""
        return self.scorer.card.answers.given[self.kind]

    def score(self, **texts: str) -> PairScore:
        """Return the score of one pair. Raises Unscored."""
        logits = [logit for each in self._inputs(texts) for logit in self.scorer.logits(each)]
        return pair_score(logits, self.scorer.card, self.kind)

    def fits(self, **texts: str) -> bool:
        """Return True if the model can read this pair whole."""
        most = self.scorer.card.input.max_tokens
        return all(len(self.scorer.tokens.encode(each).ids) <= most for each in self._inputs(texts))

    def windows(self, sentences: Sequence[str], **other: str) -> tuple[Window, ...]:
        """Return the windows of the sentences of a context, next to the text of the other field.

        Raises Unscored if that text takes more than half of the input.
        """
        ((label, text),) = other.items()
        if not self.fits(context=text, **other):
            taken, what = len(self.scorer.tokens.ids(text)), label.replace("_", " ")
            raise Unscored(f"The {what} has {taken:,} tokens, more than half of the input. {self.scorer.limit}")
        form = self.scorer.card.windows
        return tuple(windows(sentences, form, lambda part: self.fits(context=part, **other)))

    def _inputs(self, texts: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
        """Return the texts of the model's inputs by slot: one, or one for each option."""
        slots = {self.slots[name]: text for name, text in texts.items()}
        question = self.scorer.card.questions.get(self.kind)
        return [slots] if question is None else question.inputs(slots)


# -- golden pairs -------------------------------------------------------------------------------------


TOLERANCE: Final = 1e-3


class GoldenCheck(NamedTuple):
    """The result of comparing the golden pairs of a card with the model."""

    pairs: int
    difference: float
    """The largest difference between two logits; infinity if one is not a number."""

    @property
    def agree(self) -> bool:
        """True if all logits are within `TOLERANCE`."""
        return self.difference <= TOLERANCE

    @property
    def note(self) -> str:
        """The result as a sentence."""
        verb = "agree" if self.agree else "DIFFER"
        return f"Golden logits {verb} ({self.pairs} pairs, largest difference {self.difference:.1g})."


def golden_check(scorer: PairScorer) -> GoldenCheck:
    """Return the result for the golden pairs of the model's card, which has some."""
    differences = [
        abs(expected - logit)
        for golden in scorer.card.golden
        for expected, logit in zip(golden.logits, scorer.logits(golden.texts), strict=True)
    ]
    worst = math.inf if any(map(math.isnan, differences)) else max(differences)
    return GoldenCheck(len(scorer.card.golden), worst)
