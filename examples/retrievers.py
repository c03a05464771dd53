"""The two retrievers whose results the examples hold, and how often each finds the gold passage."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by did do does for from had has have how in is it its of on or that the this"
        " to was were what when where which who why will with",
    )
)


@dataclass(frozen=True)
class Passage:
    """One entry of the corpus; `id` is its title and a digest of its untouched text."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Hit:
    """A retrieved passage and its score, on the scale of its retriever."""

    passage: Passage
    score: float


class Retriever(Protocol):
    """Scores every passage for a question: one score a passage, in corpus order, higher is better."""

    def scores(self, question: str, /) -> list[float]:
        """One score a passage, in corpus order."""
        ...


class BM25:
    """Okapi BM25 over the whole text, question words and passages without stop words; scores from 0 up."""

    def __init__(self, corpus: Sequence[Passage], *, k1: float = 1.2, b: float = 0.75) -> None:
        counts = [Counter(word for word in words(passage.text) if word not in _STOP) for passage in corpus]
        lengths = [count.total() for count in counts]
        mean_length = sum(lengths) / len(lengths)
        holders = Counter(word for count in counts for word in count)
        self._counts = counts
        self._rarity = {w: math.log(1 + (len(corpus) - n + 0.5) / (n + 0.5)) for w, n in holders.items()}
        self._damping = [k1 * (1 - b + b * length / mean_length) for length in lengths]
        self._k1 = k1

    def scores(self, question: str, /) -> list[float]:
        """One score a passage, 0 where it shares no word with the question."""
        asked = [word for word in words(question) if word in self._rarity]
        return [self._score(asked, place) for place in range(len(self._counts))]

    def _score(self, asked: list[str], place: int) -> float:
        count, damping = self._counts[place], self._damping[place]
        return sum(self._rarity[w] * count[w] * (self._k1 + 1) / (count[w] + damping) for w in asked)


class OpeningOverlap:
    """Share of the question's distinct words among the first words of the passage; scores in [0, 1].

    Naive on purpose, as a first attempt may be: only the opening is indexed, and "the" weighs as much as a
    name.
    """

    def __init__(self, corpus: Sequence[Passage], *, opening: int = 60) -> None:
        self._openings = [frozenset(words(passage.text)[:opening]) for passage in corpus]

    def scores(self, question: str, /) -> list[float]:
        """One share a passage."""
        asked = frozenset(words(question))
        return [len(asked & opening) / len(asked) for opening in self._openings]


@dataclass(frozen=True)
class Quality:
    """How well a retriever finds the gold passage: means over all questions, in [0, 1]."""

    hit_rate_at_1: float
    hit_rate_at_5: float
    mean_reciprocal_rank_at_5: float

    def __str__(self) -> str:
        """The three figures as cells of a Markdown table."""
        return f"{self.hit_rate_at_1:.3f} | {self.hit_rate_at_5:.3f} | {self.mean_reciprocal_rank_at_5:.3f}"


def words(text: str) -> list[str]:
    """The lower-case words and numbers of the text, in order."""
    return re.findall(r"[^\W_]+", text.lower())


def search(retriever: Retriever, corpus: Sequence[Passage], question: str, *, k: int) -> list[Hit]:
    """Up to k passages with a score above 0, best first; equal scores stay in corpus order."""
    scores = retriever.scores(question)
    order = sorted((place for place, score in enumerate(scores) if score > 0), key=lambda place: -scores[place])
    return [Hit(corpus[place], scores[place]) for place in order[:k]]


def quality(ranked_ids: Sequence[Sequence[str]], gold_ids: Sequence[str]) -> Quality:
    """Of lists of up to five ids, best first, with one gold id for each list."""
    reciprocals = [
        1 / (1 + ids.index(gold)) if gold in ids else 0.0 for ids, gold in zip(ranked_ids, gold_ids, strict=True)
    ]
    asked = len(reciprocals)
    return Quality(
        hit_rate_at_1=sum(r == 1 for r in reciprocals) / asked,
        hit_rate_at_5=sum(r > 0 for r in reciprocals) / asked,
        mean_reciprocal_rank_at_5=sum(reciprocals) / asked,
    )
