"""A minimal chat completions endpoint that answers after a fixed latency, in its own process.

    python benchmarks/judge_server.py --latency 0.05     prints its address, serves until its input is closed

Replies are valid for the schema in the request, and always the same for the same schema.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Respond = Callable[[bytes, asyncio.Transport], None]
    """Writes the answer to a request's body; a GET has an empty one."""

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_SCHEMA = re.compile(rb'"json_schema": *\{"name": *"(\w+)"')
_STATEMENT = re.compile(rb"<<<statement(?: \d+)? ")
_REPLIES: dict[bytes, dict[str, Any]] = {
    b"relevance": {"reason": "It answers in its first sentence.", "grade": 2, "evidence": [1]},
    b"usefulness": {"reason": "It helps in its first sentence.", "useful": True, "evidence": [1]},
    b"support": {"reason": "The first context says so.", "label": "supported", "sentences": [1]},
    b"sufficiency": {"reason": "All is there.", "label": "sufficient", "missing": ""},
    b"addresses": {"reason": "It does.", "addresses": True},
    b"noncommittal": {"reason": "It answers.", "noncommittal": False},
    b"statements": {"statements": [{"text": f"Statement {n} stands alone.", "sentence": 1} for n in range(3)]},
}


def completion(
    text: str, *, tokens_in: int, tokens_out: int | None = None, finish: str = "stop", refusal: str | None = None
) -> bytes:
    """Return the body of a chat completion. `tokens_out`: by default a fourth of the characters."""
    message = {"role": "assistant", "content": None if refusal else text}
    if refusal:
        message["refusal"] = refusal
    usage = {"prompt_tokens": tokens_in, "completion_tokens": -(-len(text) // 4) if tokens_out is None else tokens_out}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"model": "bench", "choices": [choice], "usage": usage}).encode()


def framed(body: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    """Return a body as an HTTP answer; `headers` are whole lines, each with its end."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _respond(request: bytes, transport: asyncio.Transport) -> None:
    found = _SCHEMA.search(request)
    kind = found[1] if found else b""
    if kind.endswith(b"_together"):
        one = _REPLIES[kind.removesuffix(b"_together")]
        count = len(_STATEMENT.findall(request))
        reply: object = {"verdicts": [{"number": n, **one} for n in range(1, count + 1)]}
    else:
        reply = _REPLIES.get(kind, {"text": "A free reply."})
    transport.write(framed(completion(json.dumps(reply), tokens_in=len(request) // 4)))


class _Http(asyncio.Protocol):
    """The part of HTTP/1.1 that a client with persistent connections needs."""

    def __init__(self, respond: Respond, latency_s: float) -> None:
        self._respond = respond
        self._latency_s = latency_s
        self._read = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._read, 0, end)
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self._read) < size:
                return
            request = bytes(self._read[end + 4 : size])
            del self._read[:size]
            asyncio.get_running_loop().call_later(self._latency_s, self._answer, request)

    def _answer(self, request: bytes) -> None:
        if not self._transport.is_closing():
            self._respond(request, self._transport)


async def serve(respond: Respond, latency_s: float, *, port: int = 0) -> None:
    """Print the address, and serve until standard input is closed. `port` 0: any free port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Http(respond, latency_s), "127.0.0.1", port, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


@contextmanager
def serving(script: str, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the base URL of a server script in this folder, run in its own process that ends with the block."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if process.stdout is None or process.stdin is None:
        raise RuntimeError("the server has no pipes")
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(timeout=10)


@contextmanager
def judge_server(latency_s: float) -> Iterator[str]:
    """Yield the base URL of a server with this latency."""
    with serving("judge_server.py", ["--latency", str(latency_s)]) as address:
        yield address


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, required=True, help="seconds before each reply")
    asyncio.run(serve(_respond, parser.parse_args().latency))
