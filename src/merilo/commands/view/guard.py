"""Refuses requests that do not come from our own pages, and adds the security headers to every response.

Each request needs our `Host`, so no other name can be made to lead here, and our `Origin` if it has one. Requests that
another site makes a browser send are refused, except a plain link to a page. Every method except GET and HEAD needs the
token, which only our pages have. So no page can forget the check. No response allows another origin to read it, and no
cookie is set that a browser could send along.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from merilo.commands.label.page import TOKEN_HEADER

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SAFE: Final = frozenset({"GET", "HEAD"})
_OWN_SITE: Final = frozenset({"", "none", "same-origin"})
"""Values of `Sec-Fetch-Site` for our pages, a typed address, and clients that do not send it."""
NO_CONTENT: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The policy of a response that does not set one."""
_ADDED: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def own_hosts(port: int) -> frozenset[str]:
    """Return the values of `Host` that name a server on this port of this machine."""
    names = ("127.0.0.1", "localhost")
    return frozenset([*(f"{name}:{port}" for name in names), *(names if port == 80 else ())])


def refusal(method: str, headers: Headers, hosts: frozenset[str], token: str) -> str | None:
    """Return the reason why a request is refused; None if it is allowed."""
    named = [each.lower() for each in headers.getlist("host")]
    if len(named) != 1 or named[0] not in hosts:
        return "This server answers to 127.0.0.1 and localhost on its own port only."
    if any(each.lower() not in {f"http://{host}" for host in hosts} for each in headers.getlist("origin")):
        return "The request comes from another site."
    link = method in _SAFE and headers.get("sec-fetch-mode") == "navigate" and _is_page(headers)
    if headers.get("sec-fetch-site", "") not in _OWN_SITE and not link:
        return "The request comes from another site."
    if method not in _SAFE and not has_token(headers, token):
        return f"The request has no valid {TOKEN_HEADER}. Load the page again."
    return None


def has_token(headers: Headers, token: str) -> bool:
    """Return True if a request has the token. The comparison takes the same time for every wrong token."""
    return hmac.compare_digest(headers.get(TOKEN_HEADER, "").encode(), token.encode())


def _is_page(headers: Headers) -> bool:
    """Return True if the browser shows the response as a whole page, not inside another one."""
    return headers.get("sec-fetch-dest", "document") == "document"


@dataclass(frozen=True, slots=True)
class Guard:
    """An ASGI application that passes allowed requests on to another one."""

    app: ASGIApp
    hosts: frozenset[str]
    token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":  # the server is started without lifespan and web sockets
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", NO_CONTENT)
                for name, value in _ADDED.items():
                    headers[name] = value
            await send(message)

        reason = refusal(scope["method"], Headers(scope=scope), self.hosts, self.token)
        app = self.app if reason is None else PlainTextResponse(reason + "\n", status_code=403)
        await app(scope, receive, guarded)
