"""Request bodies for Anthropic's Messages API, and their adaptation to rejected parameters.

Structured output is requested by `output_config.format` and, if that is rejected, by the prompt alone. The rubric is in
the system part and marked for the prompt cache, since thousands of requests begin with it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from merilo.errors import UsageError
from merilo.providers.adaptations import ADAPTABLE, DROPPED, REFUSES, Adaptations, names
from merilo.providers.base import ReplyPath
from merilo.providers.bodies import PLACE, BodyTemplates, json_bytes, json_text, schema_in_words, split_system
from merilo.providers.problems import ABOUT_SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.providers.base import Message, Request
    from merilo.providers.problems import EndpointProblem

_PATHS = (ReplyPath.JSON_SCHEMA, ReplyPath.PROMPTED)
_ABOUT_FORMAT = re.compile(r"output_?(?:config|format)|json_schema|structured output", re.IGNORECASE)
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


class AnthropicBodies:
    """Creates the request bodies of one connection; `done` maps each rejected parameter to its adaptation."""

    def __init__(
        self, model: str, extra: Mapping[str, object], *, cached: Cached, max_tokens: int, known: Mapping[str, str]
    ) -> None:
        self._model = model
        self._extra = extra
        self._cached = cached
        self._max_tokens = max_tokens
        self._adaptations = Adaptations(model, known)
        self.done = self._adaptations.done
        self.notices = self._adaptations.notices
        self._path = _known_path(known)
        self._frames = BodyTemplates()

    def path_for(self, request: Request) -> ReplyPath:
        """Return how structured output is requested at present; TEXT for free text."""
        return ReplyPath.TEXT if request.schema is None else self._path

    def body_for(self, request: Request) -> bytes:
        """Return the JSON body of one request, without the parameters rejected so far."""
        if request.seed is not None:
            self._adaptations.note("seed", DROPPED, "the Messages API has no seed parameter; none is sent")
        system, rest = split_system(request)
        key = (system, request.schema_name, request.max_tokens, request.temperature)
        frame = self._frames.frame(key, request.schema, lambda: self._fields(request, system))
        if not frame.after:  # the user's extra body replaces the messages
            return frame.before
        return b"".join((frame.before, json_bytes(", ".join(map(self._message, rest))), frame.after))

    def learn(self, problem: EndpointProblem) -> bool:
        """Adapt to a rejected request; return True if the problem names a parameter that is now omitted or sent
        differently.
        """
        learnt = problem.status in ADAPTABLE and self._learn(problem, f"{problem.parameter} {problem.message}")
        if learnt:
            self._frames.forget()
        return learnt

    def _learn(self, problem: EndpointProblem, text: str) -> bool:
        if ABOUT_SIZE.search(text) and not REFUSES.search(text):
            return False
        if _ABOUT_FORMAT.search(text) and self._path is ReplyPath.JSON_SCHEMA:
            self._path = ReplyPath.PROMPTED
            sentence = "JSON is now requested by the prompt alone"
            return self._adaptations.note("output_config", self._path.value, sentence, problem=problem)
        if not REFUSES.search(text):
            return False
        for name in ("temperature", "cache_control"):
            if names(name, text):
                return self._adaptations.note(name, DROPPED, f"{name} is no longer sent", problem=problem)
        return False

    def _fields(self, request: Request, system: str) -> dict[str, object]:
        words = request.schema is not None and self._path is not ReplyPath.JSON_SCHEMA
        parts = [system] if system else []
        if words:
            parts.append(schema_in_words(request))
        body: dict[str, object] = {"model": self._model, "max_tokens": request.max_tokens or self._max_tokens}
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


def _known_path(known: Mapping[str, str]) -> ReplyPath:
    path = known.get("output_config", ReplyPath.JSON_SCHEMA.value)
    if path not in _PATHS:
        raise UsageError(f"The known adaptation of output_config must be one of {', '.join(_PATHS)}, got {path!r}.")
    return ReplyPath(path)
