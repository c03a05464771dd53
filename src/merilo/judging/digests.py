"""Content addresses: each text is hashed once, and a key is a digest of digests."""

from __future__ import annotations

import json
from functools import partial
from hashlib import blake2b
from operator import methodcaller
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SIZE = 16
T = TypeVar("T")


def digest_bytes(data: bytes) -> bytes:
    """Return the 16-byte digest of some bytes."""
    return blake2b(data, digest_size=SIZE).digest()


class Known(dict[T, bytes]):
    """Bytes that are made when they are first looked up; those that are known cost no call, unlike an `lru_cache`."""

    def __init__(self, make: Callable[[T], bytes], size: Callable[[T], int], *, below: int, most: int) -> None:
        """At most `most` are kept, and only of keys whose size is `below` this."""
        self._make, self._size, self._below, self._most = make, size, below, most

    def __missing__(self, key: T) -> bytes:
        made = self._make(key)
        if self._size(key) < self._below:
            if len(self) >= self._most:
                self.clear()
            self[key] = made
        return made


def digest_text(text: str) -> bytes:
    """Return the 16-byte digest of a text; short texts are cached."""
    return TEXTS[text]


def digest_texts(texts: tuple[str, ...]) -> bytes:
    """Return the 16-byte digest of an ordered tuple of texts; tuples of usual contexts are cached."""
    return TUPLES[texts]


def digest_of(*parts: bytes) -> bytes:
    """Return the digest of a sequence of digests or short tagged bytes; each part's length is part of the content."""
    return digest_bytes(framed(*parts))


def digest_digests(digests: Iterable[bytes]) -> bytes:
    """Return `digest_of` some digests, which all have one length."""
    joined = FRAME.join(digests)
    return digest_bytes(FRAME + joined if joined else b"")


def framed(*parts: bytes) -> bytes:
    """Return the bytes that `digest_of` hashes, for callers that hash the same parts often and frame them once.

    `digest_bytes(framed(a) + framed(b))` is `digest_of(a, b)`.
    """
    return b"".join([piece for part in parts for piece in (len(part).to_bytes(4, "little"), part)])


FRAME = SIZE.to_bytes(4, "little")
"""The length prefix of a digest in `framed`."""


def digest_json(value: Mapping[str, object]) -> bytes:
    """Return the digest of a mapping's canonical JSON (sorted keys, no spaces)."""
    return digest_bytes(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())


_encoded = methodcaller("encode", "utf-8", "surrogatepass")
_hash: Callable[[bytes], blake2b] = partial(blake2b, digest_size=SIZE)
_digest = methodcaller("digest")


def _texts(texts: tuple[str, ...]) -> bytes:
    """Return `digest_of` the digests of the texts, which all have one length. Maps of C functions: texts are many."""
    return digest_digests(map(_digest, map(_hash, map(_encoded, texts))))


TEXTS: Final = Known(lambda text: digest_bytes(_encoded(text)), len, below=4_000, most=8_192)
TUPLES: Final = Known(_texts, lambda texts: sum(map(len, texts)), below=40_000, most=512)
"""Up to 40,000 characters: the contexts of a sample are hashed once for all questions about them."""
