"""Whether texts are English, told by their letters and their commonest words: the encoder knows no other language."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEAST_PLAIN: Final = 0.9
"""The share of letters a to z below which a text is not English, whatever its words."""
_LEAST_PLAIN_ALONE: Final = 0.5
"""The same for a context without the question beside it: names, and how they are said, may stand in other letters."""
_LETTERS_A_WORD: Final = 50
"""What is left of a context without its sentences in other letters is English with one common word in so many letters.

Prose has one in some twenty; names and numbers between lines of another language have none.
"""
_KEPT_TEXTS: Final = 4_096
_WORD: Final = re.compile(r"[^\W\d_]+")
_ENGLISH: Final = frozenset(
    "the of and to is are was were it that for with by this be which what who how when where did does has have had "
    "not its their they he she his her you your from can would been there these".split()
)
_OTHERS: Final = frozenset(
    "der die das und ist nicht ein eine den dem mit von zu auf für sich wird wurde welche wie "  # German
    "el la los las que en y por con una del se fue qué cuál como su para es "  # Spanish
    "le les des et est une dans du pour qui par il au ne pas quel quelle sont "  # French
    "il lo gli che di è per sono della nel con una quale dei come "  # Italian
    "o os da do em um uma não com mais foi qual ao são "  # Portuguese
    "het een van de en niet zijn op te dat voor met wat "  # Dutch
    "și în la din care este a cu pe nu ce sunt a fost "  # Romanian
    "ve bir bu için ile olarak da de ne hangi kaç olan "  # Turkish
    "i w na z się nie jest do że jak który ".split()  # Polish
) - frozenset("a i o do die de me as do".split())
"""Without those that English texts hold too."""


class _Signs(NamedTuple):
    letters: int
    plain: int
    """Letters from a to z."""
    english: int
    """Common English words."""
    others: int
    """Common words of other languages in Latin letters."""


def is_english(*texts: str) -> bool:
    """Whether texts are English as a whole; not without a letter, and in doubt yes where all letters are Latin."""
    whole = _whole(texts)
    return whole.letters > 0 and _is_plain(whole) and whole.english >= whole.others


def all_english(asked: str, texts: Sequence[str]) -> bool:
    """Whether texts are English as a whole, and what is asked or stated is in its letters, or in digits.

    A long text does not speak for a question in other letters, or without a sign that can be read.
    """
    own = _signs(asked)
    readable = _is_plain(own) if own.letters else any(map(str.isdigit, asked))
    return readable and is_english(asked, *texts)


def english_places(asked: str, sentences: Sequence[str]) -> tuple[int, ...]:
    """Which sentences of a context are English beside what is asked or stated, ascending.

    All of an English context. Of another, those in English letters, where they are English without doubt: a line in
    other letters takes nothing from the sentences that it stands beside. Else none.
    """
    if _read_together(asked, sentences):
        return tuple(range(len(sentences)))
    places = tuple(at for at, sentence in enumerate(sentences) if _is_plain(_signs(sentence)))
    left = [sentences[at] for at in places]
    own = _whole(left)
    doubted = own.english * _LETTERS_A_WORD < own.letters
    return () if doubted or not _read_together(asked, left) else places


def _read_together(asked: str, sentences: Sequence[str]) -> bool:
    """Whether a context is English beside what is asked, and not for the sake of what is asked alone."""
    own = _whole(sentences)
    by_itself = own.plain >= _LEAST_PLAIN_ALONE * own.letters and own.english >= own.others
    return bool(sentences) and by_itself and all_english(asked, sentences)


def _whole(texts: Sequence[str]) -> _Signs:
    return _Signs(*map(sum, zip(*map(_signs, texts), strict=True))) if texts else _Signs(0, 0, 0, 0)


def _is_plain(signs: _Signs) -> bool:
    return signs.plain >= _LEAST_PLAIN * signs.letters


@lru_cache(maxsize=_KEPT_TEXTS)
def _signs(text: str) -> _Signs:
    words = _WORD.findall(text.casefold())
    letters = sum(map(len, words))
    plain = letters if text.isascii() else sum(each.isascii() for word in words for each in word)
    return _Signs(letters, plain, sum(map(_ENGLISH.__contains__, words)), sum(map(_OTHERS.__contains__, words)))
