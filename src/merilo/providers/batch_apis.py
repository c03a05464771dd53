"""Batch APIs: files of requests that a provider answers within hours, at a lower price.

A line of a batch is the body of an ordinary request, so a reply is read by the provider's own connection. Budget,
retries and what is stored are in `engine/batch_rounds.py`. The lines of OpenAI's files are also what `vllm run-batch`
and other programs read and write, see `BatchFiles`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast
from urllib.parse import quote

from merilo.errors import Permanent, ProviderDown, UsageError
from merilo.judging.json_types import Json, as_list, as_object, loaded
from merilo.providers.bodies import json_bytes, json_text
from merilo.providers.openai import OpenAIProvider
from merilo.providers.problems import excerpt, message_in
from merilo.providers.secrets import secrets_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
    from pathlib import Path

    from merilo.providers.base import Connection, Provider
    from merilo.providers.endpoint import ChatConnection, WireAnswer

NOT_RUN: Final = 0
"""The status of a line that the provider did not run, for instance because its batch expired. It costs nothing."""
MAX_RESULT_BYTES: Final = 512 * 1024 * 1024
"""Largest size of the results of one batch."""
_OK: Final = 200
_SERVER_ERROR: Final = 500
_PAGE: Final = 100
_CHAT: Final = "/v1/chat/completions"
_STATUSES: Final = range(100, 600)
_ENDED: Final = frozenset({"completed", "expired", "cancelled", "failed"})
_NOT_RUN: Final = frozenset({"batch_expired", "batch_cancelled"})
_MESSAGES: Final = "/v1/messages/batches"
_CLOCKS_S: Final = 600.0
"""How far the server's clock may be behind ours."""
_ANTHROPIC_STATUS: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_CANCELLED: Final = 1
_GOOGLE_STATUS: Final = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}
"""HTTP statuses of the error codes of Google's APIs."""
_PENDING: Final = frozenset({"UNSPECIFIED", "PENDING", "RUNNING"})


class BatchLine(NamedTuple):
    """A request of a batch."""

    id: str
    """At most 64 letters, digits, `-` and `_`."""
    body: bytes


class LineResult(NamedTuple):
    """The answer to a line."""

    id: str
    status: int
    """The HTTP status that the request alone would have got; NOT_RUN if it was not run."""
    text: str
    """The body of that answer."""


class Intent(NamedTuple):
    """A batch whose submission may have been interrupted."""

    mark: str
    """The name that the batch was to get. Each line's id starts with it."""
    lines: int
    known: frozenset[str]
    """The ids of other batches of this run."""
    created: float
    """When it was about to be submitted, in seconds since 1970."""


class Uncertain(Exception):
    """It is unknown whether a batch was submitted until another one ends."""


class BatchApi(Protocol):
    """A batch API of a provider. All methods raise the provider errors of `merilo.errors`."""

    max_lines: int = 10_000
    max_bytes: int = 64 * 1024 * 1024

    async def submit(self, mark: str, lines: Sequence[BatchLine]) -> str:
        """Submit a batch with this mark; return its id."""
        ...

    async def find(self, intent: Intent) -> str | None:
        """Return the id of the batch with this mark; None if it was never submitted. Raises Uncertain."""
        ...

    async def ended(self, batch: str) -> bool:
        """Return True if the results of a batch can be read."""
        ...

    async def results(self, batch: str, ids: Sequence[str]) -> list[LineResult]:
        """Return the results of an ended batch with these line ids, in any order; some lines may not have been run."""
        ...


