"""HTTP session with one endpoint: sends JSON bodies, and turns network errors into merilo's errors."""

from __future__ import annotations

import errno
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from merilo.errors import Permanent, ProviderDown, Temporary, TimedOut, Unreachable
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from aiohttp import ClientResponse, ClientSession

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
        self._keys = keys
        self._reached = False
        self.clean = keys.clean
        """Removes secrets and half surrogate pairs from a text."""

    async def post(
        self, path: str, body: bytes, *, largest: int | None = None, content_type: str | None = None
    ) -> WireAnswer:
        """Return the answer to a body, JSON by default, at most 16 MiB by default. Raises Permanent, Temporary and
        ProviderDown.
        """
        return await self._exchange("POST", path, body, largest or _LARGEST_REPLY_BYTES, content_type)

    async def get(self, path: str, *, largest: int | None = None) -> WireAnswer:
        """Return the answer to a request without a body. Raises the errors of `post`."""
        return await self._exchange("GET", path, None, largest or _LARGEST_REPLY_BYTES)

    async def _exchange(
        self, method: str, path: str, body: bytes | None, largest: int, content_type: str | None = None
    ) -> WireAnswer:
        url = f"{self._shown}{path}"
        headers = await self._keys.fresh()
        if content_type is not None:
            headers = {**(headers or {}), "Content-Type": content_type}
        read = bytearray()
        try:
            async with self._session.request(
                method, f"{self._base_url}{path}", data=body, headers=headers, allow_redirects=False
            ) as response:
                await _read(response, url, largest, read)
                self._reached = True
                text = read.decode("utf-8", "replace").removeprefix("\ufeff")
                return WireAnswer(response.status, response.headers, text)
        except TimeoutError:
            message = f"No reply from {url} within {self._timeout_s:g} s."
            raise TimedOut(message, received_bytes=len(read)) from None
        except self._errors as error:
            why = self.clean(f"{type(error).__name__}: {error}")
            if isinstance(error, self._unconnected) and not self._reached:
                _LOG.info("%s cannot be reached (%s)", url, why)
                cause = "" if error.errno == errno.ECONNREFUSED else f" ({why})"
                raise ProviderDown(f"{self._absent}{cause}", sent=False) from None
            if isinstance(error, self._unconnected):
                raise Unreachable(f"{url} can no longer be reached ({why}).", sent=False) from None
            raise Temporary(f"The connection to {url} failed ({why}).", received_bytes=len(read)) from None


async def _read(response: ClientResponse, url: str, most: int, read: bytearray) -> None:
    """Read the body into `read`, also a part of it if the connection fails. Raises Permanent if it is too long."""
    async for chunk in response.content.iter_any():
        read += chunk
        if len(read) > most:
            message = f"{url} sent more than {most} bytes as one reply."
            raise Permanent(message, status=response.status, received_bytes=len(read))


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
        timeout=ClientTimeout(total=timeout_s),
        headers={**own, **(headers or {}), **keys.fixed},
    ) as session:
        yield Wire(session, base_url, timeout_s, keys, shown=shown, absent=absent)
