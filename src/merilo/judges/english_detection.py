"""Detection of English text by its alphabet and its most common words; the encoder knows no other language."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.cancellation import check_cancelled

if TYPE_CHECKING:
    from collections.abc import Sequence

_MIN_PLAIN: Final = 0.9
"""The fraction of letters a to z below which a text is not English, whatever its words."""
_MIN_PLAIN_ALONE: Final = 0.5
"""The same for a line, and for a context without the question, which may contain names in another script."""
_LETTERS_A_WORD: Final = 80
"""The remaining part of a context is English if it has a common English word per 80 letters.

The count covers the question or statement alone, or together with that part. English prose has about one common word
per 20 letters. Sentences of another language that use only letters from a to z have none.
"""
_KEPT_TEXTS: Final = 4_096
_MAX_KEPT: Final = 4_000
"""Characters. Longer texts are counted each time, so the cache holds no large texts."""
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
"""Common words of other languages, except those that occur in English texts too."""


class _Signs(NamedTuple):
    letters: int
    plain: int
    """Letters from a to z."""
    english: int
    """Common English words."""
    others: int
    """Common words of other languages in Latin letters."""


def is_english(*texts: str) -> bool:
    """Return True if texts taken together are English.

    False for texts without letters. Texts in plain letters with as many English as other common words, or none, are
    English.
    """
    # At most as many foreign as English words, not "at least one English word": a short question or a list of names
    # may have neither, and is more often English than not.
    whole = _whole(texts)
    return whole.letters > 0 and _is_plain(whole) and whole.english >= whole.others


def is_english_with_query(asked: str, texts: Sequence[str]) -> bool:
    """Return True if texts together with a question or statement are English, and the latter alone is readable.

    Readable means mostly plain letters (a to z) or, without any letters, at least one digit. A long English text does
    not make a question in another script, or one made of punctuation, count as English.
    """
    own = _signs(asked)
    # The question is checked alone too, because a long English context would hide it in the total share.
    readable = _is_plain(own) if own.letters else any(map(str.isdigit, asked))
    return readable and is_english(asked, *texts)


class EnglishSplit(NamedTuple):
    """The sentences of a context, split into English text and the rest; a part without text of its kind is empty."""

    english: tuple[str, ...]
    others: tuple[str, ...]


def split_english(asked: str, sentences: Sequence[str]) -> EnglishSplit:
    """Split the sentences of a context into their English lines and the rest. The query or statement counts as
    evidence too.

    Lines in another script do not change how adjacent sentences are classified. Lines that are mostly in another
    script are removed first; if what remains is still not English, lines that are partly in another script are
    removed too.
    """
    whole = tuple(sentences)
    for least in (_MIN_PLAIN_ALONE, _MIN_PLAIN):
        english = tuple(_lines(sentence, least, plain=True) for sentence in whole)
        part = [text for text in english if text]
        # With lines removed, what remains could be a few Latin words of another language: require common words.
        confident = english == whole or any(map(_speaks_english, (_signs(asked), _whole([asked, *part]))))
        if confident and _read_together(asked, part):
            return EnglishSplit(english, tuple(_lines(sentence, least, plain=False) for sentence in whole))
    return EnglishSplit(("",) * len(whole), whole)


def _lines(text: str, least: float, *, plain: bool) -> str:
    """Return the lines of a text that are mostly plain letters, or the other lines."""
    if "\n" not in text:
        return text if _is_plain(_signs(text), least) is plain else ""
    return "\n".join(line for line in text.split("\n") if _is_plain(_signs(line), least) is plain).strip()


def _read_together(asked: str, sentences: Sequence[str]) -> bool:
    """Return True if a context is English both with the question and alone."""
    own = _whole(sentences)
    alone = _is_plain(own, _MIN_PLAIN_ALONE) and own.english >= own.others
    return bool(sentences) and alone and is_english_with_query(asked, sentences)


def _speaks_english(signs: _Signs) -> bool:
    return signs.english > signs.others and signs.english * _LETTERS_A_WORD >= signs.letters


def _whole(texts: Sequence[str]) -> _Signs:
    return _Signs(*map(sum, zip(*map(_signs, texts), strict=True))) if texts else _Signs(0, 0, 0, 0)


def _is_plain(signs: _Signs, least: float = _MIN_PLAIN) -> bool:
    return signs.plain >= least * signs.letters


def _signs(text: str) -> _Signs:
    # Counting a large context takes long enough for Ctrl-C to matter.
    check_cancelled()
    return _kept_signs(text) if len(text) <= _MAX_KEPT else _counted(text)


@lru_cache(maxsize=_KEPT_TEXTS)
def _kept_signs(text: str) -> _Signs:
    return _counted(text)


def _counted(text: str) -> _Signs:
    words = _WORD.findall(text.casefold())
    letters = sum(map(len, words))
    plain = letters if text.isascii() else sum(each.isascii() for word in words for each in word)
    return _Signs(letters, plain, sum(map(_ENGLISH.__contains__, words)), sum(map(_OTHERS.__contains__, words)))
