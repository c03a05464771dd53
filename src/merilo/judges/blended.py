"""The model of the embedded judge: cosines, words and a small reader, combined by one logistic curve for each task.

The encoder knows English only. In other languages words alone decide relevance, and nothing else is judged. What the
model cannot judge raises `CannotJudge`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from heapq import nlargest
from importlib.resources import as_file, files
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.data.short_answers import taken_apart
from merilo.errors import DataError
from merilo.judges.copied import strip_question_echoes
from merilo.judges.encoder.model import Encoded, Encoder, Encodings, PairScore, PairScorer, Part, Reader, Weights
from merilo.judges.words import (
    WORDS_FILE,
    coverage,
    is_english,
    is_english_with_query,
    model_file,
    shares,
    split_english,
    stems,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# -- excerpts of long contexts ------------------------------------------------------------------------
# Passages are selected by words. Each passage of a long context is scored by the weight of the words that it shares
# with the question or statement. The best passages are used, in their original order, until the excerpt is full. All
# later steps read the excerpt only, so the time and memory of a verdict are bounded, however long a context is.
# Sizes are in tokens of the encoder. Six characters count as at least one token, so a single endless word has a size
# too.

CONTEXT_SIZE: Final = 20_000
"""Maximum tokens read of one context: about 85,000 characters of English."""
QUESTION_SIZE: Final = 80_000
"""Maximum tokens read of all contexts of one question. If they have more, each gets an equal part."""
MAX_PAIRS: Final = 2_000
"""Maximum pairs of a window of the question or statement and a window of the contexts."""
_PASSAGE_SIZE: Final = 128
_WINDOW_SIZE: Final = 127
"""Tokens of a text per window of the encoder; on average it holds more."""
_CHARACTERS_PER_TOKEN: Final = 6
_MIN_READ: Final = 600
"""Characters. Of a sentence that has more than this and than the limit in tokens, only the beginning is read."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The sentences of a context that are read, with their positions in the context."""

    sentences: tuple[str, ...]
    places: tuple[int, ...] | None = None
    """Ascending; None if the context is read whole."""

    def place(self, sentence: int) -> int:
        """Return the position in the whole context of a sentence of the excerpt."""
        return sentence if self.places is None else self.places[sentence]


def excerpts(model: BlendedModel, asked: Sequence[str], contexts: Sequence[Sequence[str]]) -> list[Excerpt]:
    """Return the excerpt of each context, given as its sentences. `asked`: the texts that select the passages."""
    lengths = [sum(map(len, each)) for each in contexts]
    if max(lengths, default=0) <= CONTEXT_SIZE and sum(lengths) <= _question_size(sum(map(len, asked))):
        return [Excerpt(tuple(each)) for each in contexts]  # short enough without counting tokens
    most = _question_size(sum(_size(model, each) for each in asked))
    sizes = [sum(_size(model, text) for text in each) for each in contexts]
    fits = sum(min(each, CONTEXT_SIZE) for each in sizes) <= most
    limit = CONTEXT_SIZE if fits else most // len(contexts)
    return [
        Excerpt(tuple(each)) if whole <= limit else _excerpt(model, asked, each, limit)
        for each, whole in zip(contexts, sizes, strict=True)
    ]


