"""Vectors from the characters of a text: hashed character n-grams, without a model or weights.

They measure how many words and parts of words two texts share. They do not represent meaning: a paraphrase without a
common word has a low similarity, and two sentences with the same words and opposite meanings a high one.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from math import fsum, sqrt
from typing import TYPE_CHECKING, Final
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
