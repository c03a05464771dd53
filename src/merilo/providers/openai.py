"""Provider for endpoints that are compatible with OpenAI's chat completions, hosted or local."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from merilo.providers.chat import ChatConnection
from merilo.providers.endpoint import check_provider, checked_url
from merilo.providers.keys import ApiKeys, check_key, key_in
from merilo.providers.openai_bodies import OpenAIBodies
from merilo.providers.openai_replies import reply_of
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

OPENAI_URL = "https://api.openai.com/v1"
_ENDINGS = ("/chat/completions", "/embeddings")
_OLLAMA = "fp_ollama"
"""The `system_fingerprint` in the replies of Ollama."""


def _default_url() -> str:
    return os.environ.get("OPENAI_BASE_URL") or OPENAI_URL


@dataclass(frozen=True)
class OpenAIProvider:
    """A model behind an OpenAI-compatible endpoint.

    `base_url` defaults to OPENAI_BASE_URL at construction, otherwise to OpenAI's own address. The key is read from the
    environment variable `api_key_env` when a connection is opened, or returned by the callable `api_key` before each
    request. It is stored nowhere, and endpoints other than OpenAI's may need none. `headers` may contain secrets and
    are never shown. `body` is sent with every request and overrides merilo's own fields. A text `${NAME}` in `body`, or
    in the path of `base_url`, is read from the environment variable NAME. `merilo.providers.secrets` describes how
    secrets written there are kept out of runs. Raises UsageError for an invalid address.
    """

    model: str
    base_url: str = field(default_factory=_default_url, repr=False)
    api_key_env: str = "OPENAI_API_KEY"
    timeout_s: float = 120.0
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: Mapping[str, object] = field(default_factory=dict[str, object], hash=False, repr=False)
    api_key: KeySource | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_provider(self.model, self.timeout_s, self.api_key_env, example="openai:gpt-4.1-mini")
        object.__setattr__(self, "base_url", checked_url(self.base_url, _ENDINGS))

    def fingerprint(self) -> Mapping[str, object]:
        """Return address, model and extra body without secrets; no key and no headers."""
        body = fingerprint_body(self.body, f"{self.base_url} {self.model}")
        return {"provider": "openai", "base_url": shown_url(self.base_url), "model": self.model, "body": body}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[ChatConnection, None]:
        """Open a connection. `known` are the adaptations of an earlier run, so that they need not be learnt again.

        Raises UsageError if the address is OpenAI's own and there is no key.
        """
        bodies = OpenAIBodies(self.model, resolved_body(self.body), hosted=self.hosted, known=known or {})
        async with self.wire() as wire:
            yield ChatConnection(
                wire, self.route("/chat/completions"), bodies, self.address, reading(wire, self.address.url, bodies)
            )

    @asynccontextmanager
    async def wire(self) -> AsyncGenerator[Wire, None]:
        """Open an HTTP session to the endpoint with key and headers. Raises UsageError as `connect` does."""
        needed = self.address.url if self.hosted and self.api_key is None else None
        key = key_in(self.api_key_env, needed_for=needed)
        hidden = secrets_in(self.body, self.base_url)
        keys = ApiKeys(
            "Authorization", prefix="Bearer ", key=key, source=self.api_key, others=self.headers, hidden=hidden
        )
        async with open_wire(resolved_url(self.base_url), keys, self.timeout_s, shown=self.address.url) as wire:
            yield wire

    def route(self, path: str) -> str:
        """Return the path of a kind of request, relative to the base URL."""
        return path

    def price_usd(self, usage: Usage) -> float | None:
        """Return the list price; None for a model that is not listed, or an endpoint that is not the provider's own."""
        from merilo.providers.prices import list_price_usd

        return list_price_usd("openai", self.base_url, self.model, usage)

    @property
    def hosted(self) -> bool:
        """True for OpenAI's own endpoint."""
        return urlsplit(self.base_url).hostname == urlsplit(OPENAI_URL).hostname

    @property
    def address(self) -> EndpointAddress:
        """The endpoint as shown in messages."""
        place = f"Check the base URL (most end in /v1) and the model name {self.model!r}."
        return EndpointAddress(shown_url(self.base_url), check_key(self.api_key_env, self.api_key), place)


def reading(wire: Wire, address: str, bodies: OpenAIBodies) -> ReadReply:
    """Return the function that parses replies of chat completions received over this wire."""

    def read(body: Json, text: str, path: ReplyPath, seconds: float) -> Reply:
        if body.get("system_fingerprint") == _OLLAMA:
            bodies.advise_ollama()
        return reply_of(body, text, path=path, clean=wire.clean, address=address, seconds=seconds)

    return read


PROVIDER: Final = OpenAIProvider
