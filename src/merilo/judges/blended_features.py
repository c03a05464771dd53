"""The features of the embedded judge: for each task, numbers from the words and from the encoder.

A row contains the log odds by the words alone (`merilo.judges.lexical`) and the outputs of the encoder and the reader
(`merilo.judges.encoder`), in the order given by `TASKS`. `training/encoder/fit.py` fits logistic curves over the
rows.
"""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from merilo.bounded_cache import BoundedCache
from merilo.judges.encoder.encodings import Encodings
from merilo.judges.encoder.model import Encoder, Reader
from merilo.judges.encoder.pair_scoring import PairScore, PairScorer
from merilo.judges.lexical_features import answer_features, support_features, usefulness_features
from merilo.judges.lexical_match import match
from merilo.judges.lexical_text import words
from merilo.judges.question_echo import strip_question_echoes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from merilo.judges.encoder.model import Encoded, Part
    from merilo.judges.encoder.weights import Weights
    from merilo.judges.lexical import LexicalModel
    from merilo.judges.lexical_match import Matches
    from merilo.judges.lexical_short import Answered, ShortAnswer

Row = tuple[float, ...]

TASKS: Final[Mapping[str, tuple[str, ...]]] = {
    "sentence": ("lexical", "read", "read_behind", "covered_behind"),
    "answers": ("lexical", "cosine", "evidence"),
    "sufficient": ("lexical", "cosine", "sentence_suffices"),
    "supported": ("lexical", "read"),
    "answered": ("evidence", "read"),
    "yes_or_no": ("lexical", "read"),
    "addresses": ("lexical",),
    "useful": ("lexical", "read"),
}
"""The fitted curves and the features of each, in order.

- `lexical`: the log odds by the words;
- `read`: a logit of the reader;
- `cosine`: the cosine of the vectors of both texts;
- `covered`: see `PairScore.covered`; `_behind`: the difference between a sentence and the best sentence of its
  context, at most 0;
- `evidence`, `sentence_suffices`: the reader's highest logits of any sentence of the context, as evidence and as
  sufficient alone. For a short answer, only the sentences that contain it count.
"""
_CANDIDATES: Final = 2
"""Sentences read for `evidence`: the 2 with most words of the question, and the 2 most similar to it."""
_LOWEST: Final = -12.0
"""Log odds by the words if a text has no words to compare."""
_KEPT_BYTES: Final = 16_000_000
"""Size of the cache of features by user input and context: relevance and sufficiency need the same ones."""


class _Context(NamedTuple):
    """The features of a user input and a context."""

    answers: float
    """The log odds by the words that the context helps to answer."""
    cosine: float
    evidence: float
    sentence_suffices: float


