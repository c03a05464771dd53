"""One line to an OpenAI-compatible endpoint: a JSON body out, an answer back, and what breaks between as our errors."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from merilo.errors import Permanent, ProviderDown, Temporary, Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from aiohttp import ClientSession

_LARGEST_REPLY_BYTES = 16 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024


class WireAnswer(NamedTuple):
    """What came back, whatever its status."""

    status: int
    headers: Mapping[str, str]
    text: str


class Wire:
    """An open session with one endpoint; remembers whether it was ever reached."""

    def __init__(self, session: ClientSession, base_url: str, timeout_s: float, secrets: tuple[str, ...]) -> None:
        self._session = session
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._secrets = secrets
        self._reached = False

    async def post(self, path: str, body: Mapping[str, object], *, largest: int | None = None) -> WireAnswer:
        """The answer to a JSON body, of at most 16 MiB by default. Raises Permanent, Temporary and ProviderDown."""
        from aiohttp import ClientConnectorError, ClientError

        url, most = f"{self._base_url}{path}", largest or _LARGEST_REPLY_BYTES
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(url, data=data, headers=headers, allow_redirects=False) as response:
                read = bytearray()
                async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                    read += chunk
                    if len(read) > most:
                        raise Permanent(f"{url} sent more than {most} bytes as one reply.")
                self._reached = True
                return WireAnswer(response.status, response.headers, read.decode("utf-8", "replace"))
        except TimeoutError:
            raise Temporary(f"{url} gave no reply within {self._timeout_s:g} s.") from None
        except (ClientError, OSError) as error:
            why = self.clean(f"{type(error).__name__}: {error}")
            if isinstance(error, ClientConnectorError) and not self._reached:
                raise ProviderDown(f"{url} cannot be reached ({why}). Check the base URL and the network.") from None
            if isinstance(error, ClientConnectorError):
                raise Unreachable(f"{url} cannot be reached any more ({why}).") from None
            raise Temporary(f"The connection to {url} failed ({why}).") from None

    def clean(self, text: str) -> str:
        """The text without secrets, and without half a surrogate pair, which no file can hold."""
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return text.encode("utf-8", "replace").decode()


@asynccontextmanager
async def open_wire(
    base_url: str, headers: Mapping[str, str], timeout_s: float, *, secrets: tuple[str, ...]
) -> AsyncGenerator[Wire, None]:
    """A wire with a session of its own. `secrets`: texts that no message may repeat."""
    from aiohttp import ClientSession, ClientTimeout, TCPConnector

    async with ClientSession(
        connector=TCPConnector(limit=0),  # how many run at once is the engine's business
        timeout=ClientTimeout(total=timeout_s),
        headers=dict(headers),
    ) as session:
        yield Wire(session, base_url, timeout_s, secrets)
