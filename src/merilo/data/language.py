"""The language of a text: from its script alone, or identified among the languages in Latin script.

Two functions answer, and only `identify_language` knows every script. `detect_language` knows the scripts of merilo
0.1.0, so that a sample stored without a language keeps its questions.

Why py3langid, and how often it is right: design/adapters-and-data.md.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from py3langid.langid import LanguageIdentifier

_LOOKED_AT_CHARS = 2000
_NEEDED_SHARE = 1 / 3

_IDENTIFIED_CHARS: Final = 200
_MIN_WORDS: Final = 4
_MIN_LETTERS: Final = 15
_MIN_PROBABILITY: Final = 0.5
_MIN_AGAINST_ENGLISH: Final = 0.9
"""The same for a text in plain letters with a word that only English has."""
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

_ONLY_ENGLISH: Final = ENGLISH_WORDS - set("of is was to for by has have had he her can not be it and were".split())
"""Those that no other language of `_LANGUAGES` has."""


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
_NOT_LATIN: Final = re.compile("[^\u0000-\u024f\u2000-\u206f]")
"""Finds a character that is neither of the Latin blocks nor general punctuation, such as a dash."""
_FIRSTS = [block.first for block in _BLOCKS]

UNKNOWN: Final = "unknown"
"""The language of a text in a script that several languages share, or that merilo does not know."""
_LANGUAGE_OF_SCRIPT: Final = {
    "ARABIC": "ar", "ARMENIAN": "hy", "BENGALI": "bn", "CYRILLIC": "ru", "DEVANAGARI": "hi", "GEORGIAN": "ka",
    "GREEK": "el", "GUJARATI": "gu", "GURMUKHI": "pa", "HANGUL": "ko", "HEBREW": "he", "KANNADA": "kn", "KHMER": "km",
    "LAO": "lo", "LATIN": "latin", "MALAYALAM": "ml", "ORIYA": "or", "SINHALA": "si", "TAMIL": "ta", "TELUGU": "te",
    "THAANA": "dv", "THAI": "th",
}  # fmt: skip
"""Language of a script, by the first word of the Unicode names of the letters."""
OTHER_SCRIPTS: Final = frozenset({"ja", "zh", *_LANGUAGE_OF_SCRIPT.values()} - {"latin"})
"""Languages that are not written in Latin script."""
_ASSAMESE: Final = frozenset("ৰৱ")
"""Letters of the Bengali script that Bengali does not use."""


def identify_language(text: str) -> str:
    """Return the code of the language of `text`, such as "de"; "en" if that is uncertain, "unknown" for other scripts.

    Another script than Latin decides alone, as in `detect_language`, but no script counts as Latin that is not. Among
    languages in Latin script, the first 200 characters are identified. Fewer than four words, and results with a low
    probability, count as English.
    """
    language = "en"
    if not text.isascii():
        weights = _weights(text, _script_of_any)
        if not _ASSAMESE.isdisjoint(text[:_LOOKED_AT_CHARS]):
            weights[UNKNOWN] += weights.pop("bn", 0)
        language = _language_of(weights)
    return _latin_language(text[:_IDENTIFIED_CHARS]) if language == "en" else language


def detect_language(text: str) -> str:
    """Return the code of the language that the script of `text` suggests; "en" if none of `_BLOCKS` but Latin does.

    Reads the first 2,000 characters. A script other than Latin decides if it has a third of the letters, because
    texts in every script contain Latin names. Han with kana is Japanese. Languages that share a script are not
    distinguished: all Cyrillic is "ru", all Latin "en".
    """
    if text.isascii() or _NOT_LATIN.search(text, 0, _LOOKED_AT_CHARS) is None:
        return "en"
    return _language_of(_weights(text, lambda _: ""))


def _weights(text: str, script_of_other: Callable[[str], str]) -> Counter[str]:
    """Return the letters of each script. `script_of_other`: of a letter outside `_BLOCKS`; empty to leave it out."""
    weights: Counter[str] = Counter()
    for char, count in Counter(text[:_LOOKED_AT_CHARS]).items():
        if char.isalpha():
            code = ord(char)
            block = _BLOCKS[max(bisect_right(_FIRSTS, code) - 1, 0)]
            if code <= block.last:
                weights[block.script] += count * block.weight
            elif other := script_of_other(char):
                weights[other] += count
    return weights


@lru_cache(maxsize=_CACHED_TEXTS)
def _script_of_any(char: str) -> str:
    """Return the language of a letter's script, "latin", or "unknown"; empty for signs that belong to no script."""
    script = unicodedata.name(char, "").split(" ")[0]
    modifier = unicodedata.category(char) == "Lm" and script not in _LANGUAGE_OF_SCRIPT
    return "" if modifier else _LANGUAGE_OF_SCRIPT.get(script, UNKNOWN)


def _language_of(weights: Counter[str]) -> str:
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
    has_english = text.isascii() and not _ONLY_ENGLISH.isdisjoint(words)
    needed = _MIN_AGAINST_ENGLISH if has_english else _MIN_PROBABILITY
    return _SAME.get(language, language) if probability >= needed else "en"


@cache
def _identifier() -> LanguageIdentifier:
    # Imported late: loading the model takes half a second, and many runs need no model.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(_LANGUAGES)
    # Built again from the columns of these languages: the one read from the file keeps 28 MB of all others.
    return LanguageIdentifier(
        identifier.nb_ptc, identifier.nb_pc, identifier.nb_classes, identifier.tk_nextmove, identifier.tk_output,
        norm_probs=True, tk_row=identifier.tk_row,
    )  # fmt: skip
