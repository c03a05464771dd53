"""Term weights: how much a stem tells, from how many passages and questions of its language hold it."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable

from merilo.judges.lexical_text import words

LEVELS = 50
"""Weights are kept in steps of 1/LEVELS."""


def term_weights(
    passages: Iterable[tuple[str, str]], questions: Iterable[tuple[str, str]], *, letters: int
) -> dict[str, float]:
    """Weights in [0, 1] from (language, text) pairs; the rarest stems are left out to fit `letters` bytes.

    A stem's weight is its inverse document frequency over that of a word seen in no passage, the least over
    the languages that hold it: "de" is a function word in several. A word frequent in questions ("what")
    tells as little as one frequent in passages.
    """
    least: dict[str, float] = {}
    seen: Counter[str] = Counter()
    for texts, needed in ((passages, 60), (questions, 100)):
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        totals: Counter[str] = Counter()
        for language, text in texts:
            totals[language] += 1
            counts[language].update(words(text).distinct)
        for language, total in totals.items():
            if total < needed:
                continue
            for stem, count in counts[language].items():
                value = _weight(count, total) if needed == 60 else _weight(max(1, count / 3), total)
                least[stem] = min(least.get(stem, 1.0), value)
                seen[stem] += count
    ordered = sorted((stem for stem in least if seen[stem] > 1 and least[stem] < 1), key=lambda s: (-seen[s], s))
    kept: dict[str, float] = {}
    room = letters
    for stem in ordered:
        room -= len(stem.encode()) + 1
        if room < 0:
            break
        kept[stem] = round(least[stem] * LEVELS) / LEVELS
    return kept


def _weight(count: float, total: int) -> float:
    return math.log(1 + (total - count + 0.5) / (count + 0.5)) / math.log(1 + (total + 0.5) / 0.5)
