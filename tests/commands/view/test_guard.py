"""Which requests `merilo view` refuses, and the headers of its responses."""

from pathlib import Path

import pytest
from asgi import HOST, LET_IN, ask
from each_case import each_case
from starlette.types import ASGIApp

from merilo.commands.view.app import create_app, own_hosts

SECRET = "token"  # noqa: S105  made up
OWN = ("Host", HOST)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> ASGIApp:
    """The application over an empty directory."""
    return create_app(tmp_path_factory.mktemp("none"), SECRET, 8642)


@pytest.mark.parametrize(
    "headers",
    [
        [OWN],
        [("Host", "localhost:8642")],
        [("Host", "LOCALHOST:8642")],
        [OWN, ("Origin", "http://127.0.0.1:8642")],
        [OWN, ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Dest", "empty")],
        [OWN, ("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")],
        [OWN, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")],
    ],
)
def test_own_requests_are_answered(app: ASGIApp, headers: list[tuple[str, str]]) -> None:
    """Our address under both names, our origin, our scripts, a typed address and a link from elsewhere are answered."""
    assert ask(app, "/", headers=headers).status == 200


@each_case(
    "headers",
    [
        [],
        [("Host", "127.0.0.1")],
        [("Host", "127.0.0.1:8643")],
        [("Host", "evil.example:8642")],
        [("Host", "127.0.0.1:8642.evil.example")],
        [("Host", "127.0.0.1:8642@evil.example")],
        [OWN, OWN],
        [OWN, ("Origin", "https://evil.example")],
        [OWN, ("Origin", "null")],
        [OWN, ("Origin", "http://127.0.0.1:8643")],
        [OWN, ("Origin", "https://127.0.0.1:8642")],
        [OWN, ("Origin", "http://127.0.0.1:8642"), ("Origin", "http://evil.example")],
        [OWN, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "script")],
        [OWN, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")],
        [OWN, ("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Dest", "empty")],
    ],
)
@each_case("address", ["/", "/unknown"])
def test_other_requests_are_refused(app: ASGIApp, address: str, headers: list[tuple[str, str]]) -> None:
    """Any other Host or Origin, and what another site makes a browser load, is refused on every address."""
    found = ask(app, address, headers=headers)
    assert found.status == 403
    assert b"<" not in found.body


@each_case("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@each_case("first", ["", "/tokem", "/TOKEN", "/token%00", "//token", "/./token", "/x/token", "/\xe9"])
def test_every_request_needs_the_secret(app: ASGIApp, method: str, first: str) -> None:
    """Pages, data and writes are refused without it, on every address, also a preflight and what is missing."""
    for address in ("/", "/labels/1", "/unknown", "/?token=token"):
        found = ask(app, address, method, headers=[OWN, ("Cookie", "merilo-8642=token")], first=first)
        assert (found.status, "set-cookie" in found.headers) == (403, False)
        assert "Open the whole address that merilo view printed" in found.text
    assert ask(app, "/unknown", method).status in {404, 405}


def test_no_page_holds_the_secret(app: ASGIApp) -> None:
    """Links are relative, so a page that is saved or sent to others lets nobody in."""
    assert all(SECRET not in ask(app, address).text for address in ("/", "/unknown"))
    assert f"/{SECRET}" == LET_IN


def test_the_secret_does_not_replace_the_other_checks(app: ASGIApp) -> None:
    """A write with the secret, but from another site or port or as a link, is refused."""
    linked = [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
    for other in (
        ("Origin", "http://evil.example"),
        ("Origin", "http://127.0.0.1:8643"),
        ("Sec-Fetch-Site", "same-site"),
        ("Sec-Fetch-Site", "cross-site"),
    ):
        assert ask(app, "/", "POST", headers=[OWN, other, *linked]).status == 403


@each_case("address", ["/", "/unknown", "/runs/0", "/compare/"])
@each_case("host", [HOST, "evil.example"])
def test_every_response_has_the_security_headers(app: ASGIApp, address: str, host: str) -> None:
    """Pages, data, errors and refusals have a strict policy, and may not be framed, stored or read by others."""
    headers = ask(app, address, headers=[("Host", host)]).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert not [name for name in headers if name.startswith("access-control") or name in {"set-cookie", "server"}]


def test_port_80_is_left_out_by_browsers() -> None:
    """On port 80, and only there, a Host without a port is ours."""
    assert "127.0.0.1" in own_hosts(80)
    assert "127.0.0.1" not in own_hosts(8642)


def test_nothing_outside_the_directory_is_reachable(tmp_path: Path) -> None:
    """Whatever an address names, a file or a run next to the directory is not found."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "inside").mkdir()
    app = create_app(tmp_path / "inside", SECRET, 8642)
    for name in ("../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "..%5csecret.txt", f"{tmp_path}/secret.txt"):
        for place in ("/", "/runs/", "/compare/?run=", "/runs/%00"):
            found = ask(app, place + name)
            assert found.status in {404, 422}, name
            assert b"secret.txt" not in found.body
