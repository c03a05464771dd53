"""Removal of question echoes: stretches of a context that only repeat the question and add no evidence.

Words are compared by appearance: combining marks, invisible characters and underscores are ignored, and letters of
other scripts count as the Latin ones that they resemble.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import category, normalize

from merilo.cancellation import check_cancelled

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_WORDS: Final = 4
"""Minimum words of a question that can be echoed: a shorter one may occur in a context that answers it."""
MIN_SHARE: Final = 0.7
"""Fraction of the question's words that an echo repeats, without another word between them."""
_WORD: Final = re.compile(r"\w[\w\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\u0300-\u036f\ufe00-\ufe0f\ufeff]*")
_LOOKALIKES: Final = str.maketrans("аеорсухіјѕһԁԛԝкмтвнѵɡαορτυικχνε", "aeopcyxijshdqwkmtbhvgaoptuikxve")
_ASKING: Final = frozenset("how what when where which who whom whose why".split())
_CHOICES: Final = frozenset({"or", "between", "which", "whether"})
_MIN_ALONE: Final = 2
"""Words of a sentence that is an echo. One is too little: "Paris." may answer a question that names Paris."""
_MAX_QUESTION: Final = 2_000
_MAX_WORD: Final = 64
"""Characters that are compared; the caches hold no larger texts."""


class _Word(NamedTuple):
    text: str
    """The word in the form that is compared."""
    start: int
    end: int


class _Question(NamedTuple):
    words: frozenset[str]
    asking: str
    """The question word, which an answer leaves out; empty if there is none."""
    is_open: bool
    """True if no answer can consist of the question's words alone."""

    def echo(self, run: Sequence[_Word], *, alone: bool, asks: bool) -> Sequence[_Word]:
        """Return the end of a run of consecutive words of the question, in any order, that only repeats it.

        `alone`: there are no other words up to the next question mark; `asks`: a question mark follows.
        """
        if alone and self.is_open and len({word.text for word in run}) >= _MIN_ALONE:
            return run
        first = 0 if asks else next((at for at, word in enumerate(run) if word.text == self.asking), len(run))
        found = {word.text for word in run[first:]}
        return run[first:] if len(found) >= max(MIN_WORDS, MIN_SHARE * len(self.words)) else ()


def strip_question_echoes(asked: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the sentences without the stretches that repeat most of the question; some may be empty.

    An echo begins with the question word or ends in a question mark: "Viruses are the most abundant" is not an echo of
    "Which are the most abundant?". A sentence made only of the question's words is an echo too, unless it can be an
    answer ("Is it old?", "It is old."). Takes time in proportion to the words of both.
    """
    question = _question(asked[:_MAX_QUESTION])
    if len(question.words) < MIN_WORDS:
        return tuple(sentences)
    return tuple(_stripped(question, each) for each in sentences)


def _stripped(question: _Question, sentence: str) -> str:
    """Return a sentence without its echoes."""
    check_cancelled()
    *asking, stating = sentence.split("?")
    parts = [_part(question, each, asks=True) for each in asking]
    return "?".join([*parts, _part(question, stating, asks=False)])


def _part(question: _Question, text: str, *, asks: bool) -> str:
    words, left, done = _words(text), list[str](), 0
    for known, group in groupby(words, lambda word: word.text in question.words):
        run = list(group)
        if known and (echo := question.echo(run, alone=run == words, asks=asks and run[-1] is words[-1])):
            left.append(text[done : echo[0].start])
            done = echo[-1].end
    return "".join([*left, text[done:]])


def _words(text: str) -> list[_Word]:
    found = (_Word(_look(each.group()[:_MAX_WORD]), *each.span()) for each in _WORD.finditer(text))
    return [word for word in found if word.text]


@lru_cache(maxsize=4_096)
def _look(word: str) -> str:
    """Return a word in the form that is compared."""
    if word.isascii():
        return word.strip("_").casefold()
    # NFKD separates accents into marks (category M); Cf are invisible format characters such as zero-width spaces.
    plain = "".join(char for char in normalize("NFKD", word) if category(char)[0] != "M" and category(char) != "Cf")
    return plain.strip("_").casefold().translate(_LOOKALIKES)


@lru_cache(maxsize=256)
def _question(text: str) -> _Question:
    words = [word.text for word in _words(text)] or [""]
    asking = next((word for word in words if word in _ASKING), "")
    opens = text.rstrip().endswith("?") or words[0] in _ASKING
    is_open = asking != "" and opens and _CHOICES.isdisjoint(words)
    return _Question(frozenset(words), asking, is_open)
