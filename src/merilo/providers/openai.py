"""Carries requests to any endpoint that speaks OpenAI's chat completions, hosted or local."""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from merilo.errors import UsageError
from merilo.providers.openai_bodies import Bodies
from merilo.providers.openai_replies import Problem, error_of, problem_in, reply_of
from merilo.providers.openai_wire import open_wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from merilo.providers.base import Reply, Request, Usage
    from merilo.providers.openai_wire import Wire

OPENAI_URL = "https://api.openai.com/v1"
_PATHS = ("/chat/completions", "/embeddings")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _default_url() -> str:
    return os.environ.get("OPENAI_BASE_URL") or OPENAI_URL


@dataclass(frozen=True)
class OpenAIProvider:
    """A model behind an OpenAI-compatible endpoint.

    `base_url` is OPENAI_BASE_URL at construction, else OpenAI's own. The key is read from the environment
    variable `api_key_env` when a connection is opened and stands nowhere else; other endpoints than
    OpenAI's may do without. `headers` may hold secrets and are never shown. `body` is sent with every
    request and goes before our own fields. Raises UsageError for an address that cannot be used.
    """

    model: str
    base_url: str = field(default_factory=_default_url)
    api_key_env: str = "OPENAI_API_KEY"
    timeout_s: float = 120.0
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise UsageError("A model name is needed, as in 'openai:gpt-4.1-mini'.")
        if self.timeout_s <= 0:
            raise UsageError(f"The timeout must be more than 0 seconds, got {self.timeout_s}.")
        object.__setattr__(self, "base_url", _checked_url(self.base_url))

    def fingerprint(self) -> Mapping[str, object]:
        """Address, model and extra body; no key and no headers."""
        return {"provider": "openai", "base_url": self.base_url, "model": self.model, "body": dict(self.body)}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[OpenAIConnection, None]:
        """An open connection. `known` are the adaptations of an earlier run, so as not to learn them again.

        Raises UsageError when OpenAI's own endpoint is to be used and there is no key.
        """
        async with self.wire() as wire:
            yield OpenAIConnection(self, wire, known or {})

    @asynccontextmanager
    async def wire(self) -> AsyncGenerator[Wire, None]:
        """An open line to the endpoint with key and headers. Raises UsageError as `connect` does."""
        key = self._key()
        headers = dict(self.headers)
        if key:
            headers.setdefault("Authorization", f"Bearer {key}")
        async with open_wire(self.base_url, headers, self.timeout_s, secrets=_secrets(key, self.headers)) as wire:
            yield wire

    def price_usd(self, usage: Usage) -> float | None:
        """Unknown."""
        del usage
        return None

    @property
    def hosted(self) -> bool:
        """True for OpenAI's own endpoint."""
        return urlsplit(self.base_url).hostname == urlsplit(OPENAI_URL).hostname

    def _key(self) -> str:
        if not _VARIABLE.fullmatch(self.api_key_env):
            raise UsageError(
                "The key is named by an environment variable, as in OPENAI_API_KEY; do not give the key itself."
            )
        key = os.environ.get(self.api_key_env, "").strip()
        if not key and self.hosted:
            raise UsageError(
                f"The environment variable {self.api_key_env} holds no key for {self.base_url}; "
                "set it, or give the base URL of an endpoint that needs none."
            )
        if not key.isprintable() or not key.isascii():
            raise UsageError(f"The environment variable {self.api_key_env} holds characters that no key has.")
        return key


class OpenAIConnection:
    """One session with an endpoint; learns which parameters the endpoint refuses."""

    def __init__(self, provider: OpenAIProvider, wire: Wire, known: Mapping[str, str]) -> None:
        self._provider = provider
        self._wire = wire
        self._bodies = Bodies(provider.model, provider.body, hosted=provider.hosted, known=known)

    async def send(self, request: Request) -> Reply:
        """The reply to one request. Raises the provider errors.

        A request that is refused for a parameter is sent again without it; what one request learned
        holds for all that follow, and for those that were on their way.
        """
        started = perf_counter()
        while True:
            body = self._bodies.body_for(request)
            path = self._bodies.path_for(request)
            answer = await self._wire.post("/chat/completions", body)
            problem = problem_in(answer.status, answer.text)
            if problem is None:
                reply = reply_of(answer.text, path=path, clean=self._wire.clean, address=self._provider.base_url)
                return replace(reply, seconds=perf_counter() - started)
            problem = Problem(problem.status, self._wire.clean(problem.message), problem.code, problem.parameter)
            if body != self._bodies.body_for(request) or self._bodies.learn(problem):
                continue
            raise error_of(problem, answer.headers, self._provider.base_url, self._provider.model)

    def adaptations(self) -> Mapping[str, str]:
        """Each parameter that was refused, with what was done."""
        return dict(self._bodies.done)

    def notices(self) -> Sequence[str]:
        """One sentence for each adaptation of this connection."""
        return tuple(self._bodies.notices)


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        _ = parts.port, (parts.hostname or "").encode("idna")
    except ValueError as error:
        raise UsageError(f"The base URL cannot be read ({error}); write it as in http://localhost:8000/v1.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError("A base URL begins with http:// or https:// and names a host, as in http://localhost:8000/v1.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError(
            f"The base URL for {parts.hostname} must hold no password, query or fragment; "
            "keys belong in an environment variable."
        )
    path = parts.path.rstrip("/")
    for ending in _PATHS:
        path = path.removesuffix(ending)
    return f"{parts.scheme}://{parts.netloc}{path}"


def _secrets(key: str, headers: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """What must not be echoed: the key and the values of headers that are long enough to be secrets."""
    values = [key, *(value for _, value in headers), *(value.rpartition(" ")[2] for _, value in headers)]
    return tuple(sorted({value for value in values if len(value) >= 8}, key=len, reverse=True))
