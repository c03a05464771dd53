"""The common part of all providers over HTTP: settings, address, key, fingerprint, HTTP sessions and chat connections.

A provider is one file with a row (`Service`), the bodies of its requests, and a parser of its replies.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

from merilo.errors import Permanent, ProviderDown, ProviderError, Temporary, TimedOut, Unreachable, UsageError
from merilo.providers.base import Connection, Reply, ReplyPath, Request, Usage
from merilo.providers.problems import (
    INCREASE_CONTEXT,
    EndpointAddress,
    PromptCheck,
    Received,
    error_of,
    message_in,
    problem_in,
)
from merilo.providers.secrets import (
    ApiKeys,
    check_key,
    checked_variable,
    fingerprint_body,
    key_in,
    resolved_body,
    resolved_url,
    secrets_in,
    shown_url,
)
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence

    from aiohttp import ClientSession

    from merilo.providers.bodies import Bodies
    from merilo.providers.problems import EndpointProblem
    from merilo.providers.secrets import KeySource

    ReadError = Callable[[EndpointProblem, Mapping[str, str], EndpointAddress], ProviderError]


@dataclass(frozen=True)
class Service:
    """The facts about one kind of endpoint."""

    kind: str
    """The name in fingerprints and price lists."""
    model: str
    """An example of a judge with a model, for messages."""
    url: str = "http://localhost:8000/v1"
    """An example of an address, for messages."""
    endings: tuple[str, ...] = ()
    """Ends of a path that are removed from an address in order, each once."""
    hosts: tuple[str, ...] = ()
    """The provider's own hosts, which need a key; one with a dot at its start is the end of a name."""
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    headers: tuple[tuple[str, str], ...] = ()
    """Headers that the endpoint requires with every request in addition to the key."""
    check: str = "the base URL and the model name {0.model!r}"
    """What to check if the endpoint accepts no request at all."""
    absent: str = "No server at {place}. Check the base URL and the network."
    """The message if no server is there."""


@dataclass(frozen=True)
class Endpoint(ABC):
    """A model at an address; a subclass is one kind of endpoint, see `OpenAIProvider` for the fields."""

    service: ClassVar[Service]

    model: str
    base_url: str = field(default="", repr=False)
    api_key_env: str = ""
    timeout_s: float = 120.0
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: Mapping[str, object] = field(default_factory=dict[str, object], hash=False, repr=False)
    api_key: KeySource | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise UsageError(f"The model name is missing; example: {self.service.model!r}.")
        if self.timeout_s <= 0:
            raise UsageError(f"The timeout must be more than 0 seconds, got {self.timeout_s}.")
        checked_variable(self.api_key_env)
        object.__setattr__(self, "base_url", checked_url(self.base_url, self.service))

    @abstractmethod
    def open(self, wire: Wire, body: Mapping[str, object], known: Mapping[str, str]) -> Connection:
        """Return the connection over this session. `body`: the user's own fields as they are sent."""

    @property
    def check_place(self) -> str:
        """The sentence that says what to check if the endpoint accepts no request at all."""
        return f"Check {self._placed(self.service.check)}."

    def _placed(self, text: str) -> str:
        """Return a text of the service with this endpoint and its place."""
        return text.format(self, place=urlsplit(self.base_url).netloc)

    @property
    def key_source(self) -> KeySource | None:
        """The callable that returns the key; None if the key is in a variable."""
        return self.api_key

    @property
    def check_key(self) -> str:
        """The advice about a rejected key."""
        return check_key(self.api_key_env, self.key_source)

    @property
    def hosted(self) -> bool:
        """True for the provider's own hosts."""
        host = urlsplit(self.base_url).hostname or ""
        return any(host.endswith(each) if each.startswith(".") else host == each for each in self.service.hosts)

    @property
    def address(self) -> EndpointAddress:
        """The endpoint as shown in messages."""
        return EndpointAddress(shown_url(self.base_url), self.check_key, self.check_place)

    def fingerprint(self) -> Mapping[str, object]:
        """Return kind, address, model and extra body without secrets; no key and no headers."""
        body = fingerprint_body(self.body, f"{self.base_url} {self.model}")
        return {"provider": self.service.kind, "base_url": shown_url(self.base_url), "model": self.model, "body": body}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[Connection, None]:
        """Open a connection. `known` are the adaptations of an earlier run, so that they need not be learnt again.

        Raises UsageError if the address is one of the provider's own and there is no key.
        """
        async with self.wire() as wire:
            yield self.open(wire, resolved_body(self.body), known or {})

    @asynccontextmanager
    async def wire(self) -> AsyncGenerator[Wire, None]:
        """Open an HTTP session to the endpoint with key and headers. Raises UsageError as `connect` does."""
        shown, source = shown_url(self.base_url), self.key_source
        key = key_in(self.api_key_env, needed_for=shown if self.hosted and source is None else None)
        header, prefix = self.key_header
        hidden = secrets_in(self.body, self.base_url)
        keys = ApiKeys(header, prefix=prefix, key=key, source=source, others=self.headers, hidden=hidden)
        url, own = resolved_url(self.base_url), dict(self.service.headers)
        absent = self._placed(self.service.absent)
        async with open_wire(url, keys, self.timeout_s, shown=shown, absent=absent, headers=own) as wire:
            yield wire

    @property
    def key_header(self) -> tuple[str, str]:
        """The name of the header with the key, and the text before the key."""
        return self.service.key_header, self.service.key_prefix

    def price_usd(self, usage: Usage) -> float | None:
        """Return the list price; None for a model that is not listed, or an endpoint that is not the provider's own."""
        from merilo.providers.prices import list_price_usd

        return list_price_usd(self.service.kind, self.base_url, self.model, usage)


