"""Removal of question echoes: stretches of a context that only repeat the question and add no evidence.

Words are compared by appearance: combining marks, invisible characters and underscores are ignored, letters of other
scripts count as the Latin ones that they resemble, and a doubled word counts once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import category, normalize

from merilo.cancellation import check_cancelled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MIN_WORDS: Final = 4
"""Minimum words of a question that can be echoed: a shorter one may occur in a context that answers it."""
MIN_SHARE: Final = 0.7
"""Fraction of the question's words that an echo repeats, in order and without another word between them."""
_WORD: Final = re.compile(r"\w[\w\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\u0300-\u036f\ufe00-\ufe0f\ufeff]*")
_ASKS: Final = re.compile(r"[^\w?.!]{0,8}\?")
_LOOKALIKES: Final = str.maketrans("аеорсухіјѕһԁԛԝкмтвнѵɡαορτυικχνε", "aeopcyxijshdqwkmtbhvgaoptuikxve")
_ASKING: Final = frozenset("how what when where which who whom whose why".split())
_LINKS: Final = frozenset({"and"})
_CHOICES: Final = frozenset({"or", "between", "which", "whether"})
_MIN_SHUFFLED: Final = 2
_MAX_QUESTION: Final = 2_000
_MAX_WORD: Final = 64
"""Characters that are compared; the caches hold no larger texts."""


class _Question(NamedTuple):
    words: tuple[str, ...]
    asking: int
    """The position of the question word, which an answer leaves out; 0 if there is no question word."""
    is_open: bool
    """True if no answer can consist of the question's words alone."""

    @property
    def least(self) -> float:
        """Minimum number of the question's words in an echo."""
        return max(MIN_WORDS, MIN_SHARE * len(self.words))


class _Word(NamedTuple):
    text: str
    """The word in the form that is compared."""
    asks: bool
    """True if a question mark follows."""
    sentence: int
    start: int
    end: int


def strip_question_echoes(asked: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the sentences without the stretches that repeat most of the question; some may be empty.

    A stretch may span sentences. An echo contains the question word or ends in a question mark: "Viruses are the most
    abundant" is not an echo of "Which are the most abundant?". A sentence made only of the question's words, in any
    order, is an echo too, unless it can be an answer ("Is it old?", "It is old."). Takes time in proportion to the
    words of both.
    """
    question = _question(asked[:_MAX_QUESTION])
    if len(question.words) < MIN_WORDS:
        return tuple(sentences)
    left = list(sentences)
    held = [word for place, sentence in enumerate(left) for word in _words(sentence, place)]
    # From the last echo to the first, so that the positions of earlier words stay valid.
    for first, behind in reversed([*_copies(question, held)]):
        _cut(left, held[first], held[behind - 1])
    return tuple("" if _is_shuffled(question, sentence) else sentence for sentence in left)


def _words(sentence: str, place: int) -> Iterator[_Word]:
    """Yield the words of a sentence in compared form; repeated words are merged into one."""
    last: _Word | None = None
    for found in _WORD.finditer(sentence):
        text = _look(found.group()[:_MAX_WORD])
        if last is not None and text == last.text:
            last = last._replace(end=found.end(), asks=_ASKS.match(sentence, found.end()) is not None)
            continue
        if last is not None:
            yield last
        last = _Word(text, _ASKS.match(sentence, found.end()) is not None, place, *found.span()) if text else None
    if last is not None:
        yield last


@lru_cache(maxsize=4_096)
def _look(word: str) -> str:
    """Return a word in the form that is compared."""
    if word.isascii():
        return word.strip("_").casefold()
    # NFKD separates accents into marks (category M); Cf are invisible format characters such as zero-width spaces.
    plain = "".join(char for char in normalize("NFKD", word) if category(char)[0] != "M" and category(char) != "Cf")
    return plain.strip("_").casefold().translate(_LOOKALIKES)


def _is_shuffled(question: _Question, sentence: str) -> bool:
    """Return True if a sentence has only words of the question, and so adds nothing to it.

    If a question can be answered by its own words (yes or no, one or the other), the sentence must itself be a
    question.
    """
    words = {word.text for word in _words(sentence, 0)} - _LINKS
    # One word is too little evidence: "Paris." may be the answer to a question that names Paris.
    if len(words) < _MIN_SHUFFLED or not words.issubset(question.words):
        return False
    return question.is_open or ("?" in sentence and len(words) >= question.least)


def _copies(question: _Question, held: Sequence[_Word]) -> Iterator[tuple[int, int]]:
    """Yield the first index and the end index of each echo among the words, in order, without overlaps."""
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
        elif word.asks:  # the question word is missing or was replaced
            before = _alike(reversed(words), reversed(texts[max(done, place + 1 - len(words)) : place + 1])) - 1
            behind = 1
        if before + behind >= question.least:
            done = place + behind
            yield place - before, done


def _alike(ours: Iterator[str] | Sequence[str], theirs: Iterator[str] | Sequence[str]) -> int:
    """Return the number of leading words that are equal."""
    count = 0
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            break
        count += 1
    return count


def _cut(left: list[str], first: _Word, last: _Word) -> None:
    """Remove the text from one word to another. Later sentences must have been handled already."""
    if first.sentence == last.sentence:
        text = left[first.sentence]
        left[first.sentence] = text[: first.start] + text[last.end :]
        return
    left[first.sentence] = left[first.sentence][: first.start]
    for between in range(first.sentence + 1, last.sentence):
        left[between] = ""
    left[last.sentence] = left[last.sentence][last.end :]


@lru_cache(maxsize=256)
def _question(text: str) -> _Question:
    words = tuple(word.text for word in _words(text, 0))
    asking = next((place for place, word in enumerate(words) if word in _ASKING), None)
    is_open = asking is not None and text.rstrip().endswith("?") and _CHOICES.isdisjoint(words)
    return _Question(words, asking or 0, is_open)
