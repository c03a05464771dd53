"""Provider for Amazon Bedrock's Converse API, with a Bedrock API key."""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from merilo.errors import UsageError
from merilo.providers.bedrock_bodies import BedrockBodies
from merilo.providers.bedrock_replies import converse_error_of, converse_reply_of
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

_DOMAINS: Final = {"cn-": ".amazonaws.com.cn", "eusc-": ".amazonaws.eu"}
"""Domains of the regions outside amazonaws.com, by the beginning of the region's name."""
_HOSTS: Final = (".amazonaws.com", *_DOMAINS.values())
_EXAMPLE: Final = "https://bedrock-runtime.us-east-1.amazonaws.com"
_REGION: Final = re.compile(r"[a-z]{2,}(?:-[a-z]+)+-\d+")


def _default_url() -> str:
    """Return the address of the region in the environment. Raises UsageError without a valid region."""
    if url := os.environ.get("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"):
        return url
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
    if not region:
        raise UsageError("Bedrock needs a region such as us-east-1: set AWS_REGION, or give --base-url.")
    if not _REGION.fullmatch(region):
        raise UsageError(f"AWS_REGION must be a region such as us-east-1, got {region!r}.")
    domain = next((domain for start, domain in _DOMAINS.items() if region.startswith(start)), ".amazonaws.com")
    return f"https://bedrock-runtime.{region}{domain}"


@dataclass(frozen=True)
class BedrockProvider:
    """A model of Amazon Bedrock.

    `model` is a model id, the id of an inference profile, or an ARN. `base_url` is AWS_ENDPOINT_URL_BEDROCK_RUNTIME at
    construction, otherwise the address of the region in AWS_REGION or AWS_DEFAULT_REGION. The key is a Bedrock API key
    in AWS_BEARER_TOKEN_BEDROCK; requests signed with AWS credentials (SigV4) are not supported. Otherwise as
    `OpenAIProvider`. Raises UsageError for an invalid address or region.
    """

    model: str
    base_url: str = field(default_factory=_default_url, repr=False)
    api_key_env: str = "AWS_BEARER_TOKEN_BEDROCK"
    timeout_s: float = 300.0  # a new schema is compiled during the first request, which may take minutes
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: Mapping[str, object] = field(default_factory=dict[str, object], hash=False, repr=False)
    api_key: KeySource | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_provider(self.model, self.timeout_s, self.api_key_env, example="bedrock:amazon.nova-lite-v1:0")
        object.__setattr__(self, "base_url", checked_url(self.base_url, ("/v1", "/openai"), example=_EXAMPLE))

    def fingerprint(self) -> Mapping[str, object]:
        """Return address, model and extra body without secrets; no key and no headers."""
        body = fingerprint_body(self.body, f"{self.base_url} {self.model}")
        return {"provider": "bedrock", "base_url": shown_url(self.base_url), "model": self.model, "body": body}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[ChatConnection, None]:
        """Open a connection. `known` are the adaptations of an earlier run, so that they need not be learnt again.

        Raises UsageError if the address is one of Amazon's own hosts and there is no key.
        """
        hosted = (urlsplit(self.base_url).hostname or "").endswith(_HOSTS)
        shown = shown_url(self.base_url)
        key = key_in(self.api_key_env, needed_for=shown if hosted and self.api_key is None else None)
        hidden = secrets_in(self.body, self.base_url)
        keys = ApiKeys(
            "Authorization", prefix="Bearer ", key=key, source=self.api_key, others=self.headers, hidden=hidden
        )
        bodies = BedrockBodies(self.model, resolved_body(self.body), known=known or {})
        place = f"Check the region (AWS_REGION) and the model id {self.model!r}; most models need an inference profile."
        key_place = f"{check_key(self.api_key_env, self.api_key)}; a key is valid in one region"
        address = EndpointAddress(shown, key_place, place)
        read_error = partial(converse_error_of, renews_key=self.api_key is not None)
        async with open_wire(resolved_url(self.base_url), keys, self.timeout_s, shown=shown) as wire:
            yield ChatConnection(wire, self._route, bodies, address, _reading(wire, shown), read_error=read_error)

    def price_usd(self, usage: Usage) -> float | None:
        """Return the list price; None, since prices differ by region. A price file may have one."""
        from merilo.providers.prices import list_price_usd

        return list_price_usd("bedrock", self.base_url, self.model, usage)

    @property
    def _route(self) -> str:
        return f"/model/{quote(self.model, safe='')}/converse"


def _reading(wire: Wire, address: str) -> ReadReply:
    def read(body: Json, text: str, path: ReplyPath, seconds: float) -> Reply:
        return converse_reply_of(body, text, path=path, clean=wire.clean, address=address, seconds=seconds)

    return read


PROVIDER: Final = BedrockProvider
