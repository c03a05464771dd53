"""Words of a text in any language: stems, compared by their beginnings and weighted by rarity.

English words lose their endings. A word of another alphabet is its first letters, and text of a script without spaces
is its pairs of characters. `training/words.py` makes the table of weights.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from math import fsum, sqrt
from typing import TYPE_CHECKING, Final
from zlib import crc32

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.data.language import identify_language
from merilo.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# The packaged files of the embedded judge, checked against the digests recorded when they were built.

LOCK: Final = "model.lock"
"""One line `SHA-256  name` per file, as sha256sum writes it. The weights file contains its own digest."""


def model_file(name: str) -> bytes:
    """Return the content of a file of the model. Raises DataError if it is missing or differs from the shipped one."""
    folder = files("merilo.judges")
    try:
        content = folder.joinpath(name).read_bytes()
        lines = folder.joinpath(LOCK).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read a file of the embedded judge ({error}); reinstall merilo.") from error
    # A damaged or edited model would give plausible numbers, so it must not be used silently.
    if f"{sha256(content).hexdigest()}  {name}" not in lines:
        raise DataError(
            f"{folder.joinpath(name)}, a file of the embedded judge, differs from the shipped one; reinstall merilo."
        )
    return content


WORDS_FILE: Final = "words.v1.json"
# Scripts without spaces: Thai, Lao, Burmese, Khmer, kana, Han. Hangul is included because its words have long endings.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f"
)
# Python's \w excludes combining marks. Without them, words of Hindi, Arabic with vowels and others would be split.
_MARKS: Final = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e4e"
_TOKEN: Final = re.compile(rf"\d+(?:[.,]\d+)*|[^\W_](?:[^\W_]|[{_MARKS}])*")
_RUN: Final = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_HAS_UNSPACED: Final = re.compile(f"[{_UNSPACED}]")
_ACCENT: Final = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]")
_GROUPS: Final = re.compile(r",(?=\d{3}(?!\d))")
_ENGLISH_LETTERS: Final = 5
_OTHER_LETTERS: Final = 4
"""First letters of a stem that are compared, so that inflected forms are equal."""
_UNKNOWN_SHORT: Final = 0.5
_CACHED_BYTES: Final = 32_000_000
_BYTES_PER_STEM: Final = 100
_MAX_CACHED: Final = 8_000
"""Characters. The stems of a longer text are read each time."""


def stems(text: str) -> tuple[str, ...]:
    """Return the stems of a text, in order. Short texts are cached, so a context of many questions is read once."""
    return _cached[text] if len(text) <= _MAX_CACHED else _stems(text)


def weight(stem: str) -> float:
    """Return the weight of a stem, in [0, 1]: 0 for a function word, 1 for a word that the table does not have."""
    known = _table()[0].get(stem)
    if known is not None:
        return known
    return _UNKNOWN_SHORT if len(stem) <= 2 and not stem[:1].isdigit() and stem.isascii() else 1.0


def shares(asked: str, texts: Iterable[str], *, window: int = 1) -> list[float]:
    """Return the fraction of a text's words, by weight, that each of the texts contains, in [0, 1].

    `window`: the number of consecutive texts that are read together, from each text on.
    """
    weights, held = _held(asked, texts)
    return [_share(weights, held[at : at + window]) for at in range(len(held))]


def coverage(asked: str, texts: Iterable[str]) -> float:
    """Return the fraction of a text's words, by weight, that the other texts together contain, in [0, 1]."""
    return _share(*_held(asked, texts))


def _held(asked: str, texts: Iterable[str]) -> tuple[dict[str, float], list[frozenset[str]]]:
    """Return the weight of each stem of a text, and those of its stems that each of the other texts contains."""
    weights = {stem: weight(stem) for stem in stems(asked)}
    held: list[frozenset[str]] = []
    for text in texts:
        check_cancelled()
        held.append(frozenset(stems(text)).intersection(weights))
    return weights, held


def _share(weights: Mapping[str, float], held: Sequence[frozenset[str]]) -> float:
    found = frozenset[str]().union(*held)
    return math.fsum(own for stem, own in weights.items() if stem in found) / (math.fsum(weights.values()) or 1.0)


def _stems(text: str) -> tuple[str, ...]:
    # NFKC joins full-width digits, ligatures and superscripts with their plain forms.
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return tuple(stem for token in _TOKEN.findall(plain) for stem in _of_token(token))


