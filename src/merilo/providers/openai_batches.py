"""OpenAI's batch API: a file of requests at `/files`, a batch at `/batches`, and files of results.

The lines of these files are also what `vllm run-batch` and other programs read and write (`batch_files.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from merilo.errors import ProviderDown
from merilo.judging.json_types import as_list, as_object
from merilo.providers.batch_api import MAX_RESULT_BYTES, NOT_RUN, LineResult, joined, object_in, objects_in
from merilo.providers.bodies import json_bytes, json_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from merilo.judging.json_types import Json
    from merilo.providers.batch_api import BatchLine, Intent
    from merilo.providers.chat import ChatConnection

ROUTE: Final = "/v1/chat/completions"
_OK: Final = 200
_SERVER_ERROR: Final = 500
_STATUSES: Final = range(100, 600)
_ENDED: Final = frozenset({"completed", "expired", "cancelled", "failed"})
_NOT_RUN: Final = frozenset({"batch_expired", "batch_cancelled"})
_PAGE: Final = 100


class OpenAIBatches:
    """The batch API at one endpoint."""

    max_lines = 10_000
    max_bytes = 64 * 1024 * 1024

    def __init__(self, connection: ChatConnection) -> None:
        self._connection = connection
        self._wire = connection.wire

    async def submit(self, mark: str, lines: Sequence[BatchLine]) -> str:
        """See `BatchApi`. The mark is in the batch's metadata, so that a submission without an answer can be found."""
        content_type, body = _form(mark, request_lines(lines))
        answer = await self._wire.post("/files", body, content_type=content_type)
        file = str(object_in(self._connection, answer).get("id"))
        fields = {
            "input_file_id": file,
            "endpoint": ROUTE,
            "completion_window": "24h",
            "metadata": {"merilo": mark},
        }
        answer = await self._wire.post("/batches", json_bytes(json_text(fields)))
        return str(object_in(self._connection, answer).get("id"))

    async def find(self, intent: Intent) -> str | None:
        """See `BatchApi`."""
        after = ""
        while True:
            answer = await self._wire.get(f"/batches?limit={_PAGE}{after}")
            page = object_in(self._connection, answer)
            batches = [each for item in as_list(page.get("data")) or () if (each := as_object(item)) is not None]
            for batch in batches:
                if (as_object(batch.get("metadata")) or {}).get("merilo") == intent.mark:
                    return str(batch.get("id"))
            if not batches or not page.get("has_more"):
                return None
            after = f"&after={quote(str(batches[-1].get('id')), safe='')}"

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
                path = f"/files/{quote(str(file), safe='')}/content"
                answer = await self._wire.get(path, largest=MAX_RESULT_BYTES)
                if answer.status != _OK and (error := self._connection.error_in(answer)) is not None:
                    raise error
                results += read_results(answer.text, what=f"{name} of {batch}")
        return results

    async def _batch(self, batch: str) -> Json:
        return object_in(self._connection, await self._wire.get(f"/batches/{quote(batch, safe='')}"))


def request_lines(lines: Iterable[BatchLine]) -> bytes:
    """Return the file of these requests."""
    route = json_text(ROUTE)
    return b"".join(
        b'{"custom_id": %s, "method": "POST", "url": %s, "body": %s}\n'
        % (json_bytes(json_text(line.id)), json_bytes(route), line.body)
        for line in lines
    )


def read_results(text: str, *, what: str) -> list[LineResult]:
    """Return the results in a file of outputs or errors. Raises Permanent if it is another file."""
    return [_result(line) for line in objects_in(text, what=what)]


def _result(line: Json) -> LineResult:
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
        return LineResult(name, failed, joined(body or {"error": shown}))
    return LineResult(name, _OK if known is None else known, joined(body or {}))


def _form(mark: str, content: bytes) -> tuple[str, bytes]:
    """Return the content type and the body of a form that uploads a file."""
    line = f"merilo-{mark}"
    head = (
        f'--{line}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{line}\r\nContent-Disposition: form-data; name="file"; filename="merilo-{mark}.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return f"multipart/form-data; boundary={line}", b"".join((head.encode(), content, f"\r\n--{line}--\r\n".encode()))
