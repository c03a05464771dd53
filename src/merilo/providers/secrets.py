"""Secrets in the body and the address that a user gives for an endpoint: what is sent, and what may be stored.

A value written `${NAME}` is read from the environment variable NAME when a connection is opened; only `${NAME}` is
stored. Of other values, a fingerprint contains:

- nothing of a field with the name of a secret, such as `api_key`, so that a new key does not count as another judge;
- other numbers, booleans and null unchanged;
- the texts of well-known parameters (`KNOWN`), such as `reasoning_effort`, unchanged;
- a digest of any other text, keyed by the endpoint and the position of the text, and slow to compute for a guess;
- the name of a field, or a digest of it if it looks random.

A part of the URL's path that looks random is replaced by such a digest too.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from hashlib import pbkdf2_hmac
from typing import TYPE_CHECKING, Final, cast

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HIDDEN: Final = "[secret]"
KNOWN: Final = frozenset(
    """
    chat_template chat_template_kwargs encoding_format format grammar guided_choice guided_decoding_backend
    guided_grammar guided_json guided_regex guided_whitespace_pattern input_type keep_alive modalities model models
    output_config output_dtype provider quantizations reasoning reasoning_effort reasoning_format
    response_format route safety_settings service_tier speed stop stop_sequences task thinking tool_choice tools
    transforms truncation verbosity
    """.split()
)
"""Top-level body fields of chat and embedding servers whose texts are settings, not secrets."""
_SECRET_NAMES: Final = frozenset("auth bearer cookie jwt key passphrase passwd pwd token".split())
_SECRET_PARTS: Final = re.compile(
    r"password|secret|credential|authori[sz]ation|"
    r"(?:api|access|private|signing|subscription|license|licence|function|account|master|shared)key|"
    r"(?:access|auth|api|session|refresh|id|bearer|security|user|private)token"
)
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_RANDOM: Final = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}|[0-9]{24,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    re.IGNORECASE,
)
_PREFIXED: Final = re.compile(r"(?:sk|pk|rk|hf|gsk|xai|ghp|key|token|secret)[-_][A-Za-z0-9_-]{8,}|eyJ[A-Za-z0-9_-]{8,}")
DIGEST: Final = "[digest:"
"""The beginning of the placeholder for a text that is not stored."""
_ROUNDS: Final = 100_000
_DIGITS: Final = 16


def fingerprint_body(body: Mapping[str, object], endpoint: str) -> dict[str, object]:
    """Return the part of a body that a fingerprint contains: see the module. `endpoint` keys the digests."""
    return {
        _shown_name(name, endpoint): _shown(value, name, endpoint, known=name in KNOWN) for name, value in body.items()
    }


def shown_url(url: str) -> str:
    """Return the URL as it may be stored and printed: path segments that look random are replaced by digests.

    A URL that this function returned stays unchanged.
    """
    start, slash, path = _divided(url)
    return start + slash + "/".join(_shown_segment(each, start) for each in path.split("/"))


def resolved_body(body: Mapping[str, object]) -> dict[str, object]:
    """Return the body as it is sent: each text `${NAME}` is replaced by that environment variable.

    Raises UsageError for a variable that is not set.
    """
    return {name: _resolved(value) for name, value in body.items()}


def resolved_url(url: str) -> str:
    """Return the URL with each `${NAME}` in its path replaced by that environment variable. Raises UsageError."""
    start, slash, path = _divided(url)
    return start + slash + _REFERENCE.sub(lambda match: _variable(match[1]), path)


def secrets_in(body: Mapping[str, object], url: str) -> Iterator[str]:
    """Yield the secrets that no message may repeat.

    These are the values of variables, the values of fields with the name of a secret, and texts that look random. A
    text that is stored as a digest only because its field is unknown is not among them: a model name hidden in every
    error message would hide the error.
    """
    for name, value in body.items():
        if looks_random(name):
            yield name
        yield from _hidden_texts(value, name, known=name in KNOWN)
    _, _, path = _divided(url)
    for segment in path.split("/"):
        if _REFERENCE.search(segment) or looks_random(segment):
            yield resolved_url(f"http://host/{segment}").removeprefix("http://host/")


def looks_random(text: str) -> bool:
    """Return True if a part of the text looks like a key: a usual prefix, or many letters and digits in one run."""
    return _PREFIXED.search(text) is not None or _RANDOM.search(text) is not None


def _resolved(value: object) -> object:
    if isinstance(value, str):
        match = _REFERENCE.fullmatch(value)
        return value if match is None else _variable(match[1])
    if isinstance(value, dict):
        return {name: _resolved(each) for name, each in cast("dict[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_resolved(each) for each in cast("list[object]", value)]
    return value


def _shown(value: object, name: str, place: str, *, known: bool) -> object:
    if _is_secret(name) and not isinstance(value, bool | None):
        return value if isinstance(value, str) and _REFERENCE.fullmatch(value) else HIDDEN
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {
            _shown_name(str(key), place): _shown(each, str(key), f"{place} {key}", known=known)
            for key, each in fields.items()
        }
    if isinstance(value, list | tuple):
        return [_shown(each, name, place, known=known) for each in cast("list[object]", value)]
    if not isinstance(value, str) or (known and not looks_random(value)) or _REFERENCE.fullmatch(value):
        return value
    return _digest(value, f"{place} {name}")


def _shown_name(name: str, place: str) -> str:
    return _digest(name, place) if looks_random(name) else name


def _hidden_texts(value: object, name: str, *, known: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in cast("dict[str, object]", value).items():
            inner = name if _is_secret(name) else str(key)
            if looks_random(str(key)):
                yield str(key)
            yield from _hidden_texts(each, inner, known=known)
    elif isinstance(value, list | tuple):
        for each in cast("list[object]", value):
            yield from _hidden_texts(each, name, known=known)
    elif isinstance(value, str):
        if _REFERENCE.fullmatch(value):
            yield str(_resolved(value))
        elif _is_secret(name) or looks_random(value):
            yield value
    elif _is_secret(name) and not isinstance(value, bool | None):
        yield str(value)


def _is_secret(name: str) -> bool:
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return plain in _SECRET_NAMES or _SECRET_PARTS.search(plain) is not None


def _shown_segment(segment: str, endpoint: str) -> str:
    harmless = segment.startswith(DIGEST) or _REFERENCE.fullmatch(segment) or not looks_random(segment)
    return segment if harmless else _digest(segment, endpoint)


def _divided(url: str) -> tuple[str, str, str]:
    """Return the scheme and host, the slash after them, and the path."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host}", slash, path


def _variable(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise UsageError(f"The environment variable {name} is not set, but the endpoint's settings refer to it.")
    return value


@lru_cache(maxsize=256)
def _digest(text: str, key: str) -> str:
    found = pbkdf2_hmac("sha256", text.encode("utf-8", "replace"), f"merilo {key}".encode("utf-8", "replace"), _ROUNDS)
    return f"{DIGEST}{found.hex()[:_DIGITS]}]"
