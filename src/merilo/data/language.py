"""The language of a text: from its script alone, or identified among the languages in Latin script.

Why py3langid, and how often it is right: design/language-identification.md.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_LOOKED_AT_CHARS = 2000
_NEEDED_SHARE = 1 / 3

_IDENTIFIED_CHARS: Final = 200
_MIN_WORDS: Final = 4
_MIN_LETTERS: Final = 15
_MIN_PROBABILITY: Final = 0.5
_MIN_ENGLISH_WORDS: Final = 2
_ENGLISH_RATE: Final = 0.2
"""A text in which a fifth of the words are `ENGLISH_WORDS` is English: the model is not asked."""
_CACHED_TEXTS: Final = 4_096
_WORD: Final = re.compile(r"[^\W\d_]+")
_LANGUAGES: Final = (
    "ca", "cs", "da", "de", "en", "es", "et", "fi", "fr", "hr", "hu", "id", "it", "lt", "lv", "nl", "nn", "no", "pl",
    "pt", "ro", "sk", "sl", "sq", "sv", "tr", "vi",
)  # fmt: skip
"""Languages to choose from. Every further one costs accuracy: Malay is easily mistaken for Indonesian."""
_SAME: Final = {"nn": "no"}

ENGLISH_WORDS: Final = frozenset(
    "the of and to is are was were it that for with by this be which what who how when where did does has have had "
    "not its their they he she his her you your from can would been there these".split()
)
"""Common English words, except those that are common in other languages too."""


class _Block(NamedTuple):
    """Code points `first` to `last` of a script; one character counts as `weight` letters."""

    first: int
    last: int
    script: str
    weight: int


_BLOCKS = (
    _Block(0x0041, 0x024F, "latin", 1),
    _Block(0x0370, 0x03FF, "el", 1),
    _Block(0x0400, 0x052F, "ru", 1),
    _Block(0x0590, 0x05FF, "he", 1),
    _Block(0x0600, 0x06FF, "ar", 1),
    _Block(0x0750, 0x077F, "ar", 1),
    _Block(0x0900, 0x097F, "hi", 1),
    _Block(0x0E00, 0x0E7F, "th", 1),
    _Block(0x1100, 0x11FF, "ko", 2),
    _Block(0x1E00, 0x1EFF, "latin", 1),
    _Block(0x1F00, 0x1FFF, "el", 1),
    _Block(0x3040, 0x30FF, "kana", 3),
    _Block(0x3400, 0x4DBF, "han", 3),
    _Block(0x4E00, 0x9FFF, "han", 3),
    _Block(0xAC00, 0xD7AF, "ko", 2),
    _Block(0xF900, 0xFAFF, "han", 3),
    _Block(0xFB1D, 0xFB4F, "he", 1),
    _Block(0xFB50, 0xFDFF, "ar", 1),
    _Block(0xFE70, 0xFEFF, "ar", 1),
    _Block(0xFF66, 0xFF9D, "kana", 3),
    _Block(0x20000, 0x323AF, "han", 3),
)
_FIRSTS = [block.first for block in _BLOCKS]


def identify_language(text: str) -> str:
    """Return the code of the language of `text`, such as "de"; "en" if that is uncertain.

    Another script than Latin decides alone, as in `detect_language`. Among languages in Latin script, the first 200
    characters are identified. Fewer than four words, and results with a low probability, count as English.
    """
    language = detect_language(text)
    return _latin_language(text[:_IDENTIFIED_CHARS]) if language == "en" else language


def detect_language(text: str) -> str:
    """Return the code of the language that the script of `text` suggests; "en" if no other script dominates.

    Reads the first 2,000 characters. A script other than Latin decides if it has a third of the letters, because
    texts in every script contain Latin names. Han with kana is Japanese. Languages that share a script are not
    distinguished: all Cyrillic is "ru", all Latin "en".
    """
    if text.isascii():
        return "en"
    weights: Counter[str] = Counter()
    for char, count in Counter(text[:_LOOKED_AT_CHARS]).items():
        if char.isalpha():
            code = ord(char)
            block = _BLOCKS[max(bisect_right(_FIRSTS, code) - 1, 0)]
            if code <= block.last:
                weights[block.script] += count * block.weight
    total = sum(weights.values())
    del weights["latin"]
    if weights["kana"]:
        weights["ja"] = weights.pop("kana") + weights.pop("han", 0)
    elif weights["han"]:
        weights["zh"] = weights.pop("han")
    script, weight = max(weights.items(), key=lambda item: item[1], default=("en", 0))
    return script if weight and weight >= total * _NEEDED_SHARE else "en"


@lru_cache(maxsize=_CACHED_TEXTS)
def _latin_language(text: str) -> str:
    words = _WORD.findall(text.lower())
    if len(words) < _MIN_WORDS or sum(map(len, words)) < _MIN_LETTERS:
        return "en"  # a name or a title: it may be in any language
    english = sum(map(ENGLISH_WORDS.__contains__, words))
    if english >= max(_MIN_ENGLISH_WORDS, _ENGLISH_RATE * len(words)):
        return "en"
    language, probability = _identifier().classify(text)
    return _SAME.get(language, language) if probability >= _MIN_PROBABILITY else "en"


@cache
def _identifier() -> LanguageIdentifier:
    # Imported late: loading the model takes half a second, and many runs need no model.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(_LANGUAGES)
    return identifier
