"""Keys and other secrets: where they come from, how they are sent, and how they are kept out of all output.

A key comes from an environment variable or from a callable. The variable is read when a connection is opened. The
callable is called before each request, so that a token may be renewed. The key is never stored in a field, a file or a
message of merilo.

Secrets may also be in the body and the address that a user gives for an endpoint. A value written `${NAME}` is read
from the environment variable NAME when a connection is opened; only `${NAME}` is stored. Of other values, a fingerprint
contains:

- nothing of a field with the name of a secret, such as `api_key`, so that a new key does not count as another judge;
- other numbers, booleans and null unchanged;
- the texts of well-known parameters (`KNOWN`), such as `reasoning_effort`, unchanged;
- a digest of any other text, keyed by the endpoint and the position of the text, and slow to compute for a guess.

A part of the URL's path that looks random is replaced by such a digest too.
"""

from __future__ import annotations

import html
import inspect
import json
import os
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from hashlib import pbkdf2_hmac
from typing import TYPE_CHECKING, Final, TypeAlias, cast
from urllib.parse import quote

from merilo.errors import ProviderDown, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

KeySource: TypeAlias = Callable[[], str | Awaitable[str]]
"""Returns the key of the next request; cheap, or async if it has to wait."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORTEST_SECRET = 8
_LONG: Final = 24
_END: Final = 16
"""Characters at each end of a secret of at least `_LONG` characters that are hidden alone."""
_MAX_KEPT = 10_000
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
_SECRET_NAMES: Final = tuple(
    "auth authorization bearer cookie credential credentials jwt key passphrase password pwd secret token".split()
)
"""Endings of the names of fields that hold a secret, without separators."""
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_RANDOM: Final = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}")
_PREFIXED: Final = re.compile(r"(?:sk|pk|rk|hf|gsk|xai|ghp|key|token|secret)[-_][A-Za-z0-9_-]{8,}|eyJ[A-Za-z0-9_-]{8,}")
DIGEST: Final = "[digest:"
"""The beginning of the placeholder for a text that is not stored."""
_ROUNDS: Final = 100_000
_DIGITS: Final = 16


def checked_variable(variable: str) -> None:
    """Raise UsageError for an invalid name of a variable. The message omits the name: it may be the key itself."""
    if not _VARIABLE.fullmatch(variable):
        raise UsageError(
            "Expected the name of an environment variable, such as OPENAI_API_KEY. Do not give the key itself."
        )


def key_in(variable: str, *, needed_for: str | None = None) -> str:
    """Return the key in an environment variable; empty if there is none.

    `needed_for`: an address that requires a key. Raises UsageError if it has none, or if the value cannot be a key.
    """
    key = os.environ.get(variable, "").strip()
    if not key and needed_for is not None:
        raise UsageError(
            f"The environment variable {variable} has no key for {needed_for}. "
            "Set it, or give the base URL of an endpoint that needs no key."
        )
    if not _sendable(key):
        raise UsageError(f"The environment variable {variable} has characters that are not valid in a key.")
    return key


def check_key(variable: str, source: KeySource | None) -> str:
    """Return what to check if a key is rejected."""
    if source is not None:
        return "check the callable that returns it"
    empty = ", which is empty or not set" if not os.environ.get(variable, "").strip() else ""
    return f"check the variable {variable}{empty}"


class ApiKeys:
    """The key of one connection, as a header, and every text that no message may repeat."""

    def __init__(
        self,
        header: str,
        *,
        prefix: str = "",
        key: str = "",
        source: KeySource | None = None,
        others: tuple[tuple[str, str], ...] = (),
        hidden: Iterable[str] = (),
    ) -> None:
        """Hide the key, the values of the user's own headers (`others`), and `hidden`: other secrets that are sent.

        `key` is sent unless there is a `source`. A header of the same name among `others` replaces the key's header.
        """
        taken = header.lower() in {name.lower() for name, _ in others}
        self._header = header
        self._prefix = prefix
        self._source = None if taken else source
        self.renewed = self._source is not None  # each request asks for a fresh key
        self.fixed: dict[str, str] = dict(others)
        """Headers that are the same for every request."""
        if key and source is None and not taken:
            self.fixed[header] = f"{prefix}{key}"
        self._secrets: tuple[str, ...] = ()
        self._hide(key, *hidden)
        self._hide(*(text for _, value in others for text in (value, value.rpartition(" ")[2])))

    async def fresh(self) -> Mapping[str, str] | None:
        """Return the further headers of the next request. Raises ProviderDown if the source gives no key."""
        if self._source is None:
            return None
        try:
            given = self._source()
            key = await given if inspect.isawaitable(given) else given
        except Exception as error:  # noqa: BLE001  user code; its message may contain the key
            raise ProviderDown(f"The callable for the key raised {type(error).__name__}.") from None
        if not isinstance(key, str) or not key.strip() or not _sendable(key.strip()):
            raise ProviderDown("The callable for the key did not return a valid key.")
        key = key.strip()
        self._hide(key)
        return {self._header: f"{self._prefix}{key}"}

    def clean(self, text: str) -> str:
        """Return the text without secrets, and without half surrogate pairs, which cannot be stored."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text if text.isascii() else text.encode("utf-8", "replace").decode()

    def _hide(self, *secrets: str) -> None:
        """Hide these texts from now on, also as JSON, URLs and HTML write them, and the ends of long ones."""
        new = {
            spelled
            for secret in secrets
            if len(secret) >= _SHORTEST_SECRET
            for text in (secret, *((secret[:_END], secret[-_END:]) if len(secret) >= _LONG else ()))
            for spelled in (text, json.dumps(text)[1:-1], quote(text, safe=""), html.escape(text))
        }
        if not new.issubset(self._secrets):
            newest = (*new.difference(self._secrets), *self._secrets)[:_MAX_KEPT]
            self._secrets = tuple(sorted(newest, key=len, reverse=True))


