"""What holds for all tests: reproducible Hypothesis runs, and no connection but to this machine."""

from __future__ import annotations

import ipaddress
import os
import sys
from typing import TYPE_CHECKING, Any

from hypothesis import settings

if TYPE_CHECKING:
    import pytest

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


class OutsideConnection(RuntimeError):
    """A test, or the code under test, tried to reach another machine."""


def _is_loopback(host: object) -> bool:
    if host in {None, "", "localhost", b"localhost"}:
        return True
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse_outside(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in {"socket.connect", "socket.sendto"} and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if not _is_loopback(host):
        raise OutsideConnection(f"Tests reach this machine only, but {event} named {host!r}; use 127.0.0.1.")


def pytest_configure(config: pytest.Config) -> None:
    """Close the way out, unless live tests were asked for by name."""
    if config.getoption("markexpr") != "live":
        sys.addaudithook(_refuse_outside)
