"""Refuses requests that do not come from our own pages, and adds the security headers to every response.

Each request needs our `Host`, so no other name can be made to lead here, and our `Origin` if it has one. Requests that
another site makes a browser send are refused, except a plain link to a page. Every request needs the secret of the
server: the address that `merilo view` prints has it, and is answered with a cookie that has it from then on. So other
users of the machine see nothing, and no page can forget the check. No response allows another origin to read it.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse

from merilo.commands.view.html import error_page

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SAFE: Final = frozenset({"GET", "HEAD"})
_OWN_SITE: Final = frozenset({"", "none", "same-origin"})
"""Values of `Sec-Fetch-Site` for our pages, a typed address, and clients that do not send it."""
_POLICY: Final = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
QUERY: Final = "token"
"""The name of the secret in the printed address."""
_REFUSAL: Final = (
    "This browser has not been let in. Open the address that merilo view printed when it started, with its token. "
    "The token is new whenever the server starts, and 127.0.0.1 and localhost need it separately."
)
# A page leads to the list, not a redirect: after a link from elsewhere, no strict cookie is sent along a redirect.
_ENTRANCE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>merilo</title><meta http-equiv="refresh" content="0; url=/"></head>
<body><p><a href="/">All runs</a></p></body></html>
"""
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


def policy_headers(page: bytes) -> dict[str, str]:
    """Return the content security policy in the head of a page of ours as a header, which also forbids frames."""
    found = _POLICY.search(page[:2_000].decode("utf-8", "replace"))
    policy = NO_CONTENT if found is None else f"{unescape(found[1])}; frame-ancestors 'none'"
    return {"Content-Security-Policy": policy}


def own_hosts(port: int) -> frozenset[str]:
    """Return the values of `Host` that name a server on this port of this machine."""
    names = ("127.0.0.1", "localhost")
    return frozenset([*(f"{name}:{port}" for name in names), *(names if port == 80 else ())])


def refusal(method: str, headers: Headers, hosts: frozenset[str]) -> str | None:
    """Return the reason why a request is refused; None if it is allowed."""
    named = [each.lower() for each in headers.getlist("host")]
    if len(named) != 1 or named[0] not in hosts:
        return "This server answers to 127.0.0.1 and localhost on its own port only."
    if any(each.lower() not in {f"http://{host}" for host in hosts} for each in headers.getlist("origin")):
        return "The request comes from another site."
    link = method in _SAFE and headers.get("sec-fetch-mode") == "navigate" and _is_page(headers)
    if headers.get("sec-fetch-site", "") not in _OWN_SITE and not link:
        return "The request comes from another site."
    return None


def _is_page(headers: Headers) -> bool:
    """Return True if the browser shows the response as a whole page, not inside another one."""
    return headers.get("sec-fetch-dest", "document") == "document"


@dataclass(frozen=True, slots=True)
class Guard:
    """An ASGI application that passes allowed requests on to another one."""

    app: ASGIApp
    hosts: frozenset[str]
    cookie: str
    """The name of the cookie; it has the port, since browsers send a cookie to all ports."""
    secret: str

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

        chosen = self._chosen(scope)
        if chosen is not self.app:
            scope["query_string"] = b""  # it may have the secret, and --debug logs it
        await chosen(scope, receive, guarded)

    def _chosen(self, scope: Scope) -> ASGIApp:
        """Return what answers a request: the application, the entrance, or a refusal."""
        method, headers = scope["method"], Headers(scope=scope)
        if reason := refusal(method, headers, self.hosts):
            return PlainTextResponse(reason + "\n", status_code=403)
        if method in _SAFE and self._is_secret(QueryParams(scope["query_string"]).get(QUERY, "")):
            cookie = f"{self.cookie}={self.secret}; HttpOnly; SameSite=Strict; Path=/"
            return HTMLResponse(_ENTRANCE, headers={"Set-Cookie": cookie})
        pairs = (each.partition("=") for line in headers.getlist("cookie") for each in line.split(";"))
        if any(name.strip() == self.cookie and self._is_secret(value.strip()) for name, _, value in pairs):
            return self.app
        if method in _SAFE:
            page = error_page("Not let in", _REFUSAL).encode()
            return HTMLResponse(page, 403, policy_headers(page))
        return JSONResponse({"error": _REFUSAL}, status_code=403)

    def _is_secret(self, text: str) -> bool:
        """Return True for the secret. The comparison takes the same time for every other text of its length."""
        return hmac.compare_digest(text.encode("utf-8", "surrogatepass"), self.secret.encode())
