"""Serves the pages of `merilo view` on 127.0.0.1 until the command is stopped."""

from __future__ import annotations

import secrets
import socket
import sys
import tempfile
import webbrowser
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from merilo.data.sanitize import clean
from merilo.errors import UsageError
from merilo.lazy import optional_module
from merilo.rendering.markup import drawn
from merilo.rendering.page import write
from merilo.runs.directory import RUNS

if TYPE_CHECKING:
    from collections.abc import Generator

HOST: Final = "127.0.0.1"
"""The only address that the server listens on; no option changes it."""
_PORT: Final = 8642
_SECRET_BYTES: Final = 32
_GRACE_S: Final = 1


def serve(directory: str | None, *, port: int | None, browser: bool, debug: bool = False) -> None:
    """Serve the runs in a directory until Ctrl-C. `port`: 0 for any free one, None for the usual or any free one.

    `debug`: log the tracebacks of pages that could not be made. Raises UsageError if the directory does not exist, the
    port is taken, or the extra `ui` is not installed.
    """
    place = _directory(directory)
    for module in ("starlette", "uvicorn"):
        optional_module(module, wanted_by="merilo view", install="merilo[ui]")
    from uvicorn import Config, Server

    from merilo.commands.view.app import create_app

    with ExitStack() as stack:
        listener = stack.enter_context(closing(_listening(port)))
        number: int = listener.getsockname()[1]
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        app = create_app(place, secret, number)
        address = f"http://{HOST}:{number}/{secret}/"
        write(f"Runs in {clean(str(place))}: {address} (Ctrl-C stops the server)\n")
        if browser and sys.stdout.isatty():
            opened = stack.enter_context(_page_that_opens(address))
            Thread(target=webbrowser.open, args=(opened,), daemon=True).start()  # a text browser would not return
        config = Config(
            app,
            log_level="info" if debug else "critical",
            access_log=debug,
            lifespan="off",
            ws="none",
            http="h11",
            proxy_headers=False,  # no proxy is in front, so its headers would be a lie
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
        try:
            Server(config).run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn raises it again after it has stopped; it is how a server ends
            return


@contextmanager
def _page_that_opens(address: str) -> Generator[str]:
    """Write a file that only this user can read and that leads to the address; yield the file's own address.

    The command line of a browser, which other users can see, then does not have the secret.
    """
    with tempfile.NamedTemporaryFile("w", prefix="merilo-view-", suffix=".html", delete=False) as file:
        file.write(drawn("entrance.html", address=address))
    path = Path(file.name)
    try:
        yield path.as_uri()
    finally:
        path.unlink(missing_ok=True)


def _directory(directory: str | None) -> Path:
    if directory is None:
        return RUNS
    place = Path(directory)
    if not place.is_dir():
        raise UsageError(f"{place} is a file. Name a directory." if place.exists() else f"No such directory: {place}.")
    return place


def _listening(port: int | None) -> socket.socket:
    """Return a socket that accepts connections. Raises UsageError if the port is taken."""
    number, problem = 0, ""
    for number in (_PORT, 0) if port is None else (port,):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if sys.platform != "win32":  # there it would share a port that another program uses
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, number))
            listener.listen()  # the browser may ask before the server is ready
        except OSError as error:
            listener.close()
            problem = error.strerror or str(error)
        else:
            return listener
    raise UsageError(f"Cannot listen on port {number} ({problem}). Choose another one (--port), or 0 for any free one.")
