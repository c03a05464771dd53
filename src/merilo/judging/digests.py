"""Content addresses: each text is hashed once, and a key is a digest of digests."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZE = 16
_LONG = 4_000  # characters; longer texts are hashed each time, so that the cache stays small
_LONG_TUPLE = 40_000  # of all texts together: the contexts of a sample are hashed once for all questions about them


def digest_bytes(data: bytes) -> bytes:
    """Return the 16-byte digest of some bytes."""
    return blake2b(data, digest_size=SIZE).digest()


def digest_text(text: str) -> bytes:
    """Return the 16-byte digest of a text; short texts are cached."""
    return _short_text(text) if len(text) < _LONG else _text(text)


def digest_texts(texts: tuple[str, ...]) -> bytes:
    """Return the 16-byte digest of an ordered tuple of texts; tuples of usual contexts are cached."""
    return _tuple(texts) if sum(map(len, texts)) < _LONG_TUPLE else _hashed(texts)


def digest_of(*parts: bytes) -> bytes:
    """Return the digest of a sequence of digests or short tagged bytes; each part's length is part of the content."""
    return digest_bytes(framed(*parts))


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


def _text(text: str) -> bytes:
    return digest_bytes(text.encode("utf-8", "surrogatepass"))


_short_text = lru_cache(maxsize=8_192)(_text)


def _hashed(texts: tuple[str, ...]) -> bytes:
    """Return `digest_of` the digests of the texts, which all have one length."""
    digests = map(digest_text if max(map(len, texts), default=0) >= _LONG else _short_text, texts)
    return digest_bytes(FRAME + FRAME.join(digests) if texts else b"")


_tuple = lru_cache(maxsize=512)(_hashed)
