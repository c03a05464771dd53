"""Detection of a secret in the text that a server sends back, also if it is encoded, reversed or partial."""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final

from merilo.providers.secrets import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONG_FRAGMENT: Final = 16
_SHORT_FRAGMENT: Final = 8


class Leak:
    """One secret in all forms that are searched for: unchanged, reversed, in hex and in base64.

    A fragment of at least 16 characters is hidden. For a secret of fewer than 24 characters the limit is two thirds of
    its length, and at least 8. In an encoding, the limit is the length that encodes as much. A message that shows the
    first and last four characters of a key is not changed.
    """

    def __init__(self, secret: str) -> None:
        fragment = min(_LONG_FRAGMENT, max(_SHORT_FRAGMENT, len(secret) * 2 // 3))
        self._forms = tuple(_Form(text, -(-fragment * len(text) // len(secret))) for text in set(_encoded(secret)))
        shortest = min(form.shortest for form in self._forms)
        # no form of a key contains white space, and most words are too short to be searched
        self._word = re.compile(rf"\S{{{shortest},}}")

    def hide(self, text: str) -> str:
        """Return the text with each form of the secret, and each long fragment of one, replaced by `[secret]`."""
        return self._word.sub(self._hidden, text)

    def _hidden(self, match: re.Match[str]) -> str:
        word = match[0]
        spans = sorted(span for form in self._forms for span in form.found(word))
        pieces: list[str] = []
        end = 0
        for first, last in spans:
            if first > end or not pieces:
                pieces += (word[end:first], HIDDEN)
            end = max(end, last)
        return "".join((*pieces, word[end:])) if spans else word


class _Form:
    """One spelling of a secret. Any fragment of `shortest` characters contains one of its blocks, whatever its
    position.
    """

    def __init__(self, whole: str, shortest: int) -> None:
        size = max(1, (shortest + 1) // 2)
        self.shortest = shortest
        self._whole = whole
        self._blocks = tuple((at, whole[at : at + size]) for at in range(0, len(whole) - size + 1, size))

    def found(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each long fragment of this form in the text."""
        for at, block in self._blocks:
            start = text.find(block)
            while start >= 0:
                first, last = self._grown(text, start, at, len(block))
                if last - first >= self.shortest:
                    yield first, last
                start = text.find(block, start + 1)

    def _grown(self, text: str, start: int, at: int, size: int) -> tuple[int, int]:
        """Return the ends of the longest run around the block in which text and secret are equal."""
        whole, first, last = self._whole, start, start + size
        while first > 0 and first > start - at and text[first - 1] == whole[at - (start - first) - 1]:
            first -= 1
        while last < len(text) and last - start < len(whole) - at and text[last] == whole[at + last - start]:
            last += 1
        return first, last


def _encoded(secret: str) -> Iterator[str]:
    data = secret.encode("utf-8", "replace")
    yield secret
    yield secret[::-1]
    yield data.hex()
    yield data.hex().upper()
    for shift in range(3):  # within a longer text, a secret's base64 depends on its offset modulo 3
        first, last = -(-shift * 8 // 6), (shift + len(data)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(shift) + data).decode()[first:last]
