"""Provider for deployments on Azure OpenAI: chat completions with Azure's own addresses and keys."""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from merilo.errors import UsageError
from merilo.providers.chat import ChatConnection
from merilo.providers.endpoint import check_provider, checked_url
from merilo.providers.keys import ApiKeys, check_key, key_in
from merilo.providers.openai import reading
from merilo.providers.openai_bodies import OpenAIBodies
from merilo.providers.problems import EndpointAddress
from merilo.providers.secrets import fingerprint_body, resolved_body, resolved_url, secrets_in, shown_url
from merilo.providers.wire import open_wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from merilo.providers.base import Usage
    from merilo.providers.keys import KeySource
    from merilo.providers.wire import Wire

_EXAMPLE = "https://NAME.openai.azure.com"
_ENDINGS = ("/chat/completions", "/embeddings", "/v1", "/openai")
_DEPLOYMENT = re.compile(r"/openai/deployments/[^/]+$")
_HOSTS = (".azure.com", ".azure.us", ".azure.cn")
_DATED = re.compile(r"\d{4}-\d\d-\d\d(?:-preview)?")
_UNDATED = frozenset({"", "v1", "preview", "latest"})


def _default_url() -> str:
    url = os.environ.get("AZURE_OPENAI_ENDPOINT")
    if not url:
        raise UsageError(f"Azure OpenAI needs an address such as {_EXAMPLE}: set AZURE_OPENAI_ENDPOINT or --base-url.")
    return url


def _default_version() -> str:
    return os.environ.get("AZURE_OPENAI_API_VERSION") or ""


@dataclass(frozen=True)
class AzureProvider:
    """A deployment of a model on Azure OpenAI.

    `model` is the deployment's name. `base_url` is the resource's endpoint, AZURE_OPENAI_ENDPOINT at construction.
    `api_version` is AZURE_OPENAI_API_VERSION. With a date such as 2024-10-21 the deployment's own address is used;
    without one (or with `preview`) the newer `/openai/v1`. A key, from the environment variable `api_key_env` or the
    callable `api_key`, is sent as `api-key`. `token` is a callable that returns a token of Microsoft Entra ID instead,
    sent as a bearer token. Otherwise as `OpenAIProvider`. Raises UsageError for an invalid address or version.
    """

    model: str
    base_url: str = field(default_factory=_default_url, repr=False)
    api_version: str = field(default_factory=_default_version)
    api_key_env: str = "AZURE_OPENAI_API_KEY"
    timeout_s: float = 120.0
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: Mapping[str, object] = field(default_factory=dict[str, object], hash=False, repr=False)
    api_key: KeySource | None = field(default=None, repr=False, compare=False)
    token: KeySource | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_provider(self.model, self.timeout_s, self.api_key_env, example="azure:my-deployment")
        url = checked_url(self.base_url, _ENDINGS[:2], example=_EXAMPLE)
        url = checked_url(_DEPLOYMENT.sub("", url), _ENDINGS[2:], example=_EXAMPLE)
        object.__setattr__(self, "base_url", url)
        if self.api_version not in _UNDATED and not _DATED.fullmatch(self.api_version):
            raise UsageError(
                "AZURE_OPENAI_API_VERSION must be a date such as 2024-10-21, or empty for the newer /openai/v1, "
                f"got {self.api_version!r}."
            )

    def fingerprint(self) -> Mapping[str, object]:
        """Return address, deployment, version and extra body without secrets; no key and no headers."""
        return {
            "provider": "azure",
            "base_url": shown_url(self.base_url),
            "model": self.model,
            "api_version": self.api_version,
            "body": fingerprint_body(self.body, f"{self.base_url} {self.model}"),
        }

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[ChatConnection, None]:
        """Open a connection; `known` as for `OpenAIProvider`.

        Raises UsageError if the address is one of Azure's own hosts and there is no key.
        """
        bodies = OpenAIBodies(self.model, resolved_body(self.body), hosted=True, known=known or {})
        async with self.wire() as wire:
            yield ChatConnection(
                wire, self.route("/chat/completions"), bodies, self.address, reading(wire, self.address.url, bodies)
            )

    @asynccontextmanager
    async def wire(self) -> AsyncGenerator[Wire, None]:
        """Open an HTTP session to the endpoint with key and headers. Raises UsageError as `connect` does."""
        given = self.token or self.api_key
        key = key_in(self.api_key_env, needed_for=self.address.url if self.hosted and given is None else None)
        name, prefix = ("Authorization", "Bearer ") if self.token else ("api-key", "")
        hidden = secrets_in(self.body, self.base_url)
        keys = ApiKeys(name, prefix=prefix, key=key, source=given, others=self.headers, hidden=hidden)
        async with open_wire(resolved_url(self.base_url), keys, self.timeout_s, shown=self.address.url) as wire:
            yield wire

    def route(self, path: str) -> str:
        """Return the path of a kind of request, relative to the base URL."""
        if self.api_version not in _UNDATED:
            deployment = quote(self.model, safe="")
            return f"/openai/deployments/{deployment}{path}?api-version={self.api_version}"
        version = f"?api-version={self.api_version}" if self.api_version in {"preview", "latest"} else ""
        return f"/openai/v1{path}{version}"

    def price_usd(self, usage: Usage) -> float | None:
        """Return the list price; None for a model that is not listed, or an endpoint that is not the provider's own."""
        from merilo.providers.prices import list_price_usd

        return list_price_usd("azure", self.base_url, self.model, usage)

    @property
    def hosted(self) -> bool:
        """True for Azure's own hosts."""
        return (urlsplit(self.base_url).hostname or "").endswith(_HOSTS)

    @property
    def address(self) -> EndpointAddress:
        """The endpoint as shown in messages."""
        version = f"and the API version {self.api_version}" if self.api_version else "and whether it has /openai/v1"
        place = f"Check the endpoint, the name of the deployment {self.model!r} {version}."
        return EndpointAddress(shown_url(self.base_url), check_key(self.api_key_env, self.token or self.api_key), place)


PROVIDER: Final = AzureProvider
