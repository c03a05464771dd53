"""Closes the way out of a Python process: no address but this machine's own can be named, resolved or reached.

Python imports it at the start of each process that finds this folder on PYTHONPATH; the tests' own process does so by
hand. An audit hook cannot be taken out again, nor passed by what Python itself opens.
"""

import os
import sys
from functools import partial
from importlib.machinery import PathFinder
from typing import Any

_NAMES = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_ADDRESSES = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


class OutsideConnection(RuntimeError):
    """A test, or the code under test, tried to reach another machine."""


def _is_loopback(host: object) -> bool:
    if host in {None, "", "localhost", b"localhost"}:
        return True
    import ipaddress

    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse_outside(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _NAMES:
        host = arguments[0]
    elif event in _ADDRESSES and isinstance(arguments[1], tuple):  # others are paths of sockets in the file system
        host = arguments[1][0]
    else:
        return
    if not _is_loopback(host):
        raise OutsideConnection(f"Tests reach this machine only, but {event} named {host!r}; use 127.0.0.1.")


sys.addaudithook(_refuse_outside)


def _hide(package: str, find: Any, name: str, *rest: Any) -> Any:
    return None if name.partition(".")[0] == package else find(name, *rest)


if hidden := os.environ.get("MERILO_TESTS_HIDE"):  # a package that these processes shall not find
    PathFinder.find_spec = partial(_hide, hidden, PathFinder.find_spec)
