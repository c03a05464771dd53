"""The numbers over which the curves of the embedded judge are fitted: cosines, word coverage and the reader's logits.

`training/encoder/fit.py` fits one logistic curve for each task of `TASKS`.
"""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from merilo.bounded_cache import BoundedCache
from merilo.judges.copied import strip_question_echoes
from merilo.judges.encoder.encodings import Encodings
from merilo.judges.encoder.model import Encoder, PairScore, PairScorer, Reader
from merilo.judges.words import coverage, shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judges.encoder.model import Encoded, Part, Weights

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
        """Build the graphs. Raises DataError if the weights have a later format or lack a part."""
        self.encodings = Encodings(Encoder(weights))
        self._scorer = PairScorer(Reader(weights), weights.floats("rarity"))
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

    def support(self, statement: str, sentences: Sequence[str]) -> Row:
        """Return the features of `supported` for a statement and one context, which must not be empty."""
        short, long = self.encodings.read(statement), self.encodings.read(tuple(sentences))
        held, covered = max(shares(statement, sentences, window=_WINDOW)), max(self.covered(statement, sentences))
        return covered, held, self._margin(short, long)

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
        """Return each sentence as read in the first window that contains it."""
        parts: list[Part] = []
        for window in self.encodings.read(tuple(sentences)):  # windows overlap, and together they hold every sentence
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