def url_in(variable: str, default: str) -> Callable[[], str]:
    """Return the function that reads an address from a variable, with a default."""
    return lambda: os.environ.get(variable) or default


def checked_url(url: str, service: Service) -> str:
    """Return the address without a trailing slash or one of the service's endings.

    Raises UsageError for an invalid address.
    """
    if "@" in url:  # the message does not quote the URL, which may contain a password
        raise UsageError("The base URL must not contain a password or @; keys belong in an environment variable.")
    try:
        parts = urlsplit(url.strip())
        _ = parts.port, (parts.hostname or "").encode("idna")
    except ValueError as error:
        raise UsageError(f"The base URL is not valid ({error}); example: {service.url}.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"A base URL must begin with http:// or https:// and name a host; example: {service.url}.")
    if parts.query or parts.fragment:
        raise UsageError(
            f"The base URL for {parts.hostname} must not have a query or fragment. Keys belong in an environment "
            "variable."
        )
    path = parts.path.rstrip("/")
    for ending in service.endings:
        path = path.removesuffix(ending)
    return f"{parts.scheme}://{parts.netloc}{path}"


_BY_FORM = frozenset({400, 422})
"""Statuses that reject the form of a request, unless the error says otherwise."""

_UNLIMITED_TOKENS = 4_096
"""Assumed maximum reply tokens of a request that sets no limit."""


class ChatConnection:
    """A session with one endpoint that adapts to the parameters the endpoint rejects."""

    def __init__(
        self,
        wire: Wire,
        route: str,
        bodies: Bodies,
        address: EndpointAddress,
        read: Callable[[Received], Reply],
        *,
        read_error: ReadError = error_of,
        truncation_advice: str = INCREASE_CONTEXT,
    ) -> None:
        """`read` raises the provider errors. `truncation_advice`: what to do if the server truncates prompts."""
        self.wire = wire
        """The session with the endpoint."""
        self.route = route
        """The path of a request, relative to the base URL."""
        self._bodies = bodies
        self._address = address
        self._read = read
        self._read_error = read_error
        self._trying = asyncio.Lock()
        self._prompts = PromptCheck(address.url, advice=truncation_advice)

    async def send(self, request: Request) -> Reply:
        """Return the reply to one request, sent again without rejected parameters. Raises the provider errors."""
        while (reply := await self.attempt(request)) is None:
            pass
        return reply

    def attempt(self, request: Request) -> Coroutine[Any, Any, Reply | None]:
        """Send a request once; return None if a parameter was rejected, so that it must be sent again without it.

        An adaptation applies to all later requests, and to retries of those in flight. Raises the provider errors.
        """
        # not async itself: each coroutine around another one costs two calls per request
        return self._attempt_in_turn(request) if self._bodies.unsure else self._attempt(request)

    async def _attempt_in_turn(self, request: Request) -> Reply | None:
        async with self._trying:  # requests that wait here would be rejected too
            if self._bodies.unsure:
                return await self._attempt(request)
        return await self._attempt(request)

    async def _attempt(self, request: Request) -> Reply | None:
        started = perf_counter()
        body, path = self._bodies.body_for(request), self._bodies.path_for(request)
        tokens = (request.max_tokens or _UNLIMITED_TOKENS) * request.samples
        answer = await self.wire.post(self.route, body, largest=largest_reply(tokens))
        return self.receive(request, answer, path, perf_counter() - started, body=body)

    def body(self, request: Request) -> bytes:
        """Return the JSON body with which this request is sent now."""
        return self._bodies.body_for(request)

    def path(self, request: Request) -> ReplyPath:
        """Return how structured output is requested now."""
        return self._bodies.path_for(request)

    def receive(
        self, request: Request, answer: WireAnswer, path: ReplyPath, seconds: float = 0.0, *, body: bytes
    ) -> Reply | None:
        """Return the reply in an answer; None if the request must be sent again, see `attempt`. Raises the provider
        errors.

        `path` and `body` are those with which the request was sent.
        """
        received = message_in(answer.text)
        problem = problem_in(answer.status, received, answer.text)
        if problem is None:
            reply = self._read(Received(received, answer.text, path, self.wire.clean, self._address.url, seconds))
            self._bodies.worked(request, body)
            if (error := self._prompts.error(request, reply)) is not None:
                raise error
            return reply
        problem = problem.cleaned(self.wire.clean)
        error = self._read_error(problem, answer.headers, self._address)
        if problem.status in _BY_FORM and not isinstance(error, Permanent):  # the key, the account, the model, a filter
            raise error
        learned = self._bodies.learn(problem, request, body)
        if learned and not problem.received_bytes:  # a reply that may be billed must count as a failed request
            return None
        raise error

    def error_in(self, answer: WireAnswer) -> ProviderError | None:
        """Return the error that an answer to another kind of request reports, such as a batch; None if it is fine."""
        problem = problem_in(answer.status, message_in(answer.text), answer.text)
        if problem is None:
            return None
        return self._read_error(problem.cleaned(self.wire.clean), answer.headers, self._address)

    def usage_in(self, answer: WireAnswer) -> Usage:
        """Return the tokens that an answer reports, whatever was asked. Raises ProviderError if it has no reply."""
        body = message_in(answer.text)
        return self._read(Received(body, answer.text, ReplyPath.TEXT, self.wire.clean, self._address.url)).usage

    def adaptations(self) -> Mapping[str, str]:
        """Return each rejected parameter with its adaptation."""
        return dict(self._bodies.done)

    def notices(self) -> Sequence[str]:
        """Return one sentence for each adaptation of this connection."""
        return tuple(self._bodies.notices)


# -- HTTP sessions: JSON bodies are sent, and network errors become those of merilo --------------------------

_LARGEST_REPLY_BYTES = 16 * 1024 * 1024
_LARGEST_ENVELOPE_BYTES = 2 * 1024 * 1024
_BYTES_PER_TOKEN = 256
"""Bytes of the longest tokens of usual tokenizers (128 characters), escaped in JSON."""
_DNS_KEPT_S = 300
_LOG = logging.getLogger(__name__)


def largest_reply(tokens: int) -> int:
    """Return the size in bytes of the largest body that is read for a reply of at most this many tokens."""
    return min(_LARGEST_REPLY_BYTES, _LARGEST_ENVELOPE_BYTES + _BYTES_PER_TOKEN * tokens)


class WireAnswer(NamedTuple):
    """The answer to a request, whatever its status."""

    status: int
    headers: Mapping[str, str]
    text: str


class Wire:
    """An open session with one endpoint; remembers whether it was ever reachable."""

    def __init__(
        self, session: ClientSession, base_url: str, timeout_s: float, keys: ApiKeys, *, shown: str, absent: str
    ) -> None:
        """`shown`: the address for messages, without secrets. `absent`: the message if no server is there."""
        from aiohttp import ClientConnectorError, ClientError

        self._errors, self._unconnected = (ClientError, OSError), ClientConnectorError
        self._session = session
        self._base_url = base_url
        self._shown, self._absent = shown, absent
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._keys = keys
        self._reached = False
        self._in_flight: dict[asyncio.Task[Any] | None, float] = {}
        """When the timeout of each task's request is over, in this order; 0 for one that was cancelled for it."""
        self._timer: asyncio.TimerHandle | None = None
        self.clean = keys.clean
        """Removes secrets and half surrogate pairs from a text."""

    def post(
        self, path: str, body: bytes, *, largest: int | None = None, content_type: str | None = None
    ) -> Coroutine[Any, Any, WireAnswer]:
        """Return the answer to a body, JSON of at most 16 MiB by default. Raises Permanent, Temporary, ProviderDown."""
        return self._exchange("POST", path, body, largest or _LARGEST_REPLY_BYTES, content_type)

    async def get(self, path: str, *, largest: int | None = None) -> WireAnswer:
        """Return the answer to a request without a body. Raises the errors of `post`."""
        return await self._exchange("GET", path, None, largest or _LARGEST_REPLY_BYTES)

    async def _exchange(
        self, method: str, path: str, body: bytes | None, largest: int, content_type: str | None = None
    ) -> WireAnswer:
        headers = await self._keys.fresh() if self._keys.renewed else None
        if content_type is not None:
            headers = {**(headers or {}), "Content-Type": content_type}
        read = bytearray()
        task = asyncio.current_task(self._loop)
        self._in_flight[task] = time.monotonic() + self._timeout_s
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_s, self._check)
        try:
            async with await self._session.request(
                method, f"{self._base_url}{path}", data=body, headers=headers, allow_redirects=False
            ) as response:
                while chunk := await response.content.readany():
                    read += chunk
                    if len(read) > largest:
                        message = f"{self._shown}{path} sent more than {largest} bytes as one reply."
                        raise Permanent(message, status=response.status, received_bytes=len(read))
                    if response.content.at_eof():
                        break
                self._reached = True
                text = read.decode("utf-8", "replace").removeprefix("\ufeff")
                return WireAnswer(response.status, response.headers, text)
        except (TimeoutError, asyncio.CancelledError) as error:
            ours = task is not None and not self._in_flight[task] and not task.uncancel()
            if not ours and isinstance(error, asyncio.CancelledError):
                raise  # cancelled by someone else
            message = f"No reply from {self._shown}{path} within {self._timeout_s:g} s."
            raise TimedOut(message, received_bytes=len(read)) from None
        except self._errors as error:
            raise self._failure(error, f"{self._shown}{path}", len(read)) from None
        finally:
            del self._in_flight[task]

    def _failure(self, error: Exception, url: str, received_bytes: int) -> ProviderError:
        """Return the error for a connection that failed."""
        why = self.clean(f"{type(error).__name__}: {error}")
        if not isinstance(error, self._unconnected):
            return Temporary(f"The connection to {url} failed ({why}).", received_bytes=received_bytes)
        if self._reached:
            return Unreachable(f"{url} can no longer be reached ({why}).", sent=False)
        _LOG.info("%s cannot be reached (%s)", url, why)
        cause = "" if getattr(error, "errno", None) == errno.ECONNREFUSED else f" ({why})"
        return ProviderDown(f"{self._absent}{cause}", sent=False)

    def _check(self) -> None:
        """Cancel the requests whose timeout is over. One timer for all: aiohttp's own takes 30 calls per request."""
        self._timer, now = None, time.monotonic()
        for task, due in self._in_flight.items():
            if due > now:
                self._timer = self._loop.call_later(due - now, self._check)
                break
            if task is not None and due:
                self._in_flight[task] = 0.0
                task.cancel()


@asynccontextmanager
async def open_wire(
    base_url: str, keys: ApiKeys, timeout_s: float, *, shown: str, absent: str, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[Wire, None]:
    """Open a session to an endpoint.

    `shown`, `absent`: see `Wire`. `headers`: headers that the endpoint requires with every request
    in addition to the key.
    """
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

    own = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",  # verdicts are small: decompression costs more than it saves
        "User-Agent": f"merilo/{version()}",
    }
    async with ClientSession(
        connector=TCPConnector(limit=0, ttl_dns_cache=_DNS_KEPT_S),  # the engine limits concurrency
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None),
        headers={**own, **(headers or {}), **keys.fixed},
    ) as session:
        yield Wire(session, base_url, timeout_s, keys, shown=shown, absent=absent)
