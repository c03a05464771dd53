"""Ids of contexts and topics as they are compared."""

from __future__ import annotations

from typing import Final
from unicodedata import normalize

_INVISIBLE: Final[dict[int, str | int | None]] = dict.fromkeys((0x200B, 0x2060, 0xFEFF))
"""Zero-width space, word joiner and byte order mark: characters that no reader sees, and that join nothing."""


def matching_id(text: str) -> str:
    """Return the id in composed Unicode (NFC), without invisible characters, with single spaces and none at its ends.

    Two ids are the same if these are equal.
    """
    if not text.isascii():
        text = normalize("NFC", text.translate(_INVISIBLE))
    return " ".join(text.split())
