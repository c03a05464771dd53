"""Detection of English text by its alphabet and its language; the encoder knows no other language."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.cancellation import check_cancelled
from merilo.data.language import ENGLISH_WORDS, identify_language

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
_BEGINNINGS: Final = 200
_MIN_BEGINNING: Final = 40
"""Characters of all texts, and of each one, in which the language is identified."""
_KEPT_TEXTS: Final = 4_096
_MAX_KEPT: Final = 4_000
"""Characters. Longer texts are counted each time, so the cache holds no large texts."""
_WORD: Final = re.compile(r"[^\W\d_]+")


class _Signs(NamedTuple):
    letters: int
    plain: int
    """Letters from a to z."""
    english: int
    """Common English words."""


def is_english(*texts: str) -> bool:
    """Return True if texts taken together are English.

    False for texts without letters. Texts in plain letters are English unless they are identified as another
    language: a short question or a list of names is more often English than not.
    """
    whole = _whole(texts)
    return whole.letters > 0 and _is_plain(whole) and _in_english(texts)


def is_english_with_query(asked: str, texts: Sequence[str]) -> bool:
    """Return True if texts together with a question or statement are English, and the latter alone is readable.

    Readable means mostly plain letters (a to z) or, without any letters, at least one digit. A long English text does
    not make a question in another script, or one made of punctuation, count as English.
    """
    own = _signs(asked)
    # The question is checked alone too, because a long English context would hide it in the total share.
    readable = _is_plain(own) if own.letters else any(map(str.isdigit, asked))
    return readable and is_english(asked, *texts)


def split_english(asked: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the English lines of each sentence of a context; empty for a sentence without one. The query or statement
    counts as evidence of the language too.

    Lines in another script do not change how adjacent sentences are classified. Lines that are mostly in another
    script are removed first; if what remains is still not English, lines that are partly in another script are
    removed too.
    """
    whole = tuple(sentences)
    for least in (_MIN_PLAIN_ALONE, _MIN_PLAIN):
        english = tuple(_lines(sentence, least) for sentence in whole)
        part = [text for text in english if text]
        # With lines removed, what remains could be a few Latin words of another language: require common words.
        confident = english == whole or _speaks_english([asked]) or _speaks_english([asked, *part])
        if confident and _read_together(asked, part):
            return english
    return ("",) * len(whole)


def _lines(text: str, least: float) -> str:
    """Return the lines of a text that are mostly plain letters."""
    lines = text.split("\n")
    plain = [line for line in lines if _is_plain(_signs(line), least)]
    return text if len(plain) == len(lines) else "\n".join(plain).strip()


def _read_together(asked: str, sentences: Sequence[str]) -> bool:
    """Return True if a context is English both with the question and alone."""
    own = _whole(sentences)
    alone = _is_plain(own, _MIN_PLAIN_ALONE) and _in_english(sentences)
    return bool(sentences) and alone and is_english_with_query(asked, sentences)


def _in_english(texts: Sequence[str]) -> bool:
    """Return True if no other language is identified in the beginnings of the texts."""
    return identify_language(_beginning(texts)) == "en"


def _beginning(texts: Sequence[str]) -> str:
    # An equal part of each text, because a long one would decide alone.
    return "\n".join(text[: max(_MIN_BEGINNING, _BEGINNINGS // len(texts))] for text in texts)


def _speaks_english(texts: Sequence[str]) -> bool:
    signs = _whole(texts)
    return signs.english * _LETTERS_A_WORD >= max(signs.letters, 1) and _in_english(texts)


def _whole(texts: Sequence[str]) -> _Signs:
    return _Signs(*map(sum, zip(*map(_signs, texts), strict=True))) if texts else _Signs(0, 0, 0)


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
    return _Signs(letters, plain, sum(map(ENGLISH_WORDS.__contains__, words)))
