"""Simple scores of a text for a question or statement, and judges that only know a score."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from merilo.judges.callables import CallableJudge
from merilo.judges.words import likeness, ngram_vector
from merilo.judging.kinds.contexts import (
    Relevance,
    RelevanceVerdict,
    Sufficiency,
    SufficiencyLabel,
    SufficiencyVerdict,
    Support,
    SupportLabel,
    SupportVerdict,
)
from merilo.judging.kinds.responses import Addresses, AddressesVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict

    Score = Callable[[str, str], float]
    """A function that rates how well a text (second) covers a question or statement (first), from 0 to 1."""
    Chance = Callable[[Question[Any]], float]
    """The same of a whole question."""

KINDS: Final[frozenset[type[Question[Any]]]] = frozenset({Relevance, Support, Sufficiency, Addresses})
K1, B = 1.2, 0.75
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")


@lru_cache(maxsize=50_000)
def terms(text: str) -> tuple[str, ...]:
    """Return the words of a text, folded; pairs of characters in scripts without spaces."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        found += [word[at : at + 2] for at in range(max(1, len(word) - 1))] if _UNSPACED.search(word) else [word]
    return tuple(found)


class Corpus:
    """The frequency of words in the labelled texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        distinct = set(texts)
        self._count = len(distinct)
        self._documents = Counter(term for text in distinct for term in set(terms(text)))
        self._length = sum(len(terms(text)) for text in distinct) / max(1, self._count)

    def weight(self, term: str) -> float:
        """Return the inverse document frequency, above 0 (as in Lucene)."""
        there = self._documents[term]
        return math.log1p((self._count - there + 0.5) / (there + 0.5))

    def bm25(self, asked: str, text: str) -> float:
        """Return Okapi BM25, scaled below 1 by s / (1 + s)."""
        counts, long = Counter(terms(text)), len(terms(text)) / (self._length or 1.0)
        score = sum(
            self.weight(term) * counts[term] * (K1 + 1) / (counts[term] + K1 * (1 - B + B * long))
            for term in set(terms(asked))
            if term in counts
        )
        return score / (1 + score)

    def recall(self, asked: str, text: str) -> float:
        """Return the fraction of the question's words, by weight, that occur in the text."""
        wanted, there = set(terms(asked)), set(terms(text))
        total = math.fsum(self.weight(term) for term in wanted)
        return math.fsum(self.weight(term) for term in wanted & there) / total if total else 0.0


def ngram_cosine(asked: str, text: str) -> float:
    """Return the cosine of merilo's own vectors of character n-grams."""
    return max(0.0, min(1.0, likeness(ngram_vector(asked), ngram_vector(text))))


def cosine_of(embed: Callable[[list[str]], Sequence[Sequence[float]]]) -> Score:
    """Return the cosine of an embedder's vectors, scaled from -1..1 to 0..1."""

    @lru_cache(maxsize=50_000)
    def vector(text: str) -> tuple[float, ...]:
        (found,) = embed([text])
        length = math.sqrt(math.fsum(each * each for each in found)) or 1.0
        return tuple(each / length for each in found)

    def score(asked: str, text: str) -> float:
        both = zip(vector(asked), vector(text), strict=True)
        return max(0.0, min(1.0, (1 + math.fsum(one * other for one, other in both)) / 2))

    return score


def of_pairs(score: Score) -> Chance:
    """Return a score of pairs as one of questions: the best context counts for support, all for sufficiency."""

    def chance(question: Question[Any]) -> float:
        match question:
            case Relevance():
                return score(question.user_input, " ".join(question.sentences))
            case Support():
                return max(score(question.statement, context) for context in question.contexts)
            case Sufficiency():
                return score(question.user_input, " ".join(question.contexts))
            case Addresses():
                return score(question.user_input, question.statement)
            case _:
                raise TypeError(f"a baseline has no score for {question.kind}")

    return chance


def judge_of(title: str, chance: Chance) -> CallableJudge:
    """Return a judge that says yes to everything, with the score as its probability."""

    def answer(question: Question[Any]) -> Verdict:
        found = chance(question)
        match question:
            case Relevance():
                return RelevanceVerdict(1, (0,), probability=found)
            case Support():
                return SupportVerdict(SupportLabel.SUPPORTED, (0,), probability=found)
            case Sufficiency():
                return SufficiencyVerdict(SufficiencyLabel.SUFFICIENT, probability=found)
            case _:
                return AddressesVerdict(addresses=True, probability=found)

    return CallableJudge(answer, answers=KINDS, title=title)
