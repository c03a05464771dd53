"""Provider for Ollama's own chat API, which refuses a prompt that is too long instead of truncating it."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from merilo.errors import ProviderDown, ProviderError, UsageError
from merilo.providers.chat import ChatConnection
from merilo.providers.endpoint import check_provider, checked_url
from merilo.providers.keys import ApiKeys, check_key, key_in
from merilo.providers.ollama_bodies import OllamaBodies
from merilo.providers.ollama_model import model_at
from merilo.providers.ollama_replies import chat_error_of, chat_reply_of
from merilo.providers.problems import EndpointAddress
from merilo.providers.secrets import fingerprint_body, resolved_body, resolved_url, secrets_in, shown_url
from merilo.providers.wire import open_wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from merilo.judging.json_types import Json
    from merilo.providers.base import Reply, ReplyPath, Request, Usage
    from merilo.providers.keys import KeySource
    from merilo.providers.problems import EndpointProblem
    from merilo.providers.wire import Wire, WireAnswer

OLLAMA_URL: Final = "http://localhost:11434"
_PORT: Final = 11434
_ENDINGS: Final = ("/chat", "/api", "/v1")
_DEFAULT_NUM_CTX: Final = 16_384
_MIN_NUM_CTX: Final = 512
_ANY_HOST: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  read from the user's variable, not bound
"""Hosts to listen on, and the host at which a client reaches each."""
_DIGEST: Final = "digest"
_UPDATE: Final = "Update Ollama: some versions ignore `truncate: false` or count only uncached tokens."


def _default_url() -> str:
    """Return the address in OLLAMA_HOST, which may lack the scheme, the host or the port."""
    given = os.environ.get("OLLAMA_HOST", "").strip().strip("\"'").rstrip("/")
    if not given:
        return OLLAMA_URL
    if "://" in given:
        return given
    if given.count(":") > 1 and "[" not in given:  # an IPv6 address
        given = f"[{given}]"
    host, colon, port = given.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = given, str(_PORT)
    return f"http://{_ANY_HOST.get(host, host) or 'localhost'}:{port}"


def _default_num_ctx() -> int:
    given = os.environ.get("OLLAMA_CONTEXT_LENGTH", "").strip()
    if given and not given.isdecimal():
        raise UsageError(f"OLLAMA_CONTEXT_LENGTH must be a number of tokens, got {given!r}.")
    return int(given or 0) or _DEFAULT_NUM_CTX


@dataclass(frozen=True)
class OllamaProvider:
    """A model of an Ollama server.

    `base_url` is OLLAMA_HOST at construction, otherwise http://localhost:11434. `num_ctx` is the context length of all
    requests: OLLAMA_CONTEXT_LENGTH at construction, otherwise 16,384, but at most that of the model. A longer prompt is
    an error. `keep_alive` is how long the model stays loaded after a request. No key is needed; one in `api_key_env` is
    sent as a bearer token. Otherwise as `OpenAIProvider`. Raises UsageError for an invalid address or length.
    """

    model: str
    base_url: str = field(default_factory=_default_url, repr=False)
    api_key_env: str = "OLLAMA_API_KEY"
    timeout_s: float = 300.0
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: Mapping[str, object] = field(default_factory=dict[str, object], hash=False, repr=False)
    api_key: KeySource | None = field(default=None, repr=False, compare=False)
    num_ctx: int = field(default_factory=_default_num_ctx)
    keep_alive: str = "30m"

    def __post_init__(self) -> None:
        check_provider(self.model, self.timeout_s, self.api_key_env, example="ollama:qwen3")
        if self.num_ctx < _MIN_NUM_CTX:
            raise UsageError(f"num_ctx (OLLAMA_CONTEXT_LENGTH) must be at least {_MIN_NUM_CTX}, got {self.num_ctx}.")
        object.__setattr__(self, "base_url", checked_url(self.base_url, _ENDINGS, example=OLLAMA_URL))

    def fingerprint(self) -> Mapping[str, object]:
        """Return address, model and extra body without secrets; no key and no headers.

        `num_ctx` is omitted: no prompt is truncated, so it changes no reply, and a run may resume with a larger one.
        """
        body = fingerprint_body(self.body, f"{self.base_url} {self.model}")
        return {"provider": "ollama", "base_url": shown_url(self.base_url), "model": self.model, "body": body}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[OllamaConnection, None]:
        """Open a connection. `known` are the adaptations of an earlier run, with the digest of its model."""
        key = key_in(self.api_key_env)
        hidden = secrets_in(self.body, self.base_url)
        keys = ApiKeys(
            "Authorization", prefix="Bearer ", key=key, source=self.api_key, others=self.headers, hidden=hidden
        )
        bodies = OllamaBodies(
            self.model, resolved_body(self.body), num_ctx=self.num_ctx, keep_alive=self.keep_alive, known=known or {}
        )
        async with open_wire(resolved_url(self.base_url), keys, self.timeout_s, shown=self.address.url) as wire:
            yield OllamaConnection(self, wire, bodies, self.address)

    def price_usd(self, usage: Usage) -> float | None:
        """Return the list price; None, since no Ollama server is listed. A price file may have one."""
        from merilo.providers.prices import list_price_usd

        return list_price_usd("ollama", self.base_url, self.model, usage)

    @property
    def address(self) -> EndpointAddress:
        """The endpoint as shown in messages."""
        host = urlsplit(self.base_url).hostname
        place = f"Check that an Ollama server runs on {host} (OLLAMA_HOST, --base-url)."
        return EndpointAddress(shown_url(self.base_url), check_key(self.api_key_env, self.api_key), place)


class OllamaConnection:
    """A session with one Ollama server that inspects the model before the first request."""

    def __init__(self, provider: OllamaProvider, wire: Wire, bodies: OllamaBodies, address: EndpointAddress) -> None:
        self._model = provider.model
        self._wire = wire
        self._bodies = bodies
        self._address = address
        self._inspected = False
        self._inspecting = asyncio.Lock()
        self._chat = ChatConnection(
            wire,
            "/api/chat",
            bodies,
            address,
            self._read,
            read_error=self._error,
            truncation_advice=_UPDATE,
        )

    async def send(self, request: Request) -> Reply:
        """Return the reply to one request. Raises the provider errors, and ProviderDown if the model has changed."""
        await self._inspect()
        return await self._chat.send(request)

    async def attempt(self, request: Request) -> Reply | None:
        """Send a request once; return None if it must be sent again with adapted parameters. Raises the errors of
        `send`.
        """
        await self._inspect()
        return await self._chat.attempt(request)

    def adaptations(self) -> Mapping[str, str]:
        """Return the digest of the model, the context length, and each rejected parameter with its adaptation."""
        return self._chat.adaptations()

    def notices(self) -> Sequence[str]:
        """Return one sentence for each adaptation of this connection."""
        return self._chat.notices()

    async def _inspect(self) -> None:
        """Read the model's description before the first request; concurrent requests wait for it.

        Raises the errors of `send`, as errors of a request that was not sent.
        """
        if self._inspected:
            return
        async with self._inspecting:
            if self._inspected:
                return
            try:
                model = await model_at(self._wire, self._model, self._failed)
                self._check_digest(model.digest)
            except ProviderError as error:
                error.sent = False  # the request itself was not sent, so it is not counted
                raise
            self._bodies.fit(context_length=model.context_length, think=model.think)
            self._inspected = True

    def _check_digest(self, digest: str) -> None:
        """Record the model's digest. Raises ProviderDown if an earlier part of the run used another one."""
        if not digest:
            return
        if self._bodies.done.setdefault(_DIGEST, digest) != digest:
            earlier = self._bodies.done[_DIGEST]
            raise ProviderDown(
                f"The model {self._model!r} has changed since this run began (digest {digest[:12]}, before "
                f"{earlier[:12]}). Start a new run, or restore the earlier model.",
            )

    def _failed(self, problem: EndpointProblem, answer: WireAnswer) -> ProviderError:
        return self._error(problem, answer.headers, self._address)

    def _error(self, problem: EndpointProblem, headers: Mapping[str, str], address: EndpointAddress) -> ProviderError:
        return chat_error_of(problem, headers, address, model=self._model, limit=self._bodies.limit)

    def _read(self, body: Json, text: str, path: ReplyPath, seconds: float) -> Reply:
        read = partial(chat_reply_of, clean=self._wire.clean, address=self._address.url, limit=self._bodies.limit)
        return read(body, text, path=path, seconds=seconds)


PROVIDER: Final = OllamaProvider
