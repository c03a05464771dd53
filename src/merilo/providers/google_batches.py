"""Google's batch API: `batchGenerateContent`, with the requests in the body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from merilo.errors import ProviderDown
from merilo.judging.json_types import as_list, as_object
from merilo.providers.batch_api import MAX_RESULT_BYTES, NOT_RUN, LineResult, joined, object_in
from merilo.providers.bodies import json_bytes, json_text
from merilo.providers.problems import message_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judging.json_types import Json
    from merilo.providers.batch_api import BatchLine, Intent
    from merilo.providers.chat import ChatConnection

_OK: Final = 200
_CANCELLED: Final = 1
_STATUS: Final = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}
"""HTTP statuses of the error codes of Google's APIs."""
_SERVER_ERROR: Final = 500
_PENDING: Final = frozenset({"UNSPECIFIED", "PENDING", "RUNNING"})
_PAGE: Final = 100


class GoogleBatches:
    """The batch API at one endpoint."""

    max_lines = 10_000
    max_bytes = 16 * 1024 * 1024
    """Requests in the body may have 20 MB together."""

    def __init__(self, connection: ChatConnection) -> None:
        self._connection = connection
        self._wire = connection.wire

    async def submit(self, mark: str, lines: Sequence[BatchLine]) -> str:
        """See `BatchApi`. The mark is the batch's display name."""
        requests = (
            b'{"request": %s, "metadata": {"key": %s}}' % (line.body, json_bytes(json_text(line.id))) for line in lines
        )
        name = json_bytes(json_text(mark))
        body = b'{"batch": {"displayName": %s, "inputConfig": {"requests": {"requests": [%s]}}}}'
        route = self._connection.route.replace(":generateContent", ":batchGenerateContent")
        answer = await self._wire.post(route, body % (name, b", ".join(requests)))
        return str(object_in(self._connection, answer).get("name"))

    async def find(self, intent: Intent) -> str | None:
        """See `BatchApi`."""
        token = ""
        while True:
            answer = await self._wire.get(f"/v1beta/batches?pageSize={_PAGE}{token}", largest=MAX_RESULT_BYTES)
            page = object_in(self._connection, answer)
            for item in as_list(page.get("operations")) or ():
                batch = as_object(item) or {}
                if _metadata(batch).get("displayName") == intent.mark:
                    return str(batch.get("name"))
            if not page.get("nextPageToken"):
                return None
            token = f"&pageToken={quote(str(page['nextPageToken']), safe='')}"

    async def ended(self, batch: str) -> bool:
        """See `BatchApi`. Raises ProviderDown for a batch that failed as a whole."""
        found = await self._batch(batch)
        state = _state(found)
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
        return [_result(as_object(each) or {}, name) for each, name in zip(responses, ids, strict=False)]

    async def _batch(self, batch: str) -> Json:
        # a failed batch has an `error`, which is not that of this request
        answer = await self._wire.get(f"/v1beta/{quote(batch)}", largest=MAX_RESULT_BYTES)
        found = message_in(answer.text)
        return found if answer.status == _OK and found.get("name") else object_in(self._connection, answer)


def _metadata(batch: Json) -> Json:
    return as_object(batch.get("metadata")) or {}


def _state(batch: Json) -> str:
    state = str(_metadata(batch).get("state") or "UNSPECIFIED")
    return state.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")


def _result(response: Json, expected: str) -> LineResult:
    name = str((as_object(response.get("metadata")) or {}).get("key") or expected)
    if (content := as_object(response.get("response"))) is not None:
        return LineResult(name, _OK, joined(content))
    error = as_object(response.get("error"))
    if error is None or error.get("code") == _CANCELLED:
        return LineResult(name, NOT_RUN, "")
    code = error.get("code")
    status = _STATUS.get(code, _SERVER_ERROR) if isinstance(code, int) else _SERVER_ERROR
    return LineResult(name, status, joined({"error": {**error, "code": status}}))
