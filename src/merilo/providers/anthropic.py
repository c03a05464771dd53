"""Provider for Anthropic's Messages API."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from merilo.errors import UsageError
from merilo.providers.anthropic_bodies import AnthropicBodies, Cached
from merilo.providers.anthropic_replies import message_of
from merilo.providers.chat import ChatConnection
from merilo.providers.endpoint import check_provider, checked_url
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

ANTHROPIC_URL = "https://api.anthropic.com"
API_VERSION = "2023-06-01"
_ENDINGS = ("/messages", "/v1")


def _default_url() -> str:
    return os.environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL


@dataclass(frozen=True)
class AnthropicProvider:
    """A model behind Anthropic's Messages API or a compatible endpoint.

    `base_url` defaults to ANTHROPIC_BASE_URL at construction, otherwise to Anthropic's own address. `cached` selects
    what the provider's prompt cache stores: by default the rubric. `max_tokens` limits a reply if its request has no
    limit, because the API requires one. Keys, headers and body are as for `OpenAIProvider`. Raises UsageError for an
    invalid address.
    """

    model: str
    base_url: str = field(default_factory=_default_url, repr=False)
    api_key_env: str = "ANTHROPIC_API_KEY"
    timeout_s: float = 120.0
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: Mapping[str, object] = field(default_factory=dict[str, object], hash=False, repr=False)
    api_key: KeySource | None = field(default=None, repr=False, compare=False)
    cached: Cached = field(default=Cached.RUBRIC, compare=False)
    max_tokens: int = 4_096

    def __post_init__(self) -> None:
        check_provider(self.model, self.timeout_s, self.api_key_env, example="anthropic:claude-sonnet-4-5")
        if self.max_tokens < 1:
            raise UsageError(f"max_tokens must be at least 1, got {self.max_tokens}.")
        object.__setattr__(self, "base_url", checked_url(self.base_url, _ENDINGS, example=ANTHROPIC_URL))

    def fingerprint(self) -> Mapping[str, object]:
        """Return address, model and extra body without secrets; no key and no headers. `cached` is omitted: it changes
        no reply.
        """
        body = fingerprint_body(self.body, f"{self.base_url} {self.model}")
        return {"provider": "anthropic", "base_url": shown_url(self.base_url), "model": self.model, "body": body}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[ChatConnection, None]:
        """Open a connection. `known` are the adaptations of an earlier run, so that they need not be learnt again.

        Raises UsageError if the address is Anthropic's own and there is no key.
        """
        hosted = urlsplit(self.base_url).hostname == urlsplit(ANTHROPIC_URL).hostname
        shown = shown_url(self.base_url)
        key = key_in(self.api_key_env, needed_for=shown if hosted and self.api_key is None else None)
        hidden = secrets_in(self.body, self.base_url)
        keys = ApiKeys("x-api-key", key=key, source=self.api_key, others=self.headers, hidden=hidden)
        bodies = AnthropicBodies(
            self.model, resolved_body(self.body), cached=self.cached, max_tokens=self.max_tokens, known=known or {}
        )
        place = f"Check the base URL (without /v1) and the model name {self.model!r}."
        address = EndpointAddress(shown, check_key(self.api_key_env, self.api_key), place)
        version, url = {"anthropic-version": API_VERSION}, resolved_url(self.base_url)
        async with open_wire(url, keys, self.timeout_s, headers=version, shown=shown) as wire:
            yield ChatConnection(wire, "/v1/messages", bodies, address, _reading(wire, shown))

    def price_usd(self, usage: Usage) -> float | None:
        """Return the list price; None for a model that is not listed, or an endpoint that is not the provider's own."""
        from merilo.providers.prices import list_price_usd

        return list_price_usd("anthropic", self.base_url, self.model, usage)


def _reading(wire: Wire, address: str) -> ReadReply:
    def read(body: Json, text: str, path: ReplyPath, seconds: float) -> Reply:
        return message_of(body, text, path=path, clean=wire.clean, address=address, seconds=seconds)

    return read


PROVIDER: Final = AnthropicProvider
