"""Takes out of a context what only repeats the question: said back, it brings no answer nearer."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_WORDS: Final = 4
"""A shorter question is no copy by itself: it may well stand in a context that answers it."""
LEAST_SHARE: Final = 0.7
"""The share of the question's words that a copy repeats, in order and without another word between."""
_WORD: Final = re.compile(r"\w+")
_ASKING: Final = frozenset("how what when where which who whom whose why".split())
_KEPT_QUESTIONS: Final = 256


class _Question(NamedTuple):
    words: tuple[str, ...]
    asking: int
    """The place of the word that asks, which an answer leaves out: the first one where there is no such word."""


def without_copies(asked: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """The sentences, each without the stretches that repeat most of the question; some may be left empty.

    A copy has the word that asks: "Viruses are the most abundant" is none of "Which are the most abundant?".
    """
    question = _question(asked)
    if len(question.words) < LEAST_WORDS:
        return tuple(sentences)
    return tuple(_cleared(question, sentence) for sentence in sentences)


def _cleared(question: _Question, sentence: str) -> str:
    least = max(LEAST_WORDS, LEAST_SHARE * len(question.words))
    while True:
        spans = [found.span() for found in _WORD.finditer(sentence)]
        held = [sentence[start:end].casefold() for start, end in spans]
        if sum(map(question.words.__contains__, held)) < least:
            return sentence
        copy = SequenceMatcher(None, held, question.words, autojunk=False).find_longest_match()
        if copy.size < least or not copy.b <= question.asking < copy.b + copy.size:
            return sentence
        sentence = sentence[: spans[copy.a][0]] + sentence[spans[copy.a + copy.size - 1][1] :]


@lru_cache(maxsize=_KEPT_QUESTIONS)
def _question(text: str) -> _Question:
    words = tuple(word.casefold() for word in _WORD.findall(text))
    return _Question(words, next((place for place, word in enumerate(words) if word in _ASKING), 0))