class BlendedRows:
    """Rows of features for texts; equal texts give equal rows. Threads may share it."""

    def __init__(self, weights: Weights, lexical: LexicalModel) -> None:
        """Build the graphs. Raises DataError if the weights have a later format or lack a part."""
        self.weights = weights
        self.lexical = lexical
        self.encodings = Encodings(Encoder(weights))
        self._eyes = PairScorer(Reader(weights), weights.floats("rarity"))
        self._contexts = BoundedCache(self._context, size=_bytes_of, max_size=_KEPT_BYTES)

    def sentences(self, user_input: str, sentences: Sequence[str]) -> list[Row]:
        """Return the features of `sentence` for each sentence of a context, which must not be empty."""
        found = match(self.lexical.lexicon.query(user_input), sentences, drop_copies=True)
        by_words = _by_sentence(found, self.lexical.context_row(found)[0], len(sentences))
        # Echoes of the question are removed before reading: the reader would score them as perfect matches.
        short, new = self._short(user_input)[0], strip_question_echoes(user_input, sentences)
        seen = [self._eyes.see(short, part) for part in self._parts(new)]
        read, covered = self._eyes.logits_of("sentence", seen).tolist(), [each.covered for each in seen]
        best, most = max(read), max(covered)
        return [
            (lexical, own, own - best, cover - most)
            for lexical, own, cover in zip(by_words, read, covered, strict=True)
        ]

    def context(self, user_input: str, sentences: Sequence[str]) -> Row:
        """Return the features of `answers` for a context, which must not be empty."""
        seen = self._contexts[user_input, tuple(sentences)]
        return seen.answers, seen.cosine, seen.evidence

    def sufficient(self, user_input: str, contexts: Sequence[Sequence[str]]) -> Row:
        """Return the features of `sufficient`: the highest of any context, and the log odds by the words of all."""
        together = [sentence for context in contexts for sentence in context]
        found = match(self.lexical.lexicon.query(user_input), together, drop_copies=True)
        by_words = self.lexical.curves["sufficient"].logit(self.lexical.context_row(found)[1])
        seen = [self._contexts[user_input, tuple(each)] for each in contexts]
        return (
            by_words,
            max(each.cosine for each in seen),
            max(each.sentence_suffices for each in seen),
        )

    def support(self, statement: str, sentences: Sequence[str], held: Matches | None = None) -> Row:
        """Return the features of `supported` for a statement and one context; `held`: its matches, if known."""
        found = held or self.lexical.held(statement, [sentences])[0]
        by_words = _LOWEST
        if any(found.masks):
            by_words = self.lexical.curves["supported"].logit(support_features(found, self.lexical.lexicon))
        seen = self._windows(self._short(statement), sentences)
        return by_words, float(self._margins(seen).max())

    def short(
        self, short: ShortAnswer, found: Sequence[Answered | None], contexts: Sequence[Sequence[str]]
    ) -> list[Row | None]:
        """Return the features of `answered`, or of `yes_or_no`, for each context; None if a context has no evidence.

        `found`: from `LexicalModel.short_rows`.
        """
        rows: list[Row | None] = []
        for seen, sentences in zip(found, contexts, strict=True):
            if seen is None:
                rows.append(None)
                continue
            _, margin = self.support(f"{short.asked} {short.answer}", sentences)
            if short.says_yes is not None:
                rows.append((self.lexical.curves[short.task].logit(seen.row), margin))
                continue
            read = self.sentences(short.asked, sentences)
            rows.append((max(read[at][1] for at in seen.sentences), margin))
        return rows

    def answer(self, user_input: str, statement: str) -> Row:
        """Return the features of `addresses` for a statement given in answer to a question."""
        refuses = self.lexical.noncommittal(user_input, statement)
        lexicon = self.lexical.lexicon
        by_words = answer_features(lexicon.query(user_input), words(statement), lexicon, refuses=refuses)
        return (self.lexical.curves["addresses"].logit(by_words),)

    def useful(self, user_input: str, reference: str, sentences: Sequence[str]) -> Row:
        """Return the features of `useful` for a context compared with the reference."""
        lexicon = self.lexical.lexicon
        target = match(lexicon.query(reference), sentences, drop_copies=False)
        asked = match(lexicon.query(user_input), sentences, drop_copies=True)
        seen = self._windows(self._short(reference), sentences)
        by_words = self.lexical.curves["useful"].logit(usefulness_features(target, asked))
        return by_words, float(self._margins(seen).max())

    def covered(self, text: str, sentences: Sequence[str]) -> list[float]:
        """Return, for each sentence, the similarity of the text's tokens to its own; see `PairScore.covered`."""
        short = self._short(text)[0]
        return [self._eyes.covered(short, part) for part in self._parts(sentences)]

    def _context(self, asked: tuple[str, tuple[str, ...]]) -> _Context:
        user_input, sentences = asked
        found = match(self.lexical.lexicon.query(user_input), sentences, drop_copies=True)
        logits, by_words = self.lexical.context_row(found)
        new = strip_question_echoes(user_input, sentences)
        short, long = self._short(user_input), self._long(new)
        likeliest = self._likeliest(short[0], self._parts(new), _by_sentence(found, logits, len(sentences)))
        return _Context(
            answers=self.lexical.curves["answers"].logit(by_words),
            cosine=max(float(one.pooled @ other.pooled) for one in short for other in long),
            evidence=self._highest("sentence", likeliest),
            sentence_suffices=self._highest("sufficient", likeliest),
        )

    def _likeliest(self, short: Encoded, parts: Sequence[Part], by_words: Sequence[float]) -> list[PairScore]:
        """Return the pair scores of a short text with the few sentences that share most with it."""
        covered = [self._eyes.covered(short, part) for part in parts]
        places, chosen = range(len(parts)), set[int]()
        for rank in (covered, by_words):
            chosen.update(nlargest(_CANDIDATES, places, rank.__getitem__))
        return [self._eyes.see(short, parts[at]) for at in sorted(chosen)]

    def _short(self, text: str) -> tuple[Encoded, ...]:
        return self.encodings.read(text)

    def _long(self, sentences: Sequence[str]) -> tuple[Encoded, ...]:
        return self.encodings.read(tuple(sentences))

    def _windows(self, short: Sequence[Encoded], sentences: Sequence[str]) -> list[PairScore]:
        return [self._eyes.see(one, other) for one in short for other in self._long(sentences)]

    def _parts(self, sentences: Sequence[str]) -> list[Part]:
        """Return each sentence as read in the first window that contains it."""
        long = self._long(sentences)
        parts: list[Part] = []
        # Windows overlap, so a sentence may be in two of them; the first one is used for every sentence.
        for window in long:  # windows overlap, and together they hold every sentence in order
            parts += [window.part(at) for at in range(len(parts), window.window.sentences.stop)]
        return parts

    def _highest(self, task: str, seen: Sequence[PairScore]) -> float:
        return float(self._eyes.logits_of(task, seen).max())

    def _margins(self, seen: Sequence[PairScore]) -> NDArray[np.float64]:
        """Return the log odds of supported against contradicted and not stated."""
        yes, no, unsaid = (self._eyes.logits_of("supported", seen, part) for part in range(3))
        margins: NDArray[Any] = yes - np.logaddexp(no, unsaid)  # Any: numpy's type of a difference
        return margins


def _bytes_of(asked: tuple[str, tuple[str, ...]], _: _Context) -> int:
    """Return the approximate bytes of a cached context."""
    user_input, sentences = asked
    return 500 + len(user_input) + sum(80 + len(each) for each in sentences)


def _by_sentence(found: Matches, logits: Sequence[float], sentences: int) -> list[float]:
    """Return, for each of `sentences` sentences, the highest log odds of the units it was split into."""
    odds = [_LOWEST] * sentences
    for owner, logit in zip(found.owners, logits, strict=True):
        odds[owner] = max(odds[owner], logit)
    return odds
