"""A judge server that also has the batch APIs of OpenAI, Anthropic and Google, with delays, expiry and faults.

    with BatchServer(answer) as server:
        ...                          # submit
        server.run_batches()         # every submitted batch ends
        ...                          # collect

A line is sent to the server's own endpoint for single requests, so its reply is exactly that of a direct request, and
`server.sent` counts each line that was run. Sources of the formats: the reference pages of the three APIs.
"""

import asyncio
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession, web
from server import JudgeServer

_TYPES = {400: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
_GOOGLE_CODES = {400: 3, 429: 8, 500: 13, 503: 14}


@dataclass
class Submitted:
    """A batch as the server has it."""

    id: str
    kind: str
    lines: list[tuple[str, Any]]
    """Id and body of each line."""
    mark: str
    model: str = ""
    results: list[tuple[str, int, Any]] | None = None
    """Id, status (0: not run) and body of each line; None until the batch ends."""
    created: str = "2099-01-01T00:00:00Z"
    ended: bool = False
    expired: bool = False


@dataclass
class Plan:
    """How the next batches end."""

    errors: float = 0.0
    """Fraction of the lines that fail with `status`, each at most once."""
    status: int = 500
    expires: float = 0.0
    """Fraction of the lines of the next batch that are not run. Unless it is 0, the first line is one of them."""
    broken: str = ""
    """Lines with this text always fail."""
    struck: set[str] = field(default_factory=set)


class BatchServer(JudgeServer):
    """The server; `batches` holds everything that was submitted."""

    def __init__(self, answer: Any = None, **options: Any) -> None:
        super().__init__(answer, **options)
        self.batches: list[Submitted] = []
        self.files: dict[str, str] = {}
        self.plan = Plan()
        self.on_batch: Callable[[], None] = lambda: None
        """Called when a batch was accepted, before its answer is sent."""
        self.refusal: str | None = None
        """The reason for which OpenAI's API rejects each batch as a whole."""

    def run_batches(self) -> None:
        """Run every batch that has not ended, one after another."""
        asyncio.run_coroutine_threadsafe(self._run_all(), self._loop).result()

    def stop_answering(self) -> None:
        """Fail the request that is being answered, after its batch was accepted."""
        raise RuntimeError("made to fail")

    def routes(self, app: web.Application) -> None:
        """Add the batch APIs."""
        app.middlewares.append(self._with_key)
        add = app.router
        add.add_post("/run", self._run)
        add.add_post("/v1/files", self._upload)
        add.add_get("/v1/files/{file}/content", self._content)
        add.add_post("/v1/batches", self._create)
        add.add_get("/v1/batches", self._list)
        add.add_get("/v1/batches/{batch}", self._get)
        add.add_post("/v1/messages/batches", self._create_messages)
        add.add_get("/v1/messages/batches", self._list_messages)
        add.add_get("/v1/messages/batches/{batch}", self._get_messages)
        add.add_get("/v1/messages/batches/{batch}/results", self._results_of_messages)
        add.add_post("/v1beta/models/{model:.*}:batchGenerateContent", self.create_google)
        add.add_get("/v1beta/batches", self._list_google)
        add.add_get("/v1beta/batches/{batch}", self._get_google)

    @web.middleware
    async def _with_key(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Answer with 401 without one of the keys."""
        if self.keys is not None and not self.keys.intersection(request.headers.values()):
            return web.json_response({"error": {"message": "Incorrect API key provided."}}, status=401)
        response: web.StreamResponse = await handler(request)
        return response

    # running

    async def _run(self, _: web.Request) -> web.Response:
        await self._run_all()
        return web.Response()

    async def _run_all(self) -> None:
        async with ClientSession() as session:
            for batch in self.batches:
                if not batch.ended:
                    batch.results = [
                        await self._line(session, batch, *line, first=not at) for at, line in enumerate(batch.lines)
                    ]
                    batch.expired = any(status == 0 for _, status, _ in batch.results)
                    batch.ended = True
                    self.plan.expires = 0.0

    async def _line(
        self, session: ClientSession, batch: Submitted, name: str, body: Any, *, first: bool
    ) -> tuple[str, int, Any]:
        own = name.partition("-")[2]
        luck = random.Random(json.dumps(body))  # not by the name, which differs with the port of the server
        if luck.random() < self.plan.expires or (first and self.plan.expires):
            return name, 0, None
        if self.plan.broken and self.plan.broken in json.dumps(body):
            return name, self.plan.status, {"error": {"message": "made to fail"}}
        if luck.random() < self.plan.errors and own not in self.plan.struck:
            self.plan.struck.add(own)
            return name, self.plan.status, {"error": {"message": "made to fail"}}
        path = {
            "openai": "/v1/chat/completions",
            "anthropic": "/v1/messages",
            "google": f"/v1beta/models/{batch.model}:generateContent",
        }[batch.kind]
        async with session.post(f"{self.root_url}{path}", json=body) as response:
            return name, response.status, await response.json()

    def _accept(self, batch: Submitted) -> Submitted:
        self.batches.append(batch)
        self.on_batch()
        return batch

    def _named(self, request: web.Request) -> Submitted:
        name = request.match_info["batch"]
        return next(each for each in self.batches if each.id.removeprefix("batches/") == name)

    # OpenAI

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        upload: Any = form["file"]
        name = f"file-{len(self.files)}"
        with upload.file:  # aiohttp 3.9 leaves it open
            self.files[name] = upload.file.read().decode()
        return web.json_response({"id": name, "object": "file", "purpose": "batch"})

    async def _content(self, request: web.Request) -> web.Response:
        return web.Response(text=self.files[request.match_info["file"]])

    async def _create(self, request: web.Request) -> web.Response:
        fields = await request.json()
        assert fields["endpoint"] == "/v1/chat/completions"
        assert fields["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[fields["input_file_id"]].splitlines()]
        assert all(line["method"] == "POST" and line["url"] == fields["endpoint"] for line in lines)
        pairs = [(line["custom_id"], line["body"]) for line in lines]
        mark = fields["metadata"]["merilo"]
        batch = self._accept(Submitted(f"batch_{len(self.batches)}", "openai", pairs, mark))
        return web.json_response(self._shown(batch))

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [self._shown(each) for each in reversed(self.batches)], "has_more": False})

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(self._shown(self._named(request)))

    def _shown(self, batch: Submitted) -> dict[str, Any]:
        shown: dict[str, Any] = {"id": batch.id, "object": "batch", "metadata": {"merilo": batch.mark}}
        if self.refusal is not None:
            return {**shown, "status": "failed", "errors": {"data": [{"message": self.refusal}]}}
        if batch.results is None:
            return {**shown, "status": "in_progress"}
        fine, wrong = list[str](), list[str]()
        for name, status, body in batch.results:
            error = {"code": "batch_expired", "message": "not run"} if status == 0 else None
            response = None if status == 0 else {"status_code": status, "request_id": "r", "body": body}
            line = json.dumps({"id": "batch_req_1", "custom_id": name, "response": response, "error": error})
            (fine if status == 200 else wrong).append(line + "\n")
        for file, content in (("output", fine), ("error", wrong)):
            if content:
                self.files[f"{file}-{batch.id}"] = "".join(content)
                shown[f"{file}_file_id"] = f"{file}-{batch.id}"
        return {**shown, "status": "expired" if batch.expired else "completed"}

    # Anthropic

    async def _create_messages(self, request: web.Request) -> web.Response:
        lines = [(each["custom_id"], each["params"]) for each in (await request.json())["requests"]]
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name, _ in lines)
        batch = self._accept(Submitted(f"msgbatch_{len(self.batches)}", "anthropic", lines, ""))
        return web.json_response(self._message_batch(batch))

    async def _list_messages(self, _: web.Request) -> web.Response:
        data = [self._message_batch(each) for each in reversed(self.batches)]
        return web.json_response({"data": data, "has_more": False})

    async def _get_messages(self, request: web.Request) -> web.Response:
        return web.json_response(self._message_batch(self._named(request)))

    async def _results_of_messages(self, request: web.Request) -> web.Response:
        batch, lines = self._named(request), list[str]()
        for name, status, body in batch.results or ():
            result: dict[str, Any] = {"type": "succeeded", "message": body}
            if status == 0:
                result = {"type": "expired"}
            elif status != 200:
                error = {"type": _TYPES[status], "message": body["error"]["message"]}
                result = {"type": "errored", "error": {"type": "error", "error": error}}
            lines.append(json.dumps({"custom_id": name, "result": result}) + "\n")
        random.Random(1).shuffle(lines)  # results are in any order
        return web.Response(text="".join(lines))

    def _message_batch(self, batch: Submitted) -> dict[str, Any]:
        counts = {"processing": 0, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        counts["succeeded" if batch.ended else "processing"] = len(batch.lines)
        status = "ended" if batch.ended else "in_progress"
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": status,
            "request_counts": counts,
            "created_at": batch.created,
        }

    # Google

    async def create_google(self, request: web.Request) -> web.Response:
        """Accept `models/MODEL:batchGenerateContent`."""
        fields = (await request.json())["batch"]
        requests = fields["inputConfig"]["requests"]["requests"]
        lines = [(each["metadata"]["key"], each["request"]) for each in requests]
        model = request.match_info["model"]
        name = f"batches/{len(self.batches)}"
        return web.json_response(
            self._operation(self._accept(Submitted(name, "google", lines, fields["displayName"], model)))
        )

    async def _list_google(self, _: web.Request) -> web.Response:
        return web.json_response({"operations": [self._operation(each) for each in self.batches]})

    async def _get_google(self, request: web.Request) -> web.Response:
        return web.json_response(self._operation(self._named(request)))

    def _operation(self, batch: Submitted) -> dict[str, Any]:
        metadata = {"displayName": batch.mark, "state": "BATCH_STATE_RUNNING"}
        if batch.results is None:
            return {"name": batch.id, "metadata": metadata}
        responses = list[dict[str, Any]]()
        for _, status, body in batch.results:
            code = 1 if status == 0 else _GOOGLE_CODES.get(status, 13)
            responses.append({"response": body} if status == 200 else {"error": {"code": code, "message": "failed"}})
        metadata["state"] = "BATCH_STATE_SUCCEEDED"
        output = {"inlinedResponses": {"inlinedResponses": responses}}
        return {"name": batch.id, "metadata": metadata, "done": True, "response": output}
