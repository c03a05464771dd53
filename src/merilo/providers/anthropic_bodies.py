"""Request bodies for Anthropic's Messages API, and their adaptation to rejected parameters.

Structured output is requested by `output_config.format` and, if that is rejected, by the prompt alone. The rubric is in
the system part and marked for the prompt cache, since thousands of requests begin with it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from merilo.providers.adaptations import DROPPED, LIMIT, Adaptations, dropped, limit, structured
from merilo.providers.base import ReplyPath
from merilo.providers.bodies import PLACE, Bodies, json_bytes, json_text, schema_in_words, split_system

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.providers.base import Message, Request

_STRUCTURED = "output_config"
_SHORTEST_SHARED = 2_000
_KEPT = {"type": "ephemeral"}
_KEPT_JSON = ', "cache_control": {"type": "ephemeral"}'


class Cached(StrEnum):
    """The part of a prompt that the provider's prompt cache stores."""

    NOTHING = "nothing"
    RUBRIC = "rubric"
    CONTEXTS = "contexts"
    """The rubric, and long contexts that several questions share. Writing to the cache costs more than not caching,
    so     it pays if many questions about the same contexts follow one another."""


class AnthropicBodies(Bodies):
    """Creates the request bodies of one connection."""

    def __init__(
        self, model: str, extra: Mapping[str, object], *, cached: Cached, max_tokens: int, known: Mapping[str, str]
    ) -> None:
        self._model = model
        self._extra = extra
        self._cached = cached
        self._max_tokens = max_tokens
        forms = (
            structured(_STRUCTURED, ReplyPath.PROMPTED),
            dropped("temperature"),
            dropped("cache_control"),
            limit(omitted=False),
        )
        super().__init__(Adaptations(model, known, forms, extra), _STRUCTURED)

    def body_for(self, request: Request) -> bytes:
        """See `Bodies.body_for`."""
        if request.seed is not None:
            self._adaptations.note("seed", DROPPED, "the Messages API has no seed parameter; none is sent")
        system, rest = split_system(request)
        key = (system, request.schema_name, self._adaptations.reply_limit(request), request.temperature)
        frame = self._frames.frame(key, request.schema, lambda: self._fields(request, system))
        if not frame.after:  # the user's extra body replaces the messages
            return frame.before
        return b"".join((frame.before, json_bytes(", ".join(map(self._message, rest))), frame.after))

    def used(self, request: Request) -> dict[str, object]:
        """See `Bodies.used`."""
        found: dict[str, object] = {LIMIT: None} if request.max_tokens is not None else {}
        if request.temperature is not None and self.done.get("temperature") != DROPPED:
            found["temperature"] = request.temperature
        if self._keeps(Cached.RUBRIC):
            found["cache_control"] = None
        if request.schema is not None:
            found[_STRUCTURED] = (self.path, request.schema_name)
        return {name: value for name, value in found.items() if name not in self._extra}

    def _fields(self, request: Request, system: str) -> dict[str, object]:
        words = request.schema is not None and self.path is not ReplyPath.JSON_SCHEMA
        parts = [system] if system else []
        limit_tokens = self._adaptations.reply_limit(request)
        if words:
            parts.append(schema_in_words(request))
        body: dict[str, object] = {"model": self._model, "max_tokens": limit_tokens or self._max_tokens}
        if parts:
            body["system"] = [{"type": "text", "text": "\n\n".join(parts), **self._marked()}]
        body["messages"] = [PLACE]
        if request.temperature is not None and self.done.get("temperature") != DROPPED:
            body["temperature"] = request.temperature
        if request.schema is not None and not words:
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        body.update(self._extra)
        return body

    def _marked(self) -> dict[str, object]:
        return {"cache_control": _KEPT} if self._keeps(Cached.RUBRIC) else {}

    def _keeps(self, what: Cached) -> bool:
        wanted = self._cached is what or self._cached is Cached.CONTEXTS
        return wanted and self.done.get("cache_control") != DROPPED

    def _message(self, message: Message) -> str:
        author, text, shared = json_text(message.author), message.text, message.shared
        if shared < _SHORTEST_SHARED or shared >= len(text) or not self._keeps(Cached.CONTEXTS):
            return f'{{"role": {author}, "content": {json_text(text)}}}'
        first = f'{{"type": "text", "text": {json_text(text[:shared])}{_KEPT_JSON}}}'
        second = f'{{"type": "text", "text": {json_text(text[shared:])}}}'
        return f'{{"role": {author}, "content": [{first}, {second}]}}'