def _size(model: BlendedModel, text: str) -> int:
    check_cancelled()
    return max(len(model.features.encodings.encoder.wordpiece.ids(text)), len(text) // _CHARACTERS_PER_TOKEN)


def _question_size(asked: int) -> int:
    """Return the maximum tokens of contexts for a question or statement of this size.

    The limit exists because each window of the question is paired with each window of the contexts.
    """
    return min(QUESTION_SIZE, MAX_PAIRS * _WINDOW_SIZE // max(1, -(-asked // _WINDOW_SIZE)))


def _excerpt(model: BlendedModel, asked: Sequence[str], sentences: Sequence[str], limit: int) -> Excerpt:
    """Return the passages of a context that share most with the texts; at least one, and the first on ties.

    A passage that only repeats a question scores nothing for it.
    """
    read = [each[: max(limit, _MIN_READ)] for each in sentences]
    sizes = [_size(model, each) for each in read]
    passages, room = list[list[int]](), -1
    for at, size in enumerate(sizes):
        room -= size
        if room < 0:
            passages.append([])
            room = _PASSAGE_SIZE - size
        passages[-1].append(at)
    texts = [[read[at] for at in passage] for passage in passages]
    scores = [sum(coverage(each, strip_question_echoes(each, own)) for each in asked) for own in texts]
    kept, left = list[int](), limit
    for place in sorted(range(len(passages)), key=scores.__getitem__, reverse=True):  # stable: ties keep their order
        left -= sum(sizes[at] for at in passages[place])
        # Stop at the first passage that does not fit: a smaller, worse one would be less relevant text.
        if left < 0 and kept:
            break
        kept += passages[place]
    places = tuple(sorted(kept))
    return Excerpt(tuple(read[at] for at in places), places)


# -- the model ----------------------------------------------------------------------------------------

WEIGHTS_FILE: Final = "encoder.v1.safetensors"
CURVES_FILE: Final = "curves.v3.json"
RULES_VERSION: Final = 12
"""Part of the judge's fingerprint: raised with any change to the reading of texts that can move a number."""
DIGITS: Final = 6
_EVIDENCE_SHARE: Final = 0.6
"""Fraction of the best sentence's share of words from which another sentence is evidence too."""


class CannotJudge(Exception):
    """The model does not judge this; the message names it.

    `probability`: of yes, for an order of what is not judged; None if unknown.
    """

    def __init__(self, message: str, probability: float | None = None) -> None:
        super().__init__(message)
        self.probability = probability


@dataclass(frozen=True, slots=True)
class Curve:
    """A logistic regression over clipped features."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    slopes: tuple[float, ...]
    intercept: float
    thresholds: Mapping[str, float]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:  # Any: parsed JSON
        """Return the curve stored as JSON."""
        low, high, slopes = (tuple(fields[name]) for name in ("low", "high", "slopes"))
        return cls(low, high, slopes, fields["intercept"], dict(fields["thresholds"]))

    def probability(self, row: Sequence[float]) -> float:
        """Return the probability of yes, in (0, 1), rounded to 6 digits."""
        total = self.intercept
        for value, low, high, slope in zip(row, self.low, self.high, self.slopes, strict=True):
            total += slope * min(max(value, low), high)
        return round(1.0 / (1.0 + math.exp(-total)), DIGITS)


@dataclass(frozen=True, slots=True)
class ContextResult:
    """A judgement of one context; `level` is 0 for no, 1 for a part, 2 for yes."""

    level: int
    probability: float
    yes_from: float
    """The lowest probability at which the level is above 0."""
    evidence: tuple[int, ...] = ()
    """Indices of sentences, ascending; empty exactly if the level is 0."""
    closest: int | None = None
    """The sentence that is most likely evidence, if any."""


class _Part(NamedTuple):
    """The sentences of a context that contain English text."""

    places: tuple[int, ...]
    """Their positions among the context's sentences."""
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class BlendedModel:
    """The model that answers each task; equal texts always give equal answers. Use `BlendedModel.load()`."""

    curves: Mapping[str, Curve]
    agreement: Mapping[str, Any]  # Any: nested tables of numbers, printed as they are
    """Agreement with human labels, by task and kind of data; see `training/README.md` for the fields."""
    trained_on: Mapping[str, str]
    """The licence of each source that the model was fitted on."""
    fingerprint: str
    """The hexadecimal SHA-256 of the curves, which name the weights, and of the table of words together."""
    weights: Weights
    _lock: Lock = field(default_factory=Lock, repr=False)
    _features: list[PairFeatures] = field(default_factory=list, repr=False)

    @staticmethod
    @cache
    def load() -> BlendedModel:
        """Return the packaged model, which is read and checked once; its graphs are built at first use.

        Raises DataError if one of its files is missing, damaged or does not match the others.
        """
        try:
            with as_file(files("merilo.judges").joinpath(WEIGHTS_FILE)) as path:
                weights = Weights.read(path)
        except OSError as error:
            raise DataError(f"Cannot read a file of the embedded judge ({error}); reinstall merilo.") from error
        return BlendedModel.of(model_file(CURVES_FILE), weights)

    @classmethod
    def of(cls, curves: bytes, weights: Weights) -> Self:
        """Build the model from these parts. Raises DataError for curves of other weights."""
        fields = json.loads(curves)
        if (fitted_for := fields["weights"]) != weights.fingerprint:
            raise DataError(
                f"Cannot use the curves of the embedded judge (fitted for weights {fitted_for[:12]}, these are "
                f"{weights.fingerprint[:12]}); reinstall merilo, or fit them again."
            )
        found = {name: Curve.of(fields["curves"][name]) for name in TASKS}
        return cls(
            found,
            fields["agreement"],
            fields["trained_on"],
            sha256(curves + model_file(WORDS_FILE)).hexdigest(),
            weights,
        )

    @property
    def features(self) -> PairFeatures:
        """The features of texts; the graphs are built at first use."""
        with self._lock:  # several threads may ask at once, but the graphs are built once
            if not self._features:
                self._features.append(PairFeatures(self.weights))
            return self._features[0]

    def relevance(self, user_input: str, sentences: Sequence[str]) -> ContextResult:
        """Grade how relevant a context is to the user input, with the sentences that are evidence."""
        read = _english_parts(user_input, [sentences])
        if not read:
            return self._by_words(user_input, sentences)
        curve, own = self.curves["answers"], read[0].sentences
        seen = self.features.context(user_input, own)
        p_relevant = curve.probability((seen.cosine, seen.coverage, seen.evidence))
        level = sum(p_relevant >= curve.thresholds[name] for name in ("partly", "yes"))
        closest = read[0].places[seen.closest]
        if not level:
            return ContextResult(level, p_relevant, curve.thresholds["partly"], closest=closest)
        sentence = self.curves["sentence"]
        found = [sentence.probability(row) for row in self.features.sentences(user_input, own)]
        chosen = [at for at, each in enumerate(found) if each >= sentence.thresholds["yes"]] or [_argmax(found)]
        evidence = tuple(read[0].places[at] for at in chosen)
        return ContextResult(level, p_relevant, curve.thresholds["partly"], evidence, closest)

    def usefulness(self, user_input: str, reference: str, sentences: Sequence[str]) -> ContextResult:
        """Judge whether a context helps to arrive at the reference, with the sentences that are evidence."""
        read = _english_parts(user_input, [sentences])
        if stems(reference) and read and not is_english_with_query(user_input, (reference, *read[0].sentences)):
            raise CannotJudge("a reference in a language other than English")
        curve = self.curves["useful"]
        if not read:
            if stems(user_input) and any(map(stems, sentences)):
                raise CannotJudge("texts in a language other than English")
            return ContextResult(0, 0.0, curve.thresholds["yes"])
        own = read[0].sentences
        p_useful = curve.probability(self.features.support(reference, own)[1:])
        best = read[0].places[_argmax(self.features.covered(reference, own))]
        useful = p_useful >= curve.thresholds["yes"]
        return ContextResult(2 * useful, p_useful, curve.thresholds["yes"], (best,) if useful else (), best)

    def p_sufficient(self, user_input: str, contexts: Sequence[Sequence[str]]) -> float | None:
        """Return the probability that contexts, as sentences, are enough to answer; None if none is in English."""
        read = _english_parts(user_input, contexts)
        if not read:
            return None
        seen = [self.features.context(user_input, part.sentences) for part in read]
        covered = coverage(user_input, [text for part in read for text in part.sentences])
        row = (max(each.cosine for each in seen), covered, max(each.suffices for each in seen))
        return self.curves["sufficient"].probability(row)

    def p_support(self, statement: str, contexts: Sequence[Sequence[str]]) -> float | None:
        """Return the probability that one of the contexts, each given as its sentences, supports a statement.

        Of a short answer: that one of their sentences answers its question. None if no context is in English.
        """
        read, (asked, said) = _english_parts(statement, contexts), taken_apart(statement) or ("", statement)
        if asked:
            rows = self.features.answered(asked, [part.sentences for part in read])
            return max(map(self.curves["answered"].probability, rows), default=None)
        found = (self.features.support(said, part.sentences) for part in read)
        return max(map(self.curves["supported"].probability, found), default=None)

    def _by_words(self, user_input: str, sentences: Sequence[str]) -> ContextResult:
        """Judge relevance by the words that both texts share; both must be in one language."""
        text = "\n".join(sentences)
        words = any(map(str.isalpha, user_input)) and any(map(str.isalpha, text))
        if words and is_english(user_input) is not is_english(text):
            raise CannotJudge("a question and a context in different languages")
        new = strip_question_echoes(user_input, sentences)
        curve, found = self.curves["words"], shares(user_input, new)
        best, p_relevant = max(found, default=0.0), curve.probability(PairFeatures.words(user_input, new))
        level = sum(p_relevant >= curve.thresholds[name] for name in ("partly", "yes")) if best else 0
        chosen = tuple(at for at, share in enumerate(found) if share >= _EVIDENCE_SHARE * best) if level else ()
        return ContextResult(level, p_relevant, curve.thresholds["partly"], chosen, _argmax(found) if best else None)


def _english_parts(asked: str, contexts: Sequence[Sequence[str]]) -> list[_Part]:
    found: list[_Part] = []
    for sentences in contexts:
        english = split_english(asked, sentences)
        places = tuple(at for at, text in enumerate(english) if text)
        if places:
            found.append(_Part(places, tuple(english[at] for at in places)))
    return found


def _argmax(values: Sequence[float]) -> int:
    """Return the index of the largest value (the first one on ties)."""
    return max(range(len(values)), key=lambda place: (values[place], -place))


# -- features of pairs ---------------------------------------------------------------------------------
# The numbers over which the curves are fitted: cosines, word coverage and the reader's logits.
# `training/encoder/fit.py` fits one logistic curve for each task of `TASKS`.

Row = tuple[float, ...]
TASKS: Final[Mapping[str, tuple[str, ...]]] = {
    "answers": ("cosine", "coverage", "evidence"),
    "sufficient": ("cosine", "coverage", "suffices"),
    "sentence": ("read", "read_behind", "covered_behind", "share"),
    "supported": ("covered", "window_share", "read"),
    "answered": ("read", "read_behind", "share"),
    "useful": ("window_share", "read"),
    "words": ("coverage", "best_share"),
}
"""The fitted curves and the features of each, in order.

- `cosine`: of the vectors of both texts; `coverage`: the fraction of the short text's words, by weight, in the long
  one; `share`: the same for one sentence, `best_share` for the best one, `window_share` for the best three in a row;
- `covered`: the similarity of the short text's tokens to the best sentence, see `PairScore.covered`;
- `read`: a logit of the reader; `evidence`, `suffices`: its highest one of any sentence of the context;
- `_behind`: the difference between a sentence and the best sentence of its context, at most 0;
- `words`: relevance in languages that the encoder does not know.
"""
_CANDIDATES: Final = 2
"""Sentences read for `evidence`: the 2 with most words of the question, and the 2 most similar to it."""
_WINDOW: Final = 3
_KEPT_BYTES: Final = 16_000_000


class ContextFeatures(NamedTuple):
    """The features of a user input and a context."""

    cosine: float
    coverage: float
    evidence: float
    suffices: float
    closest: int
    """The sentence whose tokens are most similar to those of the user input."""


class PairFeatures:
    """Features of a short text and a long one; equal texts give equal numbers. Threads may share it."""

    def __init__(self, weights: Weights) -> None:
        """Build the graphs."""
        self.encodings = Encodings(Encoder(weights))
        self._scorer = PairScorer(Reader(weights), weights["rarity"])
        # Relevance and sufficiency need the same ones.
        self._contexts = BoundedCache(self._context, size=_bytes_of, max_size=_KEPT_BYTES)

    def context(self, user_input: str, sentences: Sequence[str]) -> ContextFeatures:
        """Return the features of a context, which must not be empty."""
        return self._contexts[user_input, tuple(sentences)]

    def sentences(self, user_input: str, sentences: Sequence[str]) -> list[Row]:
        """Return the features of `sentence` for each sentence of a context, which must not be empty."""
        # Echoes of the question are removed before reading: the reader would score them as perfect matches.
        new, short = strip_question_echoes(user_input, sentences), self.encodings.read(user_input)[0]
        seen = [self._scorer.see(short, part) for part in self._parts(new)]
        read, covered = self._scorer.logits_of("sentence", seen).tolist(), [each.covered for each in seen]
        best, most = max(read), max(covered)
        return [
            (own, own - best, cover - most, share)
            for own, cover, share in zip(read, covered, shares(user_input, new), strict=True)
        ]

    def answered(self, user_input: str, contexts: Sequence[Sequence[str]]) -> list[Row]:
        """Return the features of `answered` for each sentence of contexts, none of which may be empty."""
        rows = [row for own in contexts for row in self.sentences(user_input, own)]
        best = max((row[0] for row in rows), default=0.0)
        return [(row[0], row[0] - best, row[3]) for row in rows]

    def support(self, statement: str, sentences: Sequence[str]) -> Row:
        """Return the features of `supported` for a statement and one context, which must not be empty."""
        held, covered = max(shares(statement, sentences, window=_WINDOW)), self.covered(statement, sentences)
        # Of a text in several windows the reader reads the one with the closest sentence.
        closest, long = _argmax(covered), self.encodings.read(tuple(sentences))
        near = [each for each in long if closest in each.window.sentences]
        return covered[closest], held, self._margin(self.encodings.read(statement), near)

    @staticmethod
    def words(user_input: str, sentences: Sequence[str]) -> Row:
        """Return the features of `words` for a context without echoes of the question."""
        return coverage(user_input, sentences), max(shares(user_input, sentences), default=0.0)

    def covered(self, text: str, sentences: Sequence[str]) -> list[float]:
        """Return, for each sentence, the similarity of the text's tokens to its own; see `PairScore.covered`."""
        short = self.encodings.read(text)[0]
        return [self._scorer.covered(short, part) for part in self._parts(sentences)]

    def _context(self, asked: tuple[str, tuple[str, ...]]) -> ContextFeatures:
        user_input, sentences = asked
        new = strip_question_echoes(user_input, sentences)
        short, parts = self.encodings.read(user_input), self._parts(new)
        covered, chosen = [self._scorer.covered(short[0], part) for part in parts], set[int]()
        for rank in (covered, shares(user_input, new)):
            chosen.update(nlargest(_CANDIDATES, range(len(parts)), rank.__getitem__))
        seen = [self._scorer.see(short[0], parts[at]) for at in sorted(chosen)]
        return ContextFeatures(
            self._cosine(short, self.encodings.read(tuple(new))),
            coverage(user_input, new),
            float(self._scorer.logits_of("sentence", seen).max()),
            float(self._scorer.logits_of("sufficient", seen).max()),
            covered.index(max(covered)),
        )

    def _parts(self, sentences: Sequence[str]) -> list[Part]:
        """Return each sentence as read in its window; of one in several windows, the part in the first."""
        parts: list[Part] = []
        for window in self.encodings.read(tuple(sentences)):
            parts += [window.part(at) for at in range(len(parts), window.window.sentences.stop)]
        return parts

    def _margin(self, short: Sequence[Encoded], long: Sequence[Encoded]) -> float:
        """Return the highest log odds of supported against contradicted and not stated."""
        seen: list[PairScore] = [self._scorer.see(one, other) for one in short for other in long]
        yes, no, unsaid = (self._scorer.logits_of("supported", seen, part) for part in range(3))
        return float((yes - np.logaddexp(no, unsaid)).max())

    @staticmethod
    def _cosine(short: Sequence[Encoded], long: Sequence[Encoded]) -> float:
        return max(float(one.pooled @ other.pooled) for one in short for other in long)


def _bytes_of(asked: tuple[str, tuple[str, ...]], _: ContextFeatures) -> int:
    """Return the approximate bytes of a cached context."""
    user_input, sentences = asked
    return 500 + len(user_input) + sum(80 + len(each) for each in sentences)
