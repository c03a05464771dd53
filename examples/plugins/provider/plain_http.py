"""A provider in one file: POST {"model": ..., "prompt": ...} to a server that replies {"text": ...}."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.error
import urllib.request
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.providers import Permanent, Reply, Temporary, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from merilo.providers import Request


@dataclass(frozen=True)
class PlainHttpProvider:
    """A model behind `base_url`; the key is read from the environment when a connection is opened."""

    model: str
    base_url: str = "http://127.0.0.1:8080/generate"
    api_key_env: str = "PLAIN_HTTP_KEY"

    def fingerprint(self) -> Mapping[str, object]:
        """Return what identifies the answers; no key."""
        return {"provider": "plain-http", "base_url": self.base_url, "model": self.model}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[PlainHttpConnection, None]:
        """Yield a connection for one event loop."""
        del known
        yield PlainHttpConnection(self, os.environ.get(self.api_key_env, ""))

    def price_usd(self, usage: Usage) -> float | None:
        """Return None: the price is unknown."""
        del usage
        return None


@dataclass(frozen=True)
class PlainHttpConnection:
    """An open connection."""

    provider: PlainHttpProvider
    key: str

    async def send(self, request: Request) -> Reply:
        """Return the reply to one request. Raises Temporary if a retry may help, Permanent if not."""
        return await asyncio.to_thread(self._post, request)

    def _post(self, request: Request) -> Reply:
        prompt = "\n\n".join(message.text for message in request.messages)
        if request.schema is not None:
            prompt += f"\n\nReply with JSON that fits this schema: {json.dumps(request.schema)}"
        body = json.dumps({"model": self.provider.model, "prompt": prompt}).encode()
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {self.key}"} if self.key else {})}
        post = urllib.request.Request(self.provider.base_url, body, headers)  # noqa: S310  the user names the address
        try:
            with urllib.request.urlopen(post, timeout=120) as response:  # noqa: S310  as above
                found = json.load(response)
        except urllib.error.HTTPError as error:
            kind = Temporary if error.code >= 500 else Permanent
            raise kind(f"{self.provider.base_url} answered {error.code}.") from error
        except (OSError, ValueError) as error:
            raise Temporary(f"{self.provider.base_url} cannot be reached ({type(error).__name__}).") from error
        return Reply((str(found["text"]),), usage=Usage(found.get("input_tokens"), found.get("output_tokens")))

    def adaptations(self) -> Mapping[str, str]:
        """Return nothing: no parameter is ever dropped."""
        return {}

    def notices(self) -> tuple[str, ...]:
        """Return nothing."""
        return ()
