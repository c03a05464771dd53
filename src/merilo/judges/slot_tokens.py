"""The tokens of a text, in the form in which its slots are read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from merilo.judges.lexical_text import MARKS

if TYPE_CHECKING:
    from merilo.judges.slot_types import Date, Number

_LETTERS: Final = rf"[^\W\d_](?:[^\W\d_]|[{MARKS}])*"
_TOKEN: Final = re.compile(
    r"(?P<number>\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?:[.,]\d+)?(?![\w])|\d+(?:[.,]\d+)*)"
    rf"|(?P<word>km/h|км/ч|m/s|м/с|{_LETTERS}(?:['’]{_LETTERS})*[²³]?)"
    r"|(?P<symbol>[%$€£¥₽₹°~≈−–—-])"
)
_DECIMAL_COMMA: Final = re.compile(
    r"[\u0400-\u04ff]|\b(?:der|die|das|und|ist|ein|eine|von|mit|kostet|beträgt|hat|zu|den|dem)\b"
)
"""Marks of German and Russian, which write 1.250,5 or 1 250,5."""


class TokenReader:
    """The tokens of a text, and the slots read so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found = list(_TOKEN.finditer(text))
        self.low = [each.group().lower().replace("’", "'") for each in self.found]
        self.has_decimal_comma = _DECIMAL_COMMA.search(text) is not None
        self.numbers: list[Number] = []
        self.dates: list[Date] = []
        self.clocks: list[tuple[int, int]] = []
        self.used: set[int] = set()

    def word(self, place: int) -> str:
        """Return a token in lower case; empty beyond the text."""
        return self.low[place] if 0 <= place < len(self.low) else ""

    def gap(self, place: int) -> str:
        """Return the text between a token and the one before it."""
        if not 0 < place < len(self.found):
            return " "
        return self.text[self.found[place - 1].end() : self.found[place].start()]

    def integer(self, place: int) -> int | None:
        """Return the value of a token of at most four digits; None for any other."""
        word = self.word(place)
        return int(word) if word.isascii() and word.isdigit() and len(word) <= 4 else None

    def take(self, first: int, behind: int) -> str:
        """Mark tokens as read and return their text."""
        self.used.update(range(first, behind))
        return self.text[self.found[first].start() : self.found[behind - 1].end()]
