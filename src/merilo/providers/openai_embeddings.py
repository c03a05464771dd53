"""Provider for OpenAI-compatible embeddings: sends texts and returns their vectors."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar

from merilo.errors import Permanent, Temporary
from merilo.judging.json_types import as_list, as_object
from merilo.judging.matrix import MatrixVerdict
from merilo.providers.base import Connection, Reply, ReplyPath, Request
from merilo.providers.bodies import json_bytes, json_text
from merilo.providers.openai import usage_of
from merilo.providers.problems import OK, error_of, excerpt, message_in, problem_in
from merilo.providers.secrets import resolved_body

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from merilo.judging.json_types import Json
    from merilo.providers.azure import AzureProvider
    from merilo.providers.base import Usage
    from merilo.providers.openai import OpenAIProvider
    from merilo.providers.wire import Wire

_LARGEST_REPLY_BYTES = 128 * 1024 * 1024  # some hundred vectors of some thousand numbers, written out


@dataclass(frozen=True, slots=True)
class EmbeddingsRequest(Request):
    """A request for one vector per text, without messages."""

    max_reply_characters: ClassVar[int | None] = None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenAIEmbeddingsProvider:
    """An embedding model behind an OpenAI-compatible endpoint; `endpoint` describes it as for a chat model.

    A reply is the JSON of a `MatrixVerdict`: one row per text, in the order of the texts.
    """

    endpoint: OpenAIProvider | AzureProvider

    @property
    def model(self) -> str:
        """The model's name."""
        return self.endpoint.model

    def fingerprint(self) -> Mapping[str, object]:
        """Return address, model and extra body; no key and no headers."""
        own = self.endpoint.fingerprint()
        return {**own, "provider": f"{own['provider']}-embeddings"}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[Connection, None]:
        """Open a connection; no parameters are adapted. Raises UsageError if a required key is missing."""
        del known
        async with self.endpoint.wire() as wire:
            yield _EmbeddingsConnection(self.endpoint, wire)

    def price_usd(self, usage: Usage) -> float | None:
        """Return the price as the endpoint's provider reports it."""
        return self.endpoint.price_usd(usage)


@dataclass(frozen=True)
class _EmbeddingsConnection(Connection):
    endpoint: OpenAIProvider | AzureProvider
    wire: Wire

    async def send(self, request: Request) -> Reply:
        if not isinstance(request, EmbeddingsRequest):
            raise Permanent(f"{self.endpoint.model} is an embedding model, but was sent chat messages.")
        began = perf_counter()
        body = {"model": self.endpoint.model, "input": list(request.inputs), **resolved_body(self.endpoint.body)}
        route = self.endpoint.route("/embeddings")
        answer = await self.wire.post(route, json_bytes(json_text(body)), largest=_LARGEST_REPLY_BYTES)
        received = message_in(answer.text)
        problem = problem_in(answer.status, received, answer.text)
        if problem is not None:
            raise error_of(problem.cleaned(self.wire.clean), answer.headers, self.endpoint.address)
        data = as_list(received.get("data"))
        if data is None:
            start = excerpt(self.wire.clean(answer.text))
            raise Temporary(f"{self.endpoint.address.url} sent no embeddings but: {start!r}.", status=OK)
        matrix = _matrix(data, len(request.inputs), self.endpoint.address.url)
        return Reply(
            texts=(matrix.to_json(),),
            usage=usage_of(as_object(received.get("usage")) or {}, output=0),
            path=ReplyPath.TEXT,
            model=self.wire.clean(str(received.get("model") or "")),
            seconds=perf_counter() - began,
        )


def _matrix(data: list[object], wanted: int, address: str) -> MatrixVerdict:
    """Return the vectors in order. Raises Permanent for vectors that are not valid."""
    fault, rows = _in_order([as_object(item) or {} for item in data], wanted)
    if fault:
        raise Permanent(f"{address} sent invalid embeddings: {fault}.", status=OK)
    return MatrixVerdict.of(rows)


def _in_order(items: list[Json], wanted: int) -> tuple[str, list[list[float]]]:
    """Return the problem, if any, and the vectors in the order of their `index`, or as received if no item has one."""
    if len(items) != wanted:
        return f"{len(items)} vectors for {wanted} texts", []
    places = [item.get("index", place) for place, item in enumerate(items)]
    if {place for place in places if isinstance(place, int)} != set(range(wanted)):
        return f"indices that are not 0 to {wanted - 1}", []
    by_place = dict(zip(places, items, strict=True))
    rows = [_numbers(by_place[place]) for place in range(wanted)]
    if not all(rows):
        return "not lists of finite numbers", []
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        return f"vectors of {' and '.join(map(str, lengths))} numbers", []
    return "", rows


def _numbers(item: Json) -> list[float]:
    """Return the vector of an item; empty if it has no valid one."""
    given = as_list(item.get("embedding")) or []
    found = [value for value in given if isinstance(value, int | float) and not isinstance(value, bool)]
    whole = len(found) == len(given)
    return [float(value) for value in found] if whole and all(map(_fits, found)) else []


def _fits(value: float) -> bool:
    return abs(value) < 3e38  # float32; false for NaN too
