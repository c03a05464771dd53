"""A small imitation of the Hugging Face hub on 127.0.0.1, for tests: metadata, files, redirects of LFS files, faults.

    with HubServer() as hub:
        hub.add("org/name", {"model.onnx": b"...", "config.json": b"{}"}, licence="mit")
        hub.faults["model.onnx"] = "truncated"

Files that end in `.onnx`, `.onnx_data` and `.safetensors` are stored with Git LFS: a request for one is answered by a
redirect to another path of the same server. `requests` lists the paths asked for.
"""

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha1, sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_LARGE = (".onnx", ".onnx_data", ".safetensors", ".bin")


def git_digest(content: bytes) -> str:
    """The name that Git gives the content."""
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass
class Repository:
    """The files of one model, and what the hub says about it."""

    files: dict[str, bytes]
    licence: str
    commit: str = COMMIT
    revisions: tuple[str, ...] = ("main",)
    status: int = 200
    """Status of its metadata: 401 for a gated one."""
    code: str = ""
    """`X-Error-Code` of an error."""

    def record(self, name: str) -> dict[str, Any]:
        """The metadata with blobs."""
        return {
            "id": name,
            "modelId": name,
            "sha": self.commit,
            "private": False,
            "tags": [],
            "cardData": {"license": self.licence},
            "siblings": [self._sibling(each, content) for each, content in self.files.items()],
        }

    def _sibling(self, name: str, content: bytes) -> dict[str, Any]:
        size = len(content)
        found: dict[str, Any] = {"rfilename": name, "size": size, "blobId": git_digest(content)}
        if name.endswith(_LARGE):
            found["lfs"] = {"sha256": sha256(content).hexdigest(), "size": size, "pointerSize": 130}
        return found


class HubServer:
    """The server; a context manager."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.faults: dict[str, str] = {}
        """File → `truncated` (the first half, nothing when it is resumed) or `changed` (other content, the same size).
        """
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        """The address for HF_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def add(self, name: str, files: Mapping[str, bytes], licence: str = "mit", **more: Any) -> Repository:
        """Add a model."""
        found = self.repositories[name] = Repository(dict(files), licence, **more)
        return found

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(path)
        if about := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            self._about(about[1], about[2] or "main")
        elif asked := re.fullmatch(r"/(?:lfs/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._file(asked[1], asked[3], linked=path.startswith("/lfs/"))
        else:
            self._send(404, b"", {})

    def _about(self, name: str, revision: str) -> None:
        found = self.hub.repositories.get(name)
        if found is None:
            self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif found.status != HTTPStatus.OK:
            self._send(found.status, b"", {"X-Error-Code": found.code} if found.code else {})
        elif revision not in {*found.revisions, found.commit}:
            self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        else:
            self._send(200, json.dumps(found.record(name)).encode(), {"Content-Type": "application/json"})

    def _file(self, name: str, file: str, *, linked: bool) -> None:
        found = self.hub.repositories[name]
        content = found.files[file]
        fault = self.hub.faults.get(file, "")
        large = file.endswith(_LARGE)
        etag = sha256(content).hexdigest() if large else git_digest(content)
        headers = {"X-Repo-Commit": found.commit, "ETag": f'"{etag}"'}
        if large and not linked:
            more = {"Location": f"{self.hub.url}/lfs{self.path}", "X-Linked-Etag": f'"{etag}"'}
            self._send(302, b"", {**headers, **more, "X-Linked-Size": str(len(content))})
            return
        if fault == "changed":
            content = bytes(len(content))
        self._send(200, content, headers, truncated=fault == "truncated")

    def _send(self, status: int, body: bytes, headers: Mapping[str, str], *, truncated: bool = False) -> None:
        start = 0
        if status == HTTPStatus.OK and (part := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))):
            start, status = int(part[1]), 206
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        if status == HTTPStatus.PARTIAL_CONTENT:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[start : len(body) // 2] if truncated else body[start:])
        if truncated:
            self.close_connection = True
