"""Detection of English text by its alphabet and its language; the encoder knows no other language."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from merilo.cancellation import check_cancelled
from merilo.data.language import identify_language

if TYPE_CHECKING:
    from collections.abc import Sequence

_MIN_PLAIN: Final = 0.9
"""The fraction of letters a to z below which a text is not English, whatever its words."""
_MIN_PLAIN_LINE: Final = 0.5
"""The same for a line, which may contain names in another script."""
_BEGINNINGS: Final = 200
_MIN_BEGINNING: Final = 40
"""Characters of all texts, and of each one, in which the language is identified."""
_KEPT_TEXTS: Final = 4_096
_MAX_KEPT: Final = 4_000
"""Characters. Longer texts are counted each time, so the cache holds no large texts."""
_WORD: Final = re.compile(r"[^\W\d_]+")


def is_english(*texts: str) -> bool:
    """Return True if texts taken together are English.

    False for texts without letters. Texts in plain letters are English unless they are identified as another
    language: a short question or a list of names is more often English than not.
    """
    letters, plain = (sum(counts) for counts in zip((0, 0), *map(_letters, texts), strict=True))
    return letters > 0 and plain >= _MIN_PLAIN * letters and _in_english(texts)


def is_english_with_query(asked: str, texts: Sequence[str]) -> bool:
    """Return True if texts together with a question or statement are English, and the latter alone is readable.

    Readable means mostly plain letters (a to z) or, without any letters, at least one digit. A long English text does
    not make a question in another script, or one made of punctuation, count as English.
    """
    # The question is checked alone too, because a long English context would hide it in the total share.
    readable = _is_plain(asked, _MIN_PLAIN) and any(map(str.isalnum, asked))
    return readable and is_english(asked, *texts)


def split_english(asked: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the English lines of each sentence of a context; empty for a sentence without one. The query or statement
    counts as evidence of the language too.

    Lines in another script do not change how adjacent sentences are classified. Lines that are mostly in another
    script are removed first; if what remains is still not English, lines that are partly in another script are
    removed too.
    """
    for least in (_MIN_PLAIN_LINE, _MIN_PLAIN):
        english = tuple(_plain_lines(sentence, least) for sentence in sentences)
        part = [text for text in english if text]
        if part and _in_english(part) and is_english_with_query(asked, part):
            return english
    return ("",) * len(sentences)


def _plain_lines(text: str, least: float) -> str:
    """Return the lines of a text that are mostly plain letters."""
    lines = text.split("\n")
    plain = [line for line in lines if _is_plain(line, least)]
    return text if len(plain) == len(lines) else "\n".join(plain).strip()


def _in_english(texts: Sequence[str]) -> bool:
    # An equal part of each text, because a long one would decide alone.
    size = max(_MIN_BEGINNING, _BEGINNINGS // len(texts))
    return identify_language("\n".join(text[:size] for text in texts)) == "en"


def _is_plain(text: str, least: float) -> bool:
    letters, plain = _letters(text)
    return plain >= least * letters


def _letters(text: str) -> tuple[int, int]:
    """Return the number of letters of a text, and of those from a to z."""
    # Counting a large context takes long enough for Ctrl-C to matter.
    check_cancelled()
    return _kept(text) if len(text) <= _MAX_KEPT else _counted(text)


@lru_cache(maxsize=_KEPT_TEXTS)
def _kept(text: str) -> tuple[int, int]:
    return _counted(text)


def _counted(text: str) -> tuple[int, int]:
    words = _WORD.findall(text.casefold())
    letters = sum(map(len, words))
    return letters, letters if text.isascii() else sum(each.isascii() for word in words for each in word)
