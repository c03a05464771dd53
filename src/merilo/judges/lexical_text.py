"""Texts as the lexical judge reads them: words reduced to stems, with numbers, names and a few flags."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from merilo.bounded_cache import BoundedCache
from merilo.judges.lexical_words import (
    CAUSE_WORDS,
    CYRILLIC_ENDINGS,
    DATE_WORDS,
    IRREGULAR,
    NEGATIONS,
    NUMBER_WORDS,
    OPENS_QUESTION,
    PERSONAL,
    QUESTION_WORDS,
)
from merilo.judges.numerals import in_digits

# Scripts without spaces: Thai, Lao, Burmese, Khmer, kana, Han. Hangul is included because its words have long endings.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f"
)
# Python's \w excludes combining marks. Without them, words of Hindi, Arabic with vowels and others would be split.
MARKS: Final = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e4e"
_TOKEN: Final = re.compile(rf"\d+(?:[.,]\d+)*|[^\W_](?:[^\W_]|[{MARKS}])*")
_UNSPACED_RUN: Final = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_HAS_UNSPACED: Final = re.compile(f"[{_UNSPACED}]")
_ACCENT: Final = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]")
_KEEPS_ACCENT: Final = re.compile("[\u1ea0-\u1eff\u01a0\u01a1\u01af\u01b0\u0110\u0111\u0102\u0103]")  # Vietnamese
_CYRILLIC: Final = re.compile("[\u0400-\u04ff]")
_ARABIC_ARTICLE: Final = re.compile("^(?:وال|بال|كال|فال|ال|لل)(?=...)")
_ENDS_QUESTION: Final = re.compile(r"(?:[?？؟\u037e]|[\u0370-\u03ff\u1f00-\u1fff][»\"”)]?;)[\s\"'»”)\]]*$")
_NOT_SHORT: Final = re.compile(r"n['’]t\b", re.IGNORECASE)

PREFIX_LETTERS: Final = 5
UNKNOWN_SHORT_WEIGHT: Final = 0.5
_CACHED_BYTES: Final = 48_000_000
_BYTES_PER_STEM: Final = 400
"""Approximate bytes per stem in a `Words`: strings, pairs and entries of four sets."""
_MAX_CACHED: Final = 8_000
"""Characters. A longer text is analysed each time."""
_MAX_CACHED_TOKEN: Final = 32
_MAX_CACHED_PHRASE: Final = 12
"""Characters of a token that is not ASCII: in scripts without spaces it has a stem per character."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """One text, analysed. The sets are for membership only; sums run over the ordered tuples."""

    stems: tuple[str, ...]
    distinct: tuple[str, ...]
    members: frozenset[str]
    prefixes: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    question_words: frozenset[str]
    numbers: tuple[str, ...]
    names: tuple[str, ...]
    is_question: bool
    is_negated: bool
    is_personal: bool
    has_date: bool
    has_cause: bool

    def __len__(self) -> int:
        return len(self.stems)


def words(text: str) -> Words:
    """Return the words of `text`. Short texts are cached, so a context shared by many questions is read once."""
    return _cached_words[text] if len(text) <= _MAX_CACHED else _words(text)


def prefix(stem: str) -> str:
    """Return the first letters of a stem, by which inflected forms of most alphabetic languages still match."""
    return stem[:PREFIX_LETTERS]


def weight(stem: str, table: Mapping[str, float]) -> float:
    """Return the weight of a stem, in [0, 1]: 0 for a function word, 1 for a word that training never saw."""
    known = table.get(stem)
    if known is not None:
        return known
    return UNKNOWN_SHORT_WEIGHT if len(stem) <= 2 and not stem[:1].isdigit() and stem.isascii() else 1.0


def is_unspaced(stem: str) -> bool:
    """Return True for a stem of a script without spaces: a pair of characters, not a word."""
    return not stem.isascii() and _HAS_UNSPACED.match(stem) is not None


def unit_texts(text: str, *, longest: int) -> list[str]:
    """Return `text` in consecutive pieces of at most `longest` characters, split at white space if possible."""
    pieces: list[str] = []
    start = 0
    while len(text) - start > longest:
        cut = text.rfind(" ", start + longest // 2, start + longest)
        end = cut if cut > 0 else start + longest
        pieces.append(text[start:end])
        start = end
    pieces.append(text[start:])
    return pieces


def _words(text: str) -> Words:
    # NFKC joins full-width digits, ligatures and superscripts with their plain forms.
    plain = text if text.isascii() else in_digits(unicodedata.normalize("NFKC", text))
    stems: list[str] = []
    lowered: list[str] = []
    names: dict[str, None] = {}
    for number, match in enumerate(_TOKEN.finditer(plain)):
        token = match.group()
        found = stems_of(token)
        stems.extend(found)
        low = token.lower()
        lowered.append(low)
        # The first word of a text is capitalised anyway, so it counts as a name only if it is all capitals.
        if token[0].isupper() and (number or token[1:].isupper()) and len(token) > 1:
            names.update(dict.fromkeys(found))
    distinct = tuple(dict.fromkeys(stems))
    low_set = frozenset(lowered)
    numbers = tuple(stem for stem in distinct if stem[:1].isdigit())
    return Words(
        stems=tuple(stems),
        distinct=distinct,
        members=frozenset(distinct),
        prefixes=frozenset(map(prefix, distinct)),
        pairs=frozenset(pairwise(stems)),
        question_words=low_set & QUESTION_WORDS,
        numbers=numbers,
        names=tuple(names),
        is_question=bool(_ENDS_QUESTION.search(plain[-40:])),
        is_negated=not NEGATIONS.isdisjoint(low_set) or bool(_NOT_SHORT.search(plain)),
        is_personal=not PERSONAL.isdisjoint(low_set),
        has_date=any(len(number) == 4 and number[:2] in _YEARS for number in numbers)
        or not DATE_WORDS.isdisjoint(low_set),
        has_cause=not CAUSE_WORDS.isdisjoint(low_set),
    )


def _bytes_of(text: str, taken: Words) -> int:
    """Return the approximate bytes of a cached text."""
    return 1_000 + len(text) + _BYTES_PER_STEM * len(taken.stems)


_cached_words: Final = BoundedCache(_words, size=_bytes_of, max_size=_CACHED_BYTES)
_YEARS: Final = frozenset(str(century) for century in range(10, 21))


def asks(text: str) -> bool:
    """Return True if a text reads as a question, by its final punctuation or its first word."""
    first = _TOKEN.search(text)
    return bool(_ENDS_QUESTION.search(text[-40:])) or (first is not None and first.group().lower() in OPENS_QUESTION)


def stems_of(token: str) -> tuple[str, ...]:
    """Return the stems of a token: one per word or number, one per two characters of an unspaced script."""
    longest = _MAX_CACHED_TOKEN if token.isascii() else _MAX_CACHED_PHRASE
    return _cached_stems(token) if len(token) <= longest else _stems(token)


@lru_cache(maxsize=65_536)
def _cached_stems(token: str) -> tuple[str, ...]:
    return _stems(token)


def _stems(token: str) -> tuple[str, ...]:
    if token[0].isdecimal():
        return (_number(token),)
    if token.isascii():
        return (_english(token.lower()),)
    if _HAS_UNSPACED.search(token):
        return tuple(stem for run in _UNSPACED_RUN.findall(token) for stem in _unspaced(run))
    return (_alphabetic(token.lower()),)


def _number(token: str) -> str:
    plain = token if token.isascii() else "".join(str(unicodedata.decimal(char, char)) for char in token)
    # "1,889" is one number with a thousands separator; "1,5" is a decimal in many languages.
    plain = re.sub(r",(?=\d{3}(?!\d))", "", plain).replace(",", ".")
    # "1.234.567" has thousands separators; a single dot as in "1.234" stays a decimal point.
    plain = re.sub(r"\.(?=\d{3}(?:\.|$))", "", plain) if plain.count(".") > 1 else plain
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return plain.lstrip("0") or "0"


def _unspaced(run: str) -> tuple[str, ...]:
    """Return the character pairs of a run of an unspaced script; treat anything else as a word."""
    if not _HAS_UNSPACED.match(run):
        return stems_of(run)
    if len(run) == 1:
        return (run,)
    return tuple(run[i : i + 2] for i in range(len(run) - 1))


def _alphabetic(word: str) -> str:
    if _CYRILLIC.search(word):
        return _cyrillic(word.replace("ё", "е"))
    if not _KEEPS_ACCENT.search(word):
        word = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", word)))
    if word.isascii() and word:
        return _english(word)
    return _ARABIC_ARTICLE.sub("", word) or word


def _cyrillic(word: str) -> str:
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word]
    for ending in ("ся", "сь"):
        if word.endswith(ending) and len(word) > 5:
            word = word[:-2]
            break
    for ending in CYRILLIC_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _english(word: str) -> str:
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word]
    if word in IRREGULAR:
        word = IRREGULAR[word]
    elif len(word) > 3:
        word = _without_ending(word)
    if len(word) > 3 and word[-1] == "y":
        return word[:-1] + "i"
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word


def _without_ending(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word[-1] == "s" and word[-2] not in "sui":
        word = word[:-1]
    for ending in ("ingly", "edly", "ing", "ed", "ly"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= 3 and any(letter in "aeiouy" for letter in rest):
            undouble = rest[-1] == rest[-2] and rest[-1] not in "lsz" and ending != "ly"
            return rest[:-1] if undouble else rest
    return word
