"""`merilo view` as users start it: a server on this machine, until Ctrl-C."""

import http.client
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from command_line import COMMAND, Here
from graded_runs import graded

from merilo.commands.view.run import _listening, _page_that_opens, serve
from merilo.errors import UsageError


class Started(NamedTuple):
    """The command over a directory with one run."""

    process: subprocess.Popen[str]
    port: int
    secret: str


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Started]:
    """The command with --debug, which logs requests."""
    graded(tmp_path / "runs" / "first", {"a": [2], "b": [0]})
    here = Here(tmp_path)
    words = [COMMAND, "view", "runs", "--port", "0", "--no-browser", "--debug"]
    with subprocess.Popen(
        words, cwd=here.path, env=here.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(
                r"Runs in runs: http://127\.0\.0\.1:(\d+)/([\w-]{43})/ \(Ctrl-C stops the server\)\n", line
            )
            assert found is not None, line
            yield Started(process, int(found[1]), found[2])
        finally:
            process.kill()


def get(port: int, path: str, **headers: str) -> tuple[int, str]:
    """The status and the text of a response; the path is sent as it is written."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=100)) as connection:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()


def test_serves_until_it_is_stopped(server: Started) -> None:
    """It serves the list and reports to whoever has the printed address, and Ctrl-C ends it with exit code 0."""
    process, port, secret = server
    assert get(port, "/")[0] == get(port, "/compare/")[0] == 403
    status, page = get(port, f"/{secret}/")
    assert status == 200
    address = re.search(r'href="(runs/\w+)"', page)
    assert address is not None
    assert get(port, f"/{secret}/{address[1]}")[0] == 200
    assert get(port, f"/{secret}/")[0] == 200
    assert get(port, f"/{secret}/runs/../../../../etc/passwd")[0] == 404
    if sys.platform == "linux":
        with closing(socket.socket()) as elsewhere:
            assert elsewhere.connect_ex(("127.0.0.2", port)) != 0
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=100)
    assert (process.returncode, secret in output + errors) == (0, False)
    assert "GET /runs/" in output  # the log of --debug


def test_the_browser_gets_a_file() -> None:
    """The command line of the browser names a file that only this user can read; it has the address, and is removed."""
    with _page_that_opens("http://127.0.0.1:8642/secret/") as address:
        path = Path(url2pathname(urlsplit(address).path))
        assert "secret" not in address
        assert 'content="0; url=http://127.0.0.1:8642/secret/"' in path.read_text()
        assert path.stat().st_mode & 0o077 == 0
    assert not path.exists()


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the error is the command that installs it."""
    for module in ("starlette", "uvicorn"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, module, None)
            with pytest.raises(UsageError, match=rf"needs {module}.* pip install 'merilo\[ui\]'"):
                serve(str(tmp_path), port=0, browser=False)


def test_a_wrong_directory_or_port_is_an_error(tmp_path: Path) -> None:
    """A missing directory, a file and a port that is taken are errors in a sentence."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"No such directory: .*none\."):
        serve(str(tmp_path / "none"), port=0, browser=False)
    with pytest.raises(UsageError, match=r"file is a file\. Name a directory\."):
        serve(str(tmp_path / "file"), port=0, browser=False)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"Cannot listen on port {port} "):
            serve(str(tmp_path), port=port, browser=False)


def test_the_usual_port_may_be_taken() -> None:
    """Without a port, the usual one is used, or any free one if it is taken."""
    with closing(_listening(None)) as first, closing(_listening(None)) as second:
        assert first.getsockname()[0] == second.getsockname()[0] == "127.0.0.1"
        assert first.getsockname()[1] != second.getsockname()[1]
