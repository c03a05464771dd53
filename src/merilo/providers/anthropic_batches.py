"""Anthropic's batch API: `/v1/messages/batches`, with the requests in the body and the results as JSON Lines."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from merilo.judging.json_types import as_list, as_object
from merilo.providers.batch_api import (
    MAX_RESULT_BYTES,
    NOT_RUN,
    LineResult,
    Uncertain,
    joined,
    object_in,
    objects_in,
)
from merilo.providers.bodies import json_bytes, json_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from merilo.judging.json_types import Json
    from merilo.providers.batch_api import BatchLine, Intent
    from merilo.providers.chat import ChatConnection

_ROUTE: Final = "/v1/messages/batches"
_OK: Final = 200
_PAGE: Final = 100
_CLOCKS_S: Final = 600.0
"""How far the server's clock may be behind ours."""
_STATUS: Final = {
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
_SERVER_ERROR: Final = 500


class AnthropicBatches:
    """The batch API at one endpoint."""

    max_lines = 10_000
    max_bytes = 64 * 1024 * 1024

    def __init__(self, connection: ChatConnection) -> None:
        self._connection = connection
        self._wire = connection.wire

    async def submit(self, mark: str, lines: Sequence[BatchLine]) -> str:
        """See `BatchApi`. A batch has no name here; the ids of its lines start with the mark."""
        del mark
        requests = (b'{"custom_id": %s, "params": %s}' % (json_bytes(json_text(line.id)), line.body) for line in lines)
        body = b'{"requests": [%s]}' % b", ".join(requests)
        return str(object_in(self._connection, await self._wire.post(_ROUTE, body)).get("id"))

    async def find(self, intent: Intent) -> str | None:
        """See `BatchApi`. Only the results of a batch show the ids of its lines, so its end may have to come first."""
        waits = False
        async for batch in self._recent(intent):
            name = str(batch.get("id"))
            if name in intent.known or _lines(batch) != intent.lines:
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
        answer = await self._wire.get(f"{_ROUTE}/{quote(batch, safe='')}")
        return object_in(self._connection, answer).get("processing_status") == "ended"

    async def results(self, batch: str, ids: Sequence[str]) -> list[LineResult]:
        """See `BatchApi`."""
        del ids
        answer = await self._wire.get(f"{_ROUTE}/{quote(batch, safe='')}/results", largest=MAX_RESULT_BYTES)
        if answer.status != _OK and (error := self._connection.error_in(answer)) is not None:
            raise error
        return [_result(line) for line in objects_in(answer.text, what=f"The results of {batch}")]

    async def _recent(self, intent: Intent) -> AsyncIterator[Json]:
        """Yield the batches created since the intent, newest first."""
        after = ""
        while True:
            page = object_in(self._connection, await self._wire.get(f"{_ROUTE}?limit={_PAGE}{after}"))
            batches = [each for item in as_list(page.get("data")) or () if (each := as_object(item)) is not None]
            for batch in batches:
                if _created(batch) < intent.created - _CLOCKS_S:
                    return
                yield batch
            if not batches or not page.get("has_more"):
                return
            after = f"&after_id={quote(str(batches[-1].get('id')), safe='')}"


def _created(batch: Json) -> float:
    try:
        return datetime.fromisoformat(str(batch.get("created_at"))).timestamp()
    except ValueError:
        return 0.0


def _lines(batch: Json) -> int:
    counts = as_object(batch.get("request_counts")) or {}
    return sum(each for each in counts.values() if isinstance(each, int))


def _result(line: Json) -> LineResult:
    name, result = str(line.get("custom_id")), as_object(line.get("result")) or {}
    kind = result.get("type")
    if kind == "succeeded":
        return LineResult(name, _OK, joined(as_object(result.get("message")) or {}))
    if kind != "errored":
        return LineResult(name, NOT_RUN, "")
    whole = as_object(result.get("error")) or {}
    inner = as_object(whole.get("error")) or whole
    return LineResult(name, _STATUS.get(str(inner.get("type")), _SERVER_ERROR), joined({"error": inner}))
