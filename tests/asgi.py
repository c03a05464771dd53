"""Requests to an ASGI application within the process, without a server."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

HOST = "127.0.0.1:8642"
LET_IN = "/token"
"""What every address of an application begins with whose secret is \"token\"."""


@dataclass(frozen=True)
class Got:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:  # Any: JSON
        return json.loads(self.body)


def ask(
    app: Any,
    address: str,
    method: str = "GET",
    *,
    headers: Sequence[tuple[str, str]] = (("Host", HOST),),
    body: bytes = b"",
    first: str = LET_IN,
) -> Got:
    """The response to one request; `headers`: all of them; `first`: what the address begins with."""
    path, _, query = f"{first}/{address.removeprefix('../').lstrip('/')}".partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8642),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    found = [(name.decode(), value.decode("latin-1")) for name, value in sent[0]["headers"]]
    assert len(dict(found)) == len(found), "a header appears twice"
    return Got(sent[0]["status"], dict(found), b"".join(each.get("body", b"") for each in sent[1:]))