def _of_token(token: str) -> tuple[str, ...]:
    if token[0].isdecimal():
        return (_GROUPS.sub("", "".join(str(unicodedata.decimal(char, char)) for char in token)).replace(",", "."),)
    word = token.lower()
    if word.isascii():
        return (_english(word),)
    if not _HAS_UNSPACED.search(word):
        word = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", word)))
        return (_english(word) if word.isascii() and word else word[:_OTHER_LETTERS],)
    return tuple(stem for run in _RUN.findall(word) for stem in _of_run(run))


def _of_run(run: str) -> Iterable[str]:
    if not _HAS_UNSPACED.match(run):
        return (run[:_OTHER_LETTERS],)
    return [run[at : at + 2] for at in range(len(run) - 1)] or (run,)


@lru_cache(maxsize=65_536)
def _english(word: str) -> str:
    word = _table()[1].get(word) or (_without_ending(word) if len(word) > 3 else word)
    if len(word) > 3 and word[-1] in "ey":
        word = word[:-1] + ("i" if word[-1] == "y" else "")
    return word[:_ENGLISH_LETTERS]


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


@lru_cache(maxsize=1)
def _table() -> tuple[Mapping[str, float], Mapping[str, str]]:
    """Return the weights of stems, and the bases of irregular English words."""
    fields = json.loads(model_file(WORDS_FILE))
    found = {stem: int(level) / fields["levels"] for level, own in fields["weights"].items() for stem in own.split(" ")}
    return found, {form: base for base, forms in fields["bases"].items() for form in forms.split(" ")}


def _bytes_of(text: str, found: tuple[str, ...]) -> int:
    """Return the approximate bytes of a cached text."""
    return 300 + len(text) + _BYTES_PER_STEM * len(found)


_cached: Final = BoundedCache(_stems, size=_bytes_of, max_size=_CACHED_BYTES)


# Vectors from the characters of a text: hashed character n-grams, without a model or weights.
#
# They measure how many words and parts of words two texts share. They do not represent meaning: a paraphrase without a
# common word has a low similarity, and two sentences with the same words and opposite meanings a high one.

NAME: Final = "hashed character n-grams v1"
"""Part of the fingerprint: raised when a vector can change."""
DIMENSIONS: Final = 512

_SIZES: Final = (3, 4, 5)
_WORD: Final = re.compile(r"\w+")
_MIX: Final = 0x9E3779B1  # 2^32 / golden ratio: spreads what CRC leaves in the low bits (Knuth, TAOCP 3, 6.4)


def ngram_vector(text: str) -> list[float]:
    """Return the vector of a text: `DIMENSIONS` numbers of length 1, all 0 for a text without a word.

    Each word, case folded (NFKC) and between two spaces, gives its n-grams of 3 to 5 characters and itself. The hash
    of each n-gram selects one dimension and its plus or minus; its weight is the square root of its count. Only
    operations that IEEE 754 rounds exactly are used, so the numbers are the same on every machine. After Cavnar &
    Trenkle, "N-Gram-Based Text Categorization" (1994) and Weinberger et al., "Feature Hashing" (2009).
    """
    vector = [0.0] * DIMENSIONS
    for ngram, times in Counter(_ngrams(text)).items():
        mixed = crc32(ngram.encode("utf-8", "surrogatepass")) * _MIX & 0xFFFFFFFF
        weight = sqrt(times)
        vector[mixed >> 23] += weight if mixed >> 22 & 1 else -weight
    length = sqrt(fsum(number * number for number in vector))
    return [number / length for number in vector] if length else vector


def likeness(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the cosine of two such vectors, 0 if it is negative, in [0, 1]."""
    return min(1.0, max(0.0, fsum(a * b for a, b in zip(left, right, strict=True))))


def _ngrams(text: str) -> Iterator[str]:
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        bounded = f" {word} "
        yield bounded
        for size in _SIZES:
            if size < len(bounded):
                yield from (bounded[at : at + size] for at in range(len(bounded) - size + 1))


# -- which texts are English ---------------------------------------------------------------------------
# By their alphabet and their language; the encoder knows no other language.

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
_LETTERS: Final = re.compile(r"[^\W\d_]+")


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
    words = _LETTERS.findall(text.casefold())
    letters = sum(map(len, words))
    return letters, letters if text.isascii() else sum(each.isascii() for word in words for each in word)
