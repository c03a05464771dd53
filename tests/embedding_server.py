"""A small server of OpenAI's embeddings on 127.0.0.1 for tests; it answers as a function of the request says.

with EmbeddingServer() as server:
    provider = OpenAIProvider("test-embedder", base_url=server.base_url)
"""

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Body = Mapping[str, Any]
Told = tuple[int, Any]


def vector(text: str) -> list[float]:
    """A vector that tells texts apart: their length, their number of blanks, and 0.5."""
    return [float(len(text)), float(text.count(" ")), 0.5]


def embeddings(body: Body) -> Told:
    """The right answer, its items from last to first."""
    data = [{"index": n, "embedding": vector(text)} for n, text in enumerate(body["input"])]
    tokens = sum(len(text) for text in body["input"])
    return 200, {"model": body["model"], "data": data[::-1], "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


class EmbeddingServer:
    """The server, in threads; a context manager. `asked` and `keys`: the body and the key of each request."""

    def __init__(self, answer: Callable[[Body], Told] = embeddings) -> None:
        self.asked: list[Body] = []
        self.keys: list[str | None] = []
        asked, keys = self.asked, self.keys

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked.append(body)
                keys.append(self.headers.get("Authorization"))
                status, told = answer(body) if self.path == "/v1/embeddings" else (404, {"error": {"message": "no"}})
                data = told if isinstance(told, bytes) else json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT/v1`."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
