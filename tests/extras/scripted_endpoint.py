"""An OpenAI-compatible endpoint on this machine that replies by rules from a file. Standard library only.

A rule replies to requests whose messages contain all of `has` and none of `lacks`; the first rule that fits counts.
Several `replies` are given in turn, `n` at a time if a request asks for n. A reply that is not text is sent as JSON. So
the reply depends on what is asked and not on its wording or order, and two packages can be asked alike.
Vectors are the counts of the letters a to z in a text.
"""

import base64
import json
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from string import ascii_lowercase
from typing import Any, Self


class ScriptedEndpoint:
    """The endpoint, in a thread; a context manager. `unmatched` are the requests that no rule fits."""

    def __init__(self, rules: list[dict[str, Any]]) -> None:
        self.unmatched: list[str] = []
        self.asked: list[str] = []
        self._rules = rules
        self._given = [0] * len(rules)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.endswith("/embeddings"):
            return 200, _vectors(body)
        text = "\n".join(_text(message["content"]) for message in body["messages"])
        with self._lock:
            self.asked.append(text)
            replies = self._replies(text, int(body.get("n") or 1))
        if replies is None:
            self.unmatched.append(text)
            return 400, {
                "error": {"message": "no rule of the script fits this request", "type": "invalid_request_error"}
            }
        choices = [
            {"index": at, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
            for at, reply in enumerate(replies)
        ]
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        common = {"id": "scripted", "object": "chat.completion", "created": 0, "model": body["model"]}
        return 200, {**common, "choices": choices, "usage": usage}

    def _replies(self, text: str, count: int) -> list[str] | None:
        for place, rule in enumerate(self._rules):
            if all(part in text for part in rule.get("has", ())) and not any(
                part in text for part in rule.get("lacks", ())
            ):
                first = self._given[place]
                self._given[place] += count
                given = rule["replies"]
                found = [given[(first + at) % len(given)] for at in range(count)]
                return [each if isinstance(each, str) else json.dumps(each) for each in found]
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that closes its connection is no fault
            super().handle_error(request, client_address)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _vectors(body: dict[str, Any]) -> dict[str, Any]:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    rows = [[float(text.lower().count(letter)) for letter in ascii_lowercase] for text in texts]
    binary = body.get("encoding_format") == "base64"
    written = [base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() if binary else row for row in rows]
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(written)]
    return {"object": "list", "data": data, "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def _handler(endpoint: ScriptedEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, reply = endpoint.answer(self.path, body)
            written = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        def log_message(self, *_: object) -> None:
            return

    return Handler
