"""BM25 over passages, for hard negatives: passages that share the words of a question and do not answer it."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOKEN: Final = re.compile(r"[^\W_]+")
_STOP: Final = frozenset(
    "a an the of in on at to for from by with and or not is are was were be been being do does did has have had this "
    "that these those it its as which who whom whose what when where why how than then there their they he she his her "
    "i you we our your can could would should may might will shall about into over also such no nor so if but".split()
)
_K1: Final = 1.2
_B: Final = 0.75


def terms(text: str) -> list[str]:
    """Return lower-case words without stop words, truncated to seven letters as a simple stem."""
    return [word[:7] for word in _TOKEN.findall(text.lower()) if word not in _STOP]


class Passages:
    """An index of passages; equal scores keep the order of the passages."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(terms(text)) for text in texts]
        lengths = np.array([sum(count.values()) for count in counts], dtype=np.float64)
        self._norm = _K1 * (1 - _B + _B * lengths / max(float(lengths.mean()), 1.0))
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for at, count in enumerate(counts):
            for term, often in count.items():
                postings[term].append((at, often))
        self._postings = {
            term: (np.array([at for at, _ in rows]), np.array([often for _, often in rows], dtype=np.float64))
            for term, rows in postings.items()
        }
        self._size = len(texts)

    def scores(self, query: str) -> np.ndarray:
        """Return one score for each passage."""
        found = np.zeros(self._size)
        for term in sorted(set(terms(query))):
            if term in self._postings:
                rows, often = self._postings[term]
                weight = math.log(1 + (self._size - len(rows) + 0.5) / (len(rows) + 0.5))
                found[rows] += weight * often * (_K1 + 1) / (often + self._norm[rows])
        return found

    def nearest(self, query: str, count: int) -> list[int]:
        """Return the `count` best passages, best first."""
        scores = self.scores(query)
        return [int(at) for at in np.argsort(-scores, kind="stable")[:count] if scores[at] > 0]
