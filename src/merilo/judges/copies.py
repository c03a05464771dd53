"""Takes out of a context what only repeats the question: said back, it brings no answer nearer.

Words are compared as they look: without marks, signs that are not seen and underscores, letters of other scripts as the
Latin ones that they look like, and a word that is doubled counts once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import category, normalize

from merilo.cancellation import check_cancelled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEAST_WORDS: Final = 4
"""A shorter question is no copy by itself: it may well stand in a context that answers it."""
LEAST_SHARE: Final = 0.7
"""The share of the question's words that a copy repeats, in order and without another word between."""
_WORD: Final = re.compile(r"\w[\w\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\u0300-\u036f\ufe00-\ufe0f\ufeff]*")
_ASKS: Final = re.compile(r"[^\w?.!]{0,8}\?")
_LOOKALIKES: Final = str.maketrans("аеорсухіјѕһԁԛԝкмтвнѵɡαορτυικχνε", "aeopcyxijshdqwkmtbhvgaoptuikxve")
_ASKING: Final = frozenset("how what when where which who whom whose why".split())
_LINKS: Final = frozenset({"and"})
_CHOICES: Final = frozenset({"or", "between", "which", "whether"})
_LEAST_SHUFFLED: Final = 2
_KEPT_QUESTIONS: Final = 256
_KEPT_WORDS: Final = 4_096
_LONGEST_KEPT_QUESTION: Final = 2_000
_LONGEST_KEPT_WORD: Final = 64
"""Characters; what is longer is worked out each time, so that the caches hold no large texts."""


class _Question(NamedTuple):
    words: tuple[str, ...]
    asking: int
    """The place of the word that asks, which an answer leaves out: the first one where there is no such word."""
    is_open: bool
    """Whether no answer can be made of its words alone."""

    @property
    def least(self) -> float:
        """So many of its words make a copy."""
        return max(LEAST_WORDS, LEAST_SHARE * len(self.words))


class _Word(NamedTuple):
    text: str
    """As it is compared."""
    asks: bool
    """Whether a question mark follows."""
    sentence: int
    start: int
    end: int


def without_copies(asked: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """The sentences without the stretches, also across them, that repeat most of the question; some may be left empty.

    A copy has the word that asks: "Viruses are the most abundant" is none of "Which are the most abundant?"; or a
    question mark behind it. A sentence of the question's words alone, in any order, is one too, unless it may answer
    ("Is it old?", "It is old."). Takes time in proportion to the words of both.
    """
    question = _kept_question(asked) if len(asked) <= _LONGEST_KEPT_QUESTION else _question(asked)
    if len(question.words) < LEAST_WORDS:
        return tuple(sentences)
    left = list(sentences)
    held = [word for place, sentence in enumerate(left) for word in _words(sentence, place)]
    for first, behind in reversed([*_copies(question, held)]):
        _cut(left, held[first], held[behind - 1])
    return tuple("" if _is_shuffled(question, sentence) else sentence for sentence in left)


def _words(sentence: str, place: int) -> Iterator[_Word]:
    """The words of a sentence, as they look; of equal ones in a row the first, up to the end of the last."""
    last: _Word | None = None
    for found in _WORD.finditer(sentence):
        text = _looks(found.group())
        if last is not None and text == last.text:
            last = last._replace(end=found.end(), asks=_ASKS.match(sentence, found.end()) is not None)
            continue
        if last is not None:
            yield last
        last = _Word(text, _ASKS.match(sentence, found.end()) is not None, place, *found.span()) if text else None
    if last is not None:
        yield last


def _looks(word: str) -> str:
    """Return a word as it is compared."""
    return _kept_look(word) if len(word) <= _LONGEST_KEPT_WORD else _look(word)


@lru_cache(maxsize=_KEPT_WORDS)
def _kept_look(word: str) -> str:
    return _look(word)


def _look(word: str) -> str:
    if word.isascii():
        return word.strip("_").casefold()
    plain = "".join(sign for sign in normalize("NFKD", word) if category(sign)[0] != "M" and category(sign) != "Cf")
    return plain.strip("_").casefold().translate(_LOOKALIKES)


def _is_shuffled(question: _Question, sentence: str) -> bool:
    """Whether a sentence has the question's words and no other, and so says nothing that was not asked.

    A question that can be answered by its own words (yes or no, one or the other) is shuffled only where it is asked.
    """
    words = {word.text for word in _words(sentence, 0)} - _LINKS
    if len(words) < _LEAST_SHUFFLED or not words.issubset(question.words):
        return False
    return question.is_open or ("?" in sentence and len(words) >= question.least)


def _copies(question: _Question, held: Sequence[_Word]) -> Iterator[tuple[int, int]]:
    """Where copies begin and end among the words, in order, none over another."""
    words, asking = question.words, question.asking
    texts = [word.text for word in held]
    done = 0
    for place, word in enumerate(held):
        if place < done:
            continue
        check_cancelled()
        before, behind = 0, 0
        if word.text == words[asking]:
            before = _alike(reversed(words[:asking]), reversed(texts[max(done, place - asking) : place]))
            behind = _alike(words[asking:], texts[place : place + len(words) - asking])
        elif word.asks:  # the word that asks is missing, or was made another
            before = _alike(reversed(words), reversed(texts[max(done, place + 1 - len(words)) : place + 1])) - 1
            behind = 1
        if before + behind >= question.least:
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
def _kept_question(text: str) -> _Question:
    return _question(text)


def _question(text: str) -> _Question:
    words = tuple(word.text for word in _words(text, 0))
    asking = next((place for place, word in enumerate(words) if word in _ASKING), None)
    is_open = asking is not None and text.rstrip().endswith("?") and _CHOICES.isdisjoint(words)
    return _Question(words, asking or 0, is_open)