class _HttpBatches(BatchApi):
    """A batch API at one endpoint."""

    def __init__(self, connection: ChatConnection) -> None:
        self._connection = connection
        self._wire = connection.wire

    async def _object_at(self, route: str) -> Json:
        return self._object_in(await self._wire.get(route, largest=MAX_RESULT_BYTES))

    async def _text_at(self, route: str) -> str:
        answer = await self._wire.get(route, largest=MAX_RESULT_BYTES)
        if answer.status != _OK and (error := self._connection.error_in(answer)) is not None:
            raise error
        return answer.text

    async def _listed(self, route: str, items: str, after: str) -> AsyncIterator[Json]:
        """Yield the batches of all pages. `after`: the parameter with the token of a page, or the last batch's id."""
        page_of = ""
        while True:
            page = await self._object_at(f"{route}{_PAGE}{page_of}")
            batches = [each for item in as_list(page.get(items)) or () if (each := as_object(item)) is not None]
            for batch in batches:
                yield batch
            token = page.get("nextPageToken") or (batches[-1].get("id") if batches and page.get("has_more") else None)
            if not token:
                return
            page_of = f"&{after}={quote(str(token), safe='')}"

    def _object_in(self, answer: WireAnswer) -> Json:
        """Return the JSON object in an answer. Raises the error that it reports; Permanent if it is something else."""
        if (error := self._connection.error_in(answer)) is not None:
            raise error
        if (found := _json_object(answer.text)) is None:
            raise Permanent(f"The batch API sent no JSON object but: {excerpt(self._wire.clean(answer.text))!r}.")
        return found


class OpenAIBatches(_HttpBatches):
    """OpenAI's batch API: a file of requests at `/files`, a batch at `/batches`, and files of results."""

    async def submit(self, mark: str, lines: Sequence[BatchLine]) -> str:
        """See `BatchApi`. The mark is in the batch's metadata, so that a submission without an answer can be found."""
        content_type, body = _form(mark, request_lines(lines))
        file = self._object_in(await self._wire.post("/files", body, content_type=content_type))
        fields = {
            "input_file_id": str(file.get("id")),
            "endpoint": _CHAT,
            "completion_window": "24h",
            "metadata": {"merilo": mark},
        }
        answer = await self._wire.post("/batches", json_bytes(json_text(fields)))
        return str(self._object_in(answer).get("id"))

    async def find(self, intent: Intent) -> str | None:
        """See `BatchApi`."""
        async for batch in self._listed("/batches?limit=", "data", "after"):
            if (as_object(batch.get("metadata")) or {}).get("merilo") == intent.mark:
                return str(batch.get("id"))
        return None

    async def ended(self, batch: str) -> bool:
        """See `BatchApi`. Raises ProviderDown for a batch that was rejected as a whole."""
        found = await self._batch(batch)
        if found.get("status") == "failed":
            errors = as_list((as_object(found.get("errors")) or {}).get("data")) or ()
            named = (str((as_object(each) or {}).get("message") or "") for each in errors)
            why = self._wire.clean(next(filter(None, named), "it names no reason"))
            raise ProviderDown(f"The batch {batch} was rejected: {why}")
        return found.get("status") in _ENDED

    async def results(self, batch: str, ids: Sequence[str]) -> list[LineResult]:
        """See `BatchApi`."""
        del ids
        found = await self._batch(batch)
        results: list[LineResult] = []
        for name in ("output_file_id", "error_file_id"):
            if (file := found.get(name)) is not None:
                text = await self._text_at(f"/files/{quote(str(file), safe='')}/content")
                results += read_results(text, what=f"{name} of {batch}")
        return results

    async def _batch(self, batch: str) -> Json:
        return await self._object_at(f"/batches/{quote(batch, safe='')}")


def request_lines(lines: Iterable[BatchLine]) -> bytes:
    """Return the file of these requests."""
    route = json_text(_CHAT)
    return b"".join(
        b'{"custom_id": %s, "method": "POST", "url": %s, "body": %s}\n'
        % (json_bytes(json_text(line.id)), json_bytes(route), line.body)
        for line in lines
    )


def read_results(text: str, *, what: str) -> list[LineResult]:
    """Return the results in a file of outputs or errors. Raises Permanent if it is another file."""
    return [_openai_result(line) for line in objects_in(text, what=what)]


