"""Anthropic's Messages API: provider, request bodies and replies.

Structured output is requested by `output_config.format` and, if that is rejected, by the prompt alone. The rubric is in
the system part and marked for the prompt cache, since thousands of requests begin with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.json_types import Json, as_list, as_object
from merilo.providers.base import Finish, Message, Reply, ReplyPath, Request, Usage
from merilo.providers.bodies import DROPPED, LIMIT, Bodies, dropped, json_text, limit, structured
from merilo.providers.endpoint import ChatConnection, Endpoint, Service, Wire, url_in
from merilo.providers.problems import Received, count, text_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


ANTHROPIC_URL = "https://api.anthropic.com"
_CACHE_CONTROL: Final = "cache_control"
_SHORTEST_SHARED: Final = 2_000
_KEPT: Final = {"type": "ephemeral"}
_FINISH = {"max_tokens": Finish.LENGTH, "model_context_window_exceeded": Finish.LENGTH, "refusal": Finish.REFUSED}
"""All other reasons (end_turn, stop_sequence, tool_use, pause_turn) leave a text that can be parsed."""


class Cached(StrEnum):
    """The part of a prompt that the provider's prompt cache stores."""

    NOTHING = "nothing"
    RUBRIC = "rubric"
    CONTEXTS = "contexts"
    """The rubric, and long contexts that several questions share. Writing to the cache costs more than not caching,
    so it pays if many questions about the same contexts follow one another."""


@dataclass(frozen=True)
class AnthropicProvider(Endpoint):
    """A model behind Anthropic's Messages API or a compatible endpoint.

    `base_url` defaults to ANTHROPIC_BASE_URL at construction, otherwise to Anthropic's own address. `cached` selects
    what the provider's prompt cache stores: by default the rubric. It changes no reply, so fingerprints omit it.
    `max_tokens` limits a reply if its request has no limit, because the API requires one. Keys, headers and body are as
    for `OpenAIProvider`. Raises UsageError for an invalid address.
    """

    service = Service(
        "anthropic",
        model="anthropic:claude-sonnet-4-5",
        url=ANTHROPIC_URL,
        endings=("/messages", "/v1"),
        hosts=("api.anthropic.com",),
        key_header="x-api-key",
        key_prefix="",
        check="the base URL (without /v1) and the model name {0.model!r}",
        headers=(("anthropic-version", "2023-06-01"),),
    )

    base_url: str = field(default_factory=url_in("ANTHROPIC_BASE_URL", ANTHROPIC_URL), repr=False)
    api_key_env: str = "ANTHROPIC_API_KEY"
    cached: Cached = field(default=Cached.RUBRIC, compare=False)
    max_tokens: int = 4_096

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_tokens < 1:
            raise UsageError(f"max_tokens must be at least 1, got {self.max_tokens}.")

    def open(self, wire: Wire, body: Mapping[str, object], known: Mapping[str, str]) -> ChatConnection:
        """See `Endpoint`."""
        bodies = AnthropicBodies(self.model, body, known, cached=self.cached, max_tokens=self.max_tokens)
        return ChatConnection(wire, "/v1/messages", bodies, self.address, message_of)


class AnthropicBodies(Bodies):
    """Creates the request bodies of one connection."""

    STRUCTURED = "output_config"
    PARAMETERS: ClassVar = {LIMIT: "max_tokens", "temperature": "temperature"}
    NO_SEED = "the Messages API has no seed parameter; none is sent"

    def __init__(
        self, model: str, extra: Mapping[str, object], known: Mapping[str, str], *, cached: Cached, max_tokens: int
    ) -> None:
        self._cached = cached
        self._max_tokens = max_tokens
        forms = (
            structured(self.STRUCTURED, ReplyPath.PROMPTED),
            dropped("temperature"),
            dropped(_CACHE_CONTROL),
            limit(omitted=False),
        )
        super().__init__(model, extra, known, forms)

    def _opens(self, system: str | None) -> bool:
        del system
        return False  # a schema in words is a system part even if there is no rubric

    def _parts(self) -> dict[str, object]:
        return {_CACHE_CONTROL: None} if self._keeps(Cached.RUBRIC) else {}

    def _fields(self, request: Request, system: str | None, messages: Sequence[object]) -> dict[str, object]:
        parameters = {"max_tokens": self._max_tokens, **self._parameters(request)}
        body: dict[str, object] = {"model": self.model, "max_tokens": parameters.pop("max_tokens")}
        if system:
            marked = {_CACHE_CONTROL: _KEPT} if self._keeps(Cached.RUBRIC) else {}
            body["system"] = [{"type": "text", "text": system, **marked}]
        body |= {"messages": messages, **parameters}
        if request.schema is not None and self.path is ReplyPath.JSON_SCHEMA:
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        return {**body, **self._extra}

    def _keeps(self, what: Cached) -> bool:
        wanted = self._cached is what or self._cached is Cached.CONTEXTS
        return wanted and self.done.get(_CACHE_CONTROL) != DROPPED

    def _message(self, message: Message) -> str:
        text, shared = message.text, message.shared
        if shared < _SHORTEST_SHARED or shared >= len(text) or not self._keeps(Cached.CONTEXTS):
            return super()._message(message)
        parts = [
            {"type": "text", "text": text[:shared], _CACHE_CONTROL: _KEPT},
            {"type": "text", "text": text[shared:]},
        ]
        return json_text({"role": message.author, "content": parts})


def message_of(received: Received) -> Reply:
    """Return the reply in a body. Raises Temporary for a body that is not a message."""
    body = received.body
    if (listed := as_list(body.get("content"))) is None:
        raise received.without("message")
    blocks = [as_object(block) or {} for block in listed]
    finish = _FINISH.get(str(body.get("stop_reason")), Finish.STOP)
    answer = "".join(text_in(block, "text") for block in blocks if block.get("type") == "text")
    if finish is Finish.REFUSED and not answer:
        answer = str((as_object(body.get("stop_details")) or {}).get("explanation") or "")
    thinking = "".join(text_in(block, "thinking") for block in blocks)
    return received.reply(answer, finish, _usage(as_object(body.get("usage")) or {}), thinking)


def _usage(usage: Json) -> Usage:
    """Return the tokens of a message. The API counts cached and written tokens separately from the other input."""
    fresh = count(usage.get("input_tokens"))
    cached, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
        output_tokens=count(usage.get("output_tokens")),
        cached_tokens=cached,
        written_tokens=written,
    )


PROVIDER: Final = AnthropicProvider
