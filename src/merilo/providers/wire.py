"""HTTP session with one endpoint: sends JSON bodies, and turns network errors into merilo's errors."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from merilo.errors import Permanent, ProviderDown, Temporary, TimedOut, Unreachable
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Mapping

    from aiohttp import ClientSession

    from merilo.errors import ProviderError
    from merilo.providers.secrets import ApiKeys

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
