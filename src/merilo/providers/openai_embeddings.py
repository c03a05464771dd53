"""Carries texts to any endpoint that speaks OpenAI's embeddings, and brings their vectors."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from merilo.errors import Permanent, Temporary
from merilo.judging.untyped import as_list, as_object, loaded
from merilo.judging.verdicts import MatrixVerdict
from merilo.providers.base import Reply, ReplyPath, Request
from merilo.providers.openai_replies import Problem, error_of, problem_in, usage_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from merilo.judging.untyped import Json
    from merilo.providers.base import Connection, Usage
    from merilo.providers.openai import OpenAIProvider
    from merilo.providers.openai_wire import Wire

_LARGEST_REPLY_BYTES = 128 * 1024 * 1024  # some hundred vectors of some thousand numbers, written out


@dataclass(frozen=True, slots=True)
class EmbeddingsRequest(Request):
    """A request for one vector for each text, instead of messages."""

    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenAIEmbeddingsProvider:
    """An embedding model behind an OpenAI-compatible endpoint, which `endpoint` describes as for a chat model.

    A reply is the JSON of a `MatrixVerdict`: one row for each text, in the order of the texts.
    """

    endpoint: OpenAIProvider

    @property
    def model(self) -> str:
        """The model."""
        return self.endpoint.model

    def fingerprint(self) -> Mapping[str, object]:
        """Address, model and extra body; no key and no headers."""
        return {**self.endpoint.fingerprint(), "provider": "openai-embeddings"}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[Connection, None]:
        """An open connection; nothing is adapted. Raises UsageError where a key is needed and missing."""
        del known
        async with self.endpoint.wire() as wire:
            yield _EmbeddingsConnection(self.endpoint, wire)

    def price_usd(self, usage: Usage) -> float | None:
        """Unknown."""
        return self.endpoint.price_usd(usage)


@dataclass(frozen=True)
class _EmbeddingsConnection:
    endpoint: OpenAIProvider
    wire: Wire

    async def send(self, request: Request) -> Reply:
        if not isinstance(request, EmbeddingsRequest):
            raise Permanent(f"{self.endpoint.model} makes vectors of texts, but was sent messages.")
        began = perf_counter()
        body = {"model": self.endpoint.model, "input": list(request.inputs), **self.endpoint.body}
        answer = await self.wire.post("/embeddings", body, largest=_LARGEST_REPLY_BYTES)
        problem = problem_in(answer.status, answer.text)
        if problem is not None:
            told = Problem(problem.status, self.wire.clean(problem.message), problem.code, problem.parameter)
            raise error_of(told, answer.headers, self.endpoint.base_url, self.endpoint.model)
        return _reply(answer.text, len(request.inputs), perf_counter() - began, self.wire.clean, self.endpoint.base_url)

    def adaptations(self) -> Mapping[str, str]:
        return {}

    def notices(self) -> tuple[str, ...]:
        return ()


def _reply(text: str, wanted: int, seconds: float, clean: Callable[[str], str], address: str) -> Reply:
    """The reply in a body. Raises Temporary for a body without vectors, Permanent for vectors that do not fit."""
    try:
        told = as_object(loaded(text)) or {}
    except ValueError:
        told = {}
    data = as_list(told.get("data"))
    if data is None:
        raise Temporary(f"{address} sent no embeddings but: {clean(text[:300])!r}.")
    fault, rows = _in_order([as_object(item) or {} for item in data], wanted)
    if fault:
        raise Permanent(f"{address} sent embeddings that cannot be used: {fault}.")
    matrix = MatrixVerdict.of(rows)
    return Reply(
        texts=(matrix.to_json(),),
        usage=usage_of(as_object(told.get("usage")) or {}, output=0),
        path=ReplyPath.TEXT,
        model=clean(str(told.get("model") or "")),
        seconds=seconds,
    )


def _in_order(items: list[Json], wanted: int) -> tuple[str, list[list[float]]]:
    """What is wrong, and the vectors in the order of their `index`; where no item has one, as they came."""
    if len(items) != wanted:
        return f"{len(items)} vectors for {wanted} texts", []
    places = [item.get("index", place) for place, item in enumerate(items)]
    if {place for place in places if isinstance(place, int)} != set(range(wanted)):
        return f"indices that are not 0 to {wanted - 1}", []
    by_place = dict(zip(places, items, strict=True))
    rows = [_numbers(by_place[place]) for place in range(wanted)]
    if not all(rows):
        return "something else than lists of finite numbers", []
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        return f"vectors of {' and '.join(map(str, lengths))} numbers", []
    return "", rows


def _numbers(item: Json) -> list[float]:
    """The vector of an item; empty where it holds none."""
    found = [value for value in as_list(item.get("embedding")) or () if isinstance(value, int | float)]
    whole = len(found) == len(as_list(item.get("embedding")) or ())
    return [float(value) for value in found] if whole and all(map(_fits, found)) else []


def _fits(value: float) -> bool:
    return abs(value) < 3e38  # float32; false for NaN too
