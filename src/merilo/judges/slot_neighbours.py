"""The words around a slot, as stems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.judges.slot_words import FUNCTION_WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.slot_types import Slots

NEAR: Final = 2
"""Content words on each side of a slot that are compared."""


def next_content(found: Slots, place: int) -> int | None:
    """Return the index of the first content word after a token, within five tokens; None if there is none."""
    for after in range(place + 1, min(len(found.tokens), place + 6)):
        if found.tokens[after].low not in FUNCTION_WORDS and found.tokens[after].text[0].isalnum():
            return after
    return None


def stems_after(found: Slots, place: int) -> list[str]:
    """Return the stems of the next content words and numbers after a token."""
    content = [
        each.stem
        for each in found.tokens[place + 1 : place + 8]
        if each.low not in FUNCTION_WORDS and each.text[0].isalnum()
    ]
    return content[:NEAR]


def stems_before(found: Slots, place: int) -> list[str]:
    """Return the stems of the last content words and numbers before a token."""
    content = [
        each.stem
        for each in found.tokens[max(0, place - 7) : place]
        if each.low not in FUNCTION_WORDS and each.text[0].isalnum()
    ]
    return content[-NEAR:]


def near_stems(found: Slots, place: int, end: int) -> list[str]:
    """Return the stems of the word before a number and of the words after it."""
    return [*stems_before(found, place)[-1:], *stems_after(found, end - 1)[:NEAR]]


def similar(one: str, other: str) -> bool:
    """Return True if two stems may be forms of one word."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return len(short) >= 4 and long[: max(4, len(short) - 2)] == short[: max(4, len(short) - 2)]


def similar_any(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return True if a stem of one text may be a form of a stem of the other."""
    return any(similar(one, other) for one in ours for other in theirs)


def text_of(found: Slots, places: Sequence[int]) -> str:
    """Return tokens as text."""
    return " ".join(found.tokens[place].text for place in places)