def _openai_result(line: Json) -> LineResult:
    response, error = as_object(line.get("response")), line.get("error") or None
    fields = as_object(error)
    name = str(line.get("custom_id"))
    if fields is not None and fields.get("code") in _NOT_RUN:
        return LineResult(name, NOT_RUN, "")
    response = response or {}
    body = as_object(response.get("body")) or (response if "choices" in response else None)
    status = response.get("status_code")
    known = status if type(status) is int and status in _STATUSES else None
    if error is not None:  # an object, or a text as vLLM writes it
        shown = error if fields is not None else {"message": str(error)}
        failed = _SERVER_ERROR if known is None or known == _OK else known
        return LineResult(name, failed, json_text(body or {"error": shown}))
    return LineResult(name, _OK if known is None else known, json_text(body or {}))


def _form(mark: str, content: bytes) -> tuple[str, bytes]:
    """Return the content type and the body of a form that uploads a file."""
    line = f"merilo-{mark}"
    head = (
        f'--{line}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{line}\r\nContent-Disposition: form-data; name="file"; filename="merilo-{mark}.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return f"multipart/form-data; boundary={line}", b"".join((head.encode(), content, f"\r\n--{line}--\r\n".encode()))


class BatchFiles(BatchApi):
    """Batches in a directory, in OpenAI's format. All methods raise OSError if it cannot be used.

    A batch is `MARK.requests.jsonl`; its results are expected as `MARK.output.jsonl` in the same directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def submit(self, mark: str, lines: Sequence[BatchLine]) -> str:
        """See `BatchApi`. The file appears under its name when it is complete."""
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._requests(mark)
        part = path.with_suffix(".part")
        with part.open("wb") as out:
            out.write(request_lines(lines))
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
        return mark

    async def find(self, intent: Intent) -> str | None:
        """See `BatchApi`."""
        return intent.mark if self._requests(intent.mark).exists() else None

    async def ended(self, batch: str) -> bool:
        """See `BatchApi`. A file without a final newline is still being written."""
        path = self._output(batch)
        if not path.exists() and not self._requests(batch).exists():
            raise ProviderDown(
                f"{self._requests(batch)} and its output are missing. Put them back, or use another run."
            )
        return path.exists() and path.read_bytes().endswith(b"\n")

    async def results(self, batch: str, ids: Sequence[str]) -> list[LineResult]:
        """See `BatchApi`."""
        path = self._output(batch)
        found = read_results(path.read_text(encoding="utf-8", errors="replace"), what=str(path))
        if found and {each.id for each in found}.isdisjoint(ids):  # otherwise all would be paid for again
            raise ProviderDown(
                f"{path} has the results of other requests: no custom_id is one of {self._requests(batch).name}. "
                "Replace it by the results of these requests."
            )
        return found

    def _requests(self, mark: str) -> Path:
        return self._directory / f"{mark}.requests.jsonl"

    def _output(self, mark: str) -> Path:
        return self._directory / f"{mark}.output.jsonl"


class AnthropicBatches(_HttpBatches):
    """Anthropic's batch API, with the requests in the body and the results as JSON Lines."""

    async def submit(self, mark: str, lines: Sequence[BatchLine]) -> str:
        """See `BatchApi`. A batch has no name here; the ids of its lines start with the mark."""
        del mark
        requests = (b'{"custom_id": %s, "params": %s}' % (json_bytes(json_text(line.id)), line.body) for line in lines)
        body = b'{"requests": [%s]}' % b", ".join(requests)
        return str(self._object_in(await self._wire.post(_MESSAGES, body)).get("id"))

    async def find(self, intent: Intent) -> str | None:
        """See `BatchApi`. Only the results of a batch show the ids of its lines, so its end may have to come first."""
        waits = False
        async for batch in self._listed(f"{_MESSAGES}?limit=", "data", "after_id"):
            with suppress(ValueError):
                created = datetime.fromisoformat(str(batch.get("created_at"))).timestamp()
                if created < intent.created - _CLOCKS_S:  # the newest come first
                    break
            name, counts = str(batch.get("id")), as_object(batch.get("request_counts")) or {}
            if name in intent.known or sum(each for each in counts.values() if isinstance(each, int)) != intent.lines:
                continue
            if batch.get("processing_status") != "ended":
                waits = True
                continue
            results = await self.results(name, ())
            if results and results[0].id.startswith(intent.mark):
                return name
        if waits:
            raise Uncertain
        return None

    async def ended(self, batch: str) -> bool:
        """See `BatchApi`."""
        found = await self._object_at(f"{_MESSAGES}/{quote(batch, safe='')}")
        return found.get("processing_status") == "ended"

    async def results(self, batch: str, ids: Sequence[str]) -> list[LineResult]:
        """See `BatchApi`."""
        del ids
        text = await self._text_at(f"{_MESSAGES}/{quote(batch, safe='')}/results")
        return [_anthropic_result(line) for line in objects_in(text, what=f"The results of {batch}")]


def _anthropic_result(line: Json) -> LineResult:
    name, result = str(line.get("custom_id")), as_object(line.get("result")) or {}
    kind = result.get("type")
    if kind == "succeeded":
        return LineResult(name, _OK, json_text(as_object(result.get("message")) or {}))
    if kind != "errored":
        return LineResult(name, NOT_RUN, "")
    whole = as_object(result.get("error")) or {}
    inner = as_object(whole.get("error")) or whole
    return LineResult(name, _ANTHROPIC_STATUS.get(str(inner.get("type")), _SERVER_ERROR), json_text({"error": inner}))


class GoogleBatches(_HttpBatches):
    """Google's batch API, with the requests in the body."""

    max_bytes = 16 * 1024 * 1024
    """Requests in the body may have 20 MB together."""

    async def submit(self, mark: str, lines: Sequence[BatchLine]) -> str:
        """See `BatchApi`. The mark is the batch's display name."""
        requests = (
            b'{"request": %s, "metadata": {"key": %s}}' % (line.body, json_bytes(json_text(line.id))) for line in lines
        )
        name = json_bytes(json_text(mark))
        body = b'{"batch": {"displayName": %s, "inputConfig": {"requests": {"requests": [%s]}}}}'
        route = self._connection.route.replace(":generateContent", ":batchGenerateContent")
        answer = await self._wire.post(route, body % (name, b", ".join(requests)))
        return str(self._object_in(answer).get("name"))

    async def find(self, intent: Intent) -> str | None:
        """See `BatchApi`."""
        async for batch in self._listed("/v1beta/batches?pageSize=", "operations", "pageToken"):
            if _metadata(batch).get("displayName") == intent.mark:
                return str(batch.get("name"))
        return None

    async def ended(self, batch: str) -> bool:
        """See `BatchApi`. Raises ProviderDown for a batch that failed as a whole."""
        found = await self._batch(batch)
        state = str(_metadata(found).get("state") or "UNSPECIFIED").rpartition("STATE_")[2]
        if state == "FAILED":
            why = (as_object(found.get("error")) or {}).get("message") or "it names no reason"
            raise ProviderDown(f"The batch {batch} was rejected: {self._wire.clean(str(why))}")
        return state not in _PENDING

    async def results(self, batch: str, ids: Sequence[str]) -> list[LineResult]:
        """See `BatchApi`. Results are in the order of the requests, and need not repeat their keys."""
        found = await self._batch(batch)
        output = as_object(found.get("response")) or as_object(_metadata(found).get("output")) or {}
        inlined = output.get("inlinedResponses")
        responses = as_list((as_object(inlined) or {}).get("inlinedResponses")) or as_list(inlined) or ()
        return [_google_result(as_object(each) or {}, name) for each, name in zip(responses, ids, strict=False)]

    async def _batch(self, batch: str) -> Json:
        # a failed batch has an `error`, which is not that of this request
        answer = await self._wire.get(f"/v1beta/{quote(batch)}", largest=MAX_RESULT_BYTES)
        found = message_in(answer.text)
        return found if answer.status == _OK and found.get("name") else self._object_in(answer)


def _metadata(batch: Json) -> Json:
    return as_object(batch.get("metadata")) or {}


def _google_result(response: Json, expected: str) -> LineResult:
    name = str((as_object(response.get("metadata")) or {}).get("key") or expected)
    if (content := as_object(response.get("response"))) is not None:
        return LineResult(name, _OK, json_text(content))
    error = as_object(response.get("error"))
    if error is None or error.get("code") == _CANCELLED:
        return LineResult(name, NOT_RUN, "")
    code = error.get("code")
    status = _GOOGLE_STATUS.get(code, _SERVER_ERROR) if isinstance(code, int) else _SERVER_ERROR
    return LineResult(name, status, json_text({"error": {**error, "code": status}}))


def objects_in(text: str, *, what: str) -> list[Json]:
    """Return the objects in JSON Lines. Raises Permanent for anything else; `what` names the file in its message."""
    found: list[Json] = []
    # not splitlines: a reply may hold U+2028 and other characters that it takes for line ends
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        if (each := _json_object(line)) is None:
            raise Permanent(f"{what}, line {number}: expected a JSON object, got {excerpt(line)!r}.")
        found.append(each)
    return found


def _json_object(text: str) -> Json | None:
    try:
        return as_object(loaded(text))
    except ValueError:
        return None


_APIS: Final[dict[str, type[OpenAIBatches | AnthropicBatches | GoogleBatches]]] = {
    "openai": OpenAIBatches,
    "anthropic": AnthropicBatches,
    "google": GoogleBatches,
}
"""The batch API of each provider, by the kind of provider."""


class OpenBatches(NamedTuple):
    """A batch API, and the connection that makes its bodies and reads its replies."""

    connection: ChatConnection
    api: BatchApi


def check_batches(name: str, provider: Provider, *, files: bool) -> None:
    """Raise UsageError if a judge's requests cannot go into batches."""
    if files and _openai(provider) is None:
        raise UsageError(f"--batch-files writes OpenAI's format, which {name} does not read. Use --judge openai:MODEL.")
    if files and (openai := _openai(provider)) and [*secrets_in(openai.body, openai.base_url)]:
        raise UsageError("--batch-files would write a secret of the judge's `body` to a file. Leave it out.")
    if _kind(provider) not in _APIS:
        known = ", ".join(f"{kind}:MODEL" for kind in _APIS)
        raise UsageError(f"merilo knows no batch API for {name}. Leave out --batch, or use another judge ({known}).")


async def open_batches(
    provider: Provider, connect: Callable[[Provider], Awaitable[Connection]], directory: Path | None
) -> OpenBatches:
    """Open a provider's batch API by `connect`. With a `directory`, batches are files there, and no key is needed."""
    if directory is not None and (openai := _openai(provider)) is not None:
        keyless = openai if openai.api_key is not None else replace(openai, api_key=lambda: "")
        return OpenBatches(cast("ChatConnection", await connect(keyless)), BatchFiles(directory))
    connection = cast("ChatConnection", await connect(provider))  # of each provider in the table
    return OpenBatches(connection, _APIS[_kind(provider)](connection))


def _openai(provider: Provider) -> OpenAIProvider | None:
    """Return the provider if its requests are in OpenAI's own format; None otherwise, also for Azure."""
    return provider if isinstance(provider, OpenAIProvider) and _kind(provider) == "openai" else None


def _kind(provider: Provider) -> str:
    return str(provider.fingerprint().get("provider", ""))
