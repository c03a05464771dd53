"""API keys: where they come from, how they are sent, and how they are kept out of all output.

A key comes from an environment variable or from a callable. The variable is read when a connection is opened. The
callable is called before each request, so that a token may be renewed. The key is never stored in a field, a file or a
message of merilo.
"""

from __future__ import annotations

import html
import inspect
import os
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from merilo.errors import ProviderDown, UsageError
from merilo.providers.leaks import Leak
from merilo.providers.secrets import HIDDEN, looks_random

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KeySource: TypeAlias = Callable[[], str | Awaitable[str]]
"""Returns the key of the next request; cheap, or async if it has to wait."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})|\\+x([0-9a-fA-F]{2})|%(?:25)*([0-9a-fA-F]{2})|\\+(.)|&")
_LONG_NUMBER = re.compile(r"&#0*+([0-9]{1,7})[0-9]*+")
"""A character reference of HTML. Python raises an error for one of thousands of digits."""
_DEEPEST = 4
_SHORTEST_SECRET = 8
_MAX_KEPT = 1_000


def checked_variable(variable: str) -> None:
    """Raise UsageError for an invalid name of an environment variable. The message omits the name: it may be the key
    itself.
    """
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
        self.fixed: dict[str, str] = dict(others)
        """Headers that are the same for every request."""
        if key and source is None and not taken:
            self.fixed[header] = f"{prefix}{key}"
        self._secrets: tuple[str, ...] = ()
        self._leaks: tuple[Leak, ...] = ()
        self._hide(key, *hidden)
        self._hide(*(text for _, value in others for text in (value, value.rpartition(" ")[2])), guess=True)

    async def fresh(self) -> Mapping[str, str] | None:
        """Return the headers of the next request in addition to the fixed ones. Raises ProviderDown if the source gives
        no key.
        """
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
        """Return the text without secrets, and without half surrogate pairs, which cannot be stored.

        A secret is found unchanged or reversed, in the escapes of JSON, URLs and HTML, in base64 and in hex. A long
        fragment of any of these forms is found too, see `Leak`.
        """
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        escaped = _ESCAPED.search(text) is not None
        if escaped:
            text = self._without_escaped(text)
        text = self._without_leaks(text)
        if escaped and (plain := _unescaped(text)) != self._without_leaks(plain):
            text = HIDDEN
        return text if text.isascii() else text.encode("utf-8", "replace").decode()

    def _without_escaped(self, text: str) -> str:
        """Return the text without whole secrets in the escapes of JSON, URLs and HTML."""
        plain = _unescaped(text)
        for secret in self._secrets:
            if secret in plain:
                text = re.sub(_spellings(secret), HIDDEN, text)
                plain = _unescaped(text)
        return HIDDEN if any(secret in plain for secret in self._secrets) else text

    def _without_leaks(self, text: str) -> str:
        for leak in self._leaks:
            text = leak.hide(text)
        return text

    def _hide(self, *secrets: str, guess: bool = False) -> None:
        """Hide these texts from now on. `guess`: only some are secrets, so that fragments of the others may show."""
        new = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
        if not new.issubset(self._secrets):
            newest = (*new.difference(self._secrets), *self._secrets)[:_MAX_KEPT]
            self._secrets = tuple(sorted(newest, key=len, reverse=True))
            leaks = (Leak(secret) for secret in new if not guess or looks_random(secret))
            self._leaks = (*leaks, *self._leaks)[:_MAX_KEPT]


def _unescaped(text: str) -> str:
    """Return a text with all its escapes decoded, nested ones included."""
    for _ in range(_DEEPEST):
        read = html.unescape(_LONG_NUMBER.sub(r"&#\1", _ESCAPED.sub(_character, text)))
        if read == text:
            break
        text = read
    return text


def _character(escape: re.Match[str]) -> str:
    by_number, itself = escape[1] or escape[2] or escape[3], escape[4]
    return chr(int(by_number, 16)) if by_number else itself or escape[0]


def _spellings(secret: str) -> str:
    """Return a pattern for a secret with each character unescaped, or escaped as in JSON, URLs and HTML.

    It never backtracks into a character, so its time does not depend on the text. A spelling that it misses for that
    reason is hidden with the whole text.
    """
    return "".join(f"(?>{_spelling(char)})" for char in secret)


def _spelling(char: str) -> str:
    code = f"{ord(char):02x}"
    numbers = rf"\\{{1,8}}(?:u00|x){code}|%(?:25){{0,8}}{code}|&#0{{0,8}}{ord(char)};|&#x0{{0,8}}{code};"
    return rf"(?i:{numbers})|{re.escape(html.escape(char))}|\\{{0,8}}{re.escape(char)}"


def _sendable(key: str) -> bool:
    """Return True if a header can contain the key."""
    return key.isprintable() and key.isascii()
