"""Words of a text in any language: stems, compared by their beginnings and weighted by rarity.

English words lose their endings. A word of another alphabet is its first letters, and text of a script without spaces
is its pairs of characters. `training/words.py` makes the table of weights.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.judges.model_files import model_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
