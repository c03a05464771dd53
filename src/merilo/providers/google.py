"""Provider for Google's Gemini API (`generateContent`)."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from merilo.errors import UsageError
from merilo.providers.chat import ChatConnection
from merilo.providers.endpoint import check_provider, checked_url
from merilo.providers.google_bodies import GoogleBodies
from merilo.providers.google_replies import content_error_of, content_of
from merilo.providers.keys import ApiKeys, check_key, key_in
from merilo.providers.problems import EndpointAddress
from merilo.providers.secrets import fingerprint_body, resolved_body, resolved_url, secrets_in, shown_url
from merilo.providers.wire import open_wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from merilo.judging.json_types import Json
    from merilo.providers.base import Reply, ReplyPath, Usage
    from merilo.providers.chat import ReadReply
    from merilo.providers.keys import KeySource
    from merilo.providers.wire import Wire

GOOGLE_URL: Final = "https://generativelanguage.googleapis.com"
_VERSION: Final = "v1beta"
_ENDINGS: Final = ("/openai", f"/{_VERSION}")
_KEYS: Final = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


def _default_url() -> str:
    return os.environ.get("GOOGLE_GEMINI_BASE_URL") or GOOGLE_URL


def _default_key() -> str:
    """Return the name of the first variable that has a key; the first name if none has one."""
    return next((name for name in _KEYS if os.environ.get(name, "").strip()), _KEYS[0])


@dataclass(frozen=True)
class GoogleProvider:
    """A model of Google's Gemini API.

    `base_url` is GOOGLE_GEMINI_BASE_URL at construction, otherwise Google's own address. The key is read from
    GEMINI_API_KEY, or from GOOGLE_API_KEY if only that is set, and is sent as a header, never in the address.
    `thinking` is a budget in tokens or a level such as "low", by default as little as the model allows. Otherwise as
    `OpenAIProvider`. Raises UsageError for an invalid address or budget.
    """

    model: str
    base_url: str = field(default_factory=_default_url, repr=False)
    api_key_env: str = field(default_factory=_default_key)
    timeout_s: float = 120.0
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: Mapping[str, object] = field(default_factory=dict[str, object], hash=False, repr=False)
    api_key: KeySource | None = field(default=None, repr=False, compare=False)
    thinking: int | str | None = None

    def __post_init__(self) -> None:
        check_provider(self.model, self.timeout_s, self.api_key_env, example="google:gemini-2.5-flash")
        if isinstance(self.thinking, int) and self.thinking < -1:
            raise UsageError(f"thinking must be a level, or a number of tokens (-1: automatic), got {self.thinking}.")
        object.__setattr__(self, "base_url", checked_url(self.base_url, _ENDINGS, example=GOOGLE_URL))

    def fingerprint(self) -> Mapping[str, object]:
        """Return address, model, extra body without secrets, and a chosen `thinking`; no key and no headers."""
        body = fingerprint_body(self.body, f"{self.base_url} {self.model}")
        marks = {"provider": "google", "base_url": shown_url(self.base_url), "model": self.model, "body": body}
        return marks if self.thinking is None else {**marks, "thinking": self.thinking}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[ChatConnection, None]:
        """Open a connection. `known` are the adaptations of an earlier run, so that they need not be learnt again.

        Raises UsageError if the address is Google's own and there is no key.
        """
        hosted = urlsplit(self.base_url).hostname == urlsplit(GOOGLE_URL).hostname
        shown = shown_url(self.base_url)
        key = key_in(self.api_key_env, needed_for=shown if hosted and self.api_key is None else None)
        hidden = secrets_in(self.body, self.base_url)
        keys = ApiKeys("x-goog-api-key", key=key, source=self.api_key, others=self.headers, hidden=hidden)
        bodies = GoogleBodies(self.model, resolved_body(self.body), thinking=self.thinking, known=known or {})
        place = f"Check the base URL (without /{_VERSION}) and the model name {self.model!r}."
        address = EndpointAddress(shown, check_key(self.api_key_env, self.api_key), place)
        async with open_wire(resolved_url(self.base_url), keys, self.timeout_s, shown=shown) as wire:
            yield ChatConnection(wire, self._route, bodies, address, _reading(wire, shown), read_error=content_error_of)

    def price_usd(self, usage: Usage) -> float | None:
        """Return the list price; None for a model that is not listed, or an endpoint that is not the provider's own."""
        from merilo.providers.prices import list_price_usd

        return list_price_usd("google", self.base_url, self.model, usage)

    @property
    def _route(self) -> str:
        """The path of a request: names such as `tunedModels/NAME` contain their collection."""
        name = self.model if "/" in self.model else f"models/{self.model}"
        return f"/{_VERSION}/{quote(name)}:generateContent"


def _reading(wire: Wire, address: str) -> ReadReply:
    def read(body: Json, text: str, path: ReplyPath, seconds: float) -> Reply:
        return content_of(body, text, path=path, clean=wire.clean, address=address, seconds=seconds)

    return read


PROVIDER: Final = GoogleProvider
