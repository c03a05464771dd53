"""Takes out of a context what only repeats the question: said back, it brings no answer nearer."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


class _Word(NamedTuple):
    text: str
    sentence: int
    start: int
    end: int


def without_copies(asked: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """The sentences without the stretches, also across them, that repeat most of the question; some may be left empty.

    A copy has the word that asks: "Viruses are the most abundant" is none of "Which are the most abundant?". Takes time
    in proportion to the words of both.
    """
    question = _question(asked)
    if len(question.words) < LEAST_WORDS:
        return tuple(sentences)
    held = [
        _Word(found.group().casefold(), place, *found.span())
        for place, sentence in enumerate(sentences)
        for found in _WORD.finditer(sentence)
    ]
    left = list(sentences)
    for first, behind in reversed([*_copies(question, [word.text for word in held])]):
        _cut(left, held[first], held[behind - 1])
    return tuple(left)


def _copies(question: _Question, held: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where copies begin and end among the words, in order, none over another."""
    words, asking = question
    least = max(LEAST_WORDS, LEAST_SHARE * len(words))
    done = 0
    for place, word in enumerate(held):
        if word != words[asking] or place < done:
            continue
        before = _alike(reversed(words[:asking]), reversed(held[max(done, place - asking) : place]))
        behind = _alike(words[asking:], held[place : place + len(words) - asking])
        if before + behind >= least:
            done = place + behind
            yield place - before, done


def _alike(ours: Iterator[str] | Sequence[str], theirs: Iterator[str] | Sequence[str]) -> int:
    """How many words are equal from the first on."""
    count = 0
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            break
        count += 1
    return count


def _cut(left: list[str], first: _Word, last: _Word) -> None:
    """Take out what lies from one word to another; the sentences behind have been dealt with."""
    if first.sentence == last.sentence:
        text = left[first.sentence]
        left[first.sentence] = text[: first.start] + text[last.end :]
        return
    left[first.sentence] = left[first.sentence][: first.start]
    for between in range(first.sentence + 1, last.sentence):
        left[between] = ""
    left[last.sentence] = left[last.sentence][last.end :]


@lru_cache(maxsize=_KEPT_QUESTIONS)
def _question(text: str) -> _Question:
    words = tuple(word.casefold() for word in _WORD.findall(text))
    return _Question(words, next((place for place, word in enumerate(words) if word in _ASKING), 0))