def _sendable(key: str) -> bool:
    """Return True if a header can contain the key."""
    return key.isprintable() and key.isascii()


def fingerprint_body(body: Mapping[str, object], endpoint: str) -> dict[str, object]:
    """Return the part of a body that a fingerprint contains: see the module. `endpoint` keys the digests."""
    return {name: _shown(value, name, endpoint, known=name in KNOWN) for name, value in body.items()}


def shown_url(url: str) -> str:
    """Return the URL as it may be stored and printed: path segments that look random are replaced by digests.

    A URL that this function returned stays unchanged.
    """
    start, slash, path = _divided(url)

    def shown(part: str) -> str:
        hidden = looks_random(part) and not (part.startswith(DIGEST) or _REFERENCE.fullmatch(part))
        return _digest(part, start) if hidden else part

    return start + slash + "/".join(map(shown, path.split("/")))


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
        yield from _hidden_texts(value, name)
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
        return {str(key): _shown(each, str(key), f"{place} {key}", known=known) for key, each in fields.items()}
    if isinstance(value, list | tuple):
        return [_shown(each, name, place, known=known) for each in cast("list[object]", value)]
    if not isinstance(value, str) or (known and not looks_random(value)) or _REFERENCE.fullmatch(value):
        return value
    return _digest(value, f"{place} {name}")


def _hidden_texts(value: object, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in cast("dict[str, object]", value).items():
            yield from _hidden_texts(each, name if _is_secret(name) else str(key))
    elif isinstance(value, list | tuple):
        for each in cast("list[object]", value):
            yield from _hidden_texts(each, name)
    elif isinstance(value, str) and _REFERENCE.fullmatch(value):
        yield str(_resolved(value))
    elif not isinstance(value, bool | None) and (_is_secret(name) or (isinstance(value, str) and looks_random(value))):
        yield str(value)


def _is_secret(name: str) -> bool:
    return re.sub(r"[^a-z0-9]", "", name.lower()).endswith(_SECRET_NAMES)


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
