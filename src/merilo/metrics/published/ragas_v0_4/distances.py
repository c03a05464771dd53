"""Similarity of two texts by characters, from 0 to 1: the four measures that ragas takes from rapidfuzz."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, assert_never

_PREFIX_WEIGHT: Final = 0.1
_MAX_PREFIX: Final = 4
_PREFIX_FROM: Final = 0.7


class Distance(StrEnum):
    """A measure of how far apart two texts are."""

    LEVENSHTEIN = "levenshtein"
    """Fewest insertions, deletions and replacements, of the longer length."""
    HAMMING = "hamming"
    """Places with different letters, what one text has more than the other included, of the longer length."""
    JARO = "jaro"
    """By letters in common that stand near each other, and how many of them change places."""
    JARO_WINKLER = "jaro_winkler"
    """As Jaro, nearer for a common beginning."""


def similarity(distance: Distance, left: str, right: str) -> float:
    """Return 1 minus the distance, in [0, 1]; 1.0 for two empty texts."""
    longer = max(len(left), len(right))
    match distance:
        case Distance.LEVENSHTEIN:
            return 1 - edit_distance(left, right) / longer if longer else 1.0
        case Distance.HAMMING:
            differing = longer - sum(a == b for a, b in zip(left, right, strict=False))
            return 1 - differing / longer if longer else 1.0
        case Distance.JARO:
            return _jaro(left, right)
        case Distance.JARO_WINKLER:
            return _jaro_winkler(left, right)
        case _:
            assert_never(distance)


def edit_distance(left: str, right: str) -> int:
    """Return the fewest insertions, deletions and replacements of a letter that make one text the other.

    A column of the usual table is held as two integers, one bit a row: where it goes up by one, and where down
    (Myers, "A fast bit-vector algorithm for approximate string matching", J. ACM 46 (1999), in the form of Hyyrö).
    """
    if not left or not right:
        return max(len(left), len(right))
    places: dict[str, int] = {}
    for at, letter in enumerate(left):
        places[letter] = places.get(letter, 0) | 1 << at
    every, last = (1 << len(left)) - 1, 1 << (len(left) - 1)
    up, down, distance = every, 0, len(left)
    for letter in right:
        same = places.get(letter, 0)
        diagonal = (((same & up) + up) ^ up) | same | down
        rises, falls = down | (every & ~(diagonal | up)), up & diagonal
        distance += bool(rises & last) - bool(falls & last)
        rises, falls = (rises << 1 | 1) & every, (falls << 1) & every
        up, down = falls | (every & ~(same | down | rises)), rises & (same | down)
    return distance


def _jaro(left: str, right: str) -> float:
    if not left or not right:
        return float(left == right)
    reach = max(len(left), len(right)) // 2 - 1
    taken = [False] * len(right)
    matched: list[str] = []
    for at, letter in enumerate(left):
        for other in range(max(0, at - reach), min(len(right), at + reach + 1)):
            if not taken[other] and right[other] == letter:
                taken[other] = True
                matched.append(letter)
                break
    if not matched:
        return float(left == right)
    others = [letter for letter, is_taken in zip(right, taken, strict=True) if is_taken]
    moved = sum(a != b for a, b in zip(matched, others, strict=True)) // 2
    common = len(matched)
    return (common / len(left) + common / len(right) + (common - moved) / common) / 3


def _jaro_winkler(left: str, right: str) -> float:
    found = _jaro(left, right)
    if found <= _PREFIX_FROM:
        return found
    prefix = 0
    for a, b in zip(left[:_MAX_PREFIX], right, strict=False):
        if a != b:
            break
        prefix += 1
    return found + prefix * _PREFIX_WEIGHT * (1 - found)
