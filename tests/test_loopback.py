"""No test can reach another machine, nor can a process that one starts; 192.0.2.0/24 is for documentation."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from command_line import Here
from each_case import each_case
from server import JudgeServer

OUTSIDE = "192.0.2.1"
REFUSED = r"Tests reach this machine only, but socket\.\w+ named"


def tcp(host: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        sock.settimeout(0.5)
        sock.connect((host, 80))


def tcp_by_code(host: str) -> None:
    with socket.socket() as sock:
        sock.settimeout(0.5)
        sock.connect_ex((host, 80))


def udp(host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", (host, 80))


def message(host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendmsg([b"x"], [], 0, (host, 80))


def in_a_loop(host: str) -> None:
    asyncio.run(asyncio.wait_for(asyncio.open_connection(host, 80), 0.5))


def by_url(host: str) -> None:
    urlopen(f"http://{host}/", timeout=0.5).close()


def resolved(host: str) -> None:
    socket.getaddrinfo(f"{host}.example.org", 80)


def resolved_of_old(host: str) -> None:
    socket.gethostbyname(f"{host}.example.org")


@each_case("reach", [tcp, tcp_by_code, udp, message, in_a_loop, by_url, resolved, resolved_of_old])
def test_no_way_out(reach: Callable[[str], None]) -> None:
    """A connection, a packet or a name of another machine is refused before it is tried."""
    with pytest.raises(RuntimeError, match=REFUSED):
        reach(OUTSIDE)


@pytest.mark.parametrize("own", [False, True])
def test_no_way_out_for_a_child(own: bool) -> None:
    """A Python process that a test starts is closed too, with the tests' environment or one of its own."""
    code = f"import socket; socket.create_connection(({OUTSIDE!r}, 80), timeout=0.5)"
    environment = {"PATH": os.environ["PATH"]} if own else None
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "OutsideConnection" in done.stderr


def test_no_way_out_for_a_grandchild() -> None:
    """A process that a shell starts is closed as well."""
    code = f"import socket; socket.create_connection(({OUTSIDE!r}, 80), timeout=0.5)"
    command = f'"{sys.executable}" -c "{code}"'.replace(repr(OUTSIDE), f"'{OUTSIDE}'")
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602  our own words
    assert "OutsideConnection" in done.stderr


def test_no_way_out_for_the_command(tmp_path: Path) -> None:
    """The installed command cannot reach a judge elsewhere, and can reach one here."""
    here = Here(tmp_path)
    here.write("data.jsonl", [{"user_input": "q?", "retrieved_contexts": ["A river."]}])
    words = ("run", "data.jsonl", "--judge", "openai:m", "--metrics", "context_relevance", "--no-cache")
    outside = here.merilo(*words, "--base-url", f"http://{OUTSIDE}/v1", "--out", "outside")
    assert outside.returncode != 0
    assert "Tests reach this machine only" in outside.stderr
    with JudgeServer() as server:
        inside = here.merilo(*words, "--base-url", server.base_url, "--out", "inside")
    assert inside.returncode == 0, inside.stderr
