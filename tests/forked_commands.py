"""Runs of the installed command in processes that are forked from one that has imported it.

Importing the command takes ten times as long as what most tests ask of it. So each test process keeps two servers
that have done so. Each run is a fork of one of them: a process of its own, with directory, environment, standard
streams, signals and exit of its own. The servers differ in their hash seed and take turns, so output that depends on
the order of a set differs from one run to the next, as it does for users.

Tests of the start itself, of signals and of terminals start the command anew (`COMMAND`). A page of the documentation
(docs_page.py) runs in a fork too, and its commands in further forks of the same server.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path

SERVER = "MERILO_TESTS_SERVER"
"""Variable with the address of a server that was started by another process."""
PAGE = "--docs-page"
"""First argument of a fork that runs a page of the documentation instead of the command."""
_SEEDS = ("1", "2")
_AT_START = ("PYTHON", "LANG", "LC_", "TZ", "COVERAGE", "OMP_", "OPENBLAS_", "MKL_", "ORT_")
"""Beginnings of variables that Python or a library reads once, when it starts."""
_FOLDERS = (
    "adapters",
    "commands",
    "judges",
    "judging",
    "metrics",
    "providers",
    "rendering",
    "results",
    "runs",
    "stats",
)
"""Parts of merilo that the servers import whole."""
_turns = count()


def can_fork(extra: Mapping[str, str] | None) -> bool:
    """Return True if a run with these variables, in addition to those of this process, may be a fork."""
    return (
        sys.platform == "linux"
        and "COVERAGE_PROCESS_START" not in os.environ
        and not any(name.startswith(_AT_START) for name in extra or ())
    )


def run_forked(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], stdin: str, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, as `subprocess.run` does."""
    with socket.socket(socket.AF_UNIX) as line, tempfile.TemporaryFile() as given:
        given.write(stdin.encode())
        given.seek(0)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            line.connect(server_address())
            line.settimeout(timeout)
            streams = [given.fileno(), out.fileno(), err.fileno()]
            request = json.dumps([list(arguments), str(folder), dict(environment)]).encode()
            socket.send_fds(line, [len(request).to_bytes(8, "big")], streams)
            line.sendall(request)
            code = _answer(line, arguments, timeout)
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(arguments), code, _text(out.read()), _text(err.read()))


def server_address() -> str:
    """Return the address of the server whose turn it is."""
    return os.environ.get(SERVER) or _server(_SEEDS[next(_turns) % len(_SEEDS)], os.getpid())


def _answer(line: socket.socket, arguments: Sequence[str], timeout: float) -> int:
    process = int(_line_of(line))
    try:
        return int(_line_of(line))
    except TimeoutError:
        os.kill(process, signal.SIGKILL)
        raise subprocess.TimeoutExpired(list(arguments), timeout) from None


def _line_of(line: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\n"):
        part = line.recv(1)
        if not part:
            raise ConnectionError("The server of the command ended.")
        found += part
    return found


def _text(printed: bytes) -> str:
    return printed.decode().replace("\r\n", "\n").replace("\r", "\n")


@cache
def _server(seed: str, owner: int) -> str:
    """Start a server; it ends with this process. `owner`: the id of this process, as a fork must not share it."""
    del owner
    address = str(Path(tempfile.mkdtemp(prefix="merilo-tests-")) / "line")
    command = str(Path(sys.executable).with_name("merilo"))
    server = subprocess.Popen(
        [sys.executable, __file__, address, command],
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    atexit.register(_end, server, Path(address))
    return address


def _end(server: subprocess.Popen[bytes], address: Path) -> None:
    server.kill()
    server.communicate()
    address.unlink(missing_ok=True)
    address.parent.rmdir()


def _prepare() -> None:
    """Import what most commands work with, and load the embedded judge and the identifier of languages."""
    import gc
    import pkgutil
    from contextlib import suppress

    import merilo
    from merilo.data.language import identify_language
    from merilo.judges.blended import BlendedModel

    identify_language("Der Fluss ist sehr lang und tief.")
    BlendedModel.load().relevance("How long is it?", ["It is 120 km long."])  # the sessions have no thread to lose
    BlendedModel.load().p_support("It is 120 km long.", [["It is 120 km long."]])
    for each in pkgutil.walk_packages(merilo.__path__, "merilo."):
        if each.name.split(".")[1] in _FOLDERS:
            with suppress(ImportError):  # what an extra brings
                import_module(each.name)
    gc.collect()
    gc.freeze()  # a fork copies no page only to look for garbage


def _serve(address: str) -> list[str]:
    """Fork for each request; returns in the fork only, with the arguments of the command."""
    import select
    import warnings

    # Python 3.12 counts the threads in which numpy computes; it stops them before a fork.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for the commands
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen(64)
        os.write(1, b"ready\n")
        while True:
            ready, _, _ = select.select([door.fileno(), 0], [], [])
            if 0 in ready:
                os._exit(0)  # the tests are over, or were killed
            line = door.accept()[0]
            if os.fork() == 0:
                door.close()
                return _begin(line)
            line.close()


def _begin(line: socket.socket) -> list[str]:
    """Read the request, fork the command, report its end; returns in the command only."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, streams, _, _ = socket.recv_fds(line, 8, 3)
    request = b""
    while len(request) < int.from_bytes(length, "big"):
        request += line.recv(65_536)
    given: tuple[list[str], str, dict[str, str]] = json.loads(request)
    arguments, folder, environment = given
    process = os.fork()
    if process:
        line.sendall(b"%d\n" % process)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        line.sendall(b"%d\n" % code)
        os._exit(0)
    line.close()
    _become(streams, folder, environment)
    return arguments


def _become(streams: Sequence[int], folder: str, environment: Mapping[str, str]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    closed = os.environ.get("PYTHONPATH", "")  # keeps the tests to this machine
    os.environ.clear()
    os.environ.update({**environment, "PYTHONPATH": closed})
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__


def _leave_at_exit() -> list[int]:
    """Skip the end of the interpreter, which touches, and so copies, every page; returns a list for the exit code.

    Registered before all other functions, so it runs after them, and after the threads have ended.
    """
    codes: list[int] = []

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        if codes:
            os._exit(codes[0])

    atexit.register(leave)
    return codes


if __name__ == "__main__":
    exit_codes = _leave_at_exit()
    sys.path[0] = str(Path(sys.argv[2]).parent)
    from merilo.cli import main

    _prepare()
    sys.argv[:] = [sys.argv[2], *_serve(sys.argv[1])]
    if sys.argv[1:2] == [PAGE]:
        sys.path[0] = str(Path(__file__).parent)
        from docs_page import main  # type: ignore[assignment]  # another main, without arguments too

        sys.argv.pop(0)
    try:
        main()
    except SystemExit as end:
        exit_codes.append(int(end.code or 0) if not isinstance(end.code, str) else 1)
        raise
