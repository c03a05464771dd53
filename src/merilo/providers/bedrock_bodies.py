"""Request bodies for Amazon Bedrock's Converse API, and their adaptation to rejected parameters.

Structured output is requested by `outputConfig.textFormat` and, if that is rejected, by the prompt alone: support
differs from model to model.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError
from merilo.providers.adaptations import DROPPED, REFUSES, Adaptations, names
from merilo.providers.base import ReplyPath
from merilo.providers.bodies import (
    PLACE,
    BodyTemplates,
    json_bytes,
    json_text,
    schema_in_words,
    split_system,
    with_extra,
)
from merilo.providers.openai_bodies import FOLDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.providers.base import Request
    from merilo.providers.problems import EndpointProblem

_OUTPUT: Final = "outputConfig"
_SYSTEM: Final = "system"
_REJECTED: Final = 400
_PATHS: Final = (ReplyPath.JSON_SCHEMA, ReplyPath.PROMPTED)
_ABOUT_FORMAT: Final = re.compile(
    r"output_?(?:config|format)|text_?format|json_?schema|structured output", re.IGNORECASE
)
_ABOUT_SYSTEM: Final = re.compile(r"\bsystem (?:message|prompt|instruction|role|field)", re.IGNORECASE)


class BedrockBodies:
    """Creates the request bodies of one connection; `done` maps each rejected parameter to its adaptation."""

    def __init__(self, model: str, extra: Mapping[str, object], *, known: Mapping[str, str]) -> None:
        self._extra = extra
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
            self._adaptations.note("seed", DROPPED, "the Converse API has no seed parameter; none is sent")
        system, messages = split_system(request)
        if not system or self.done.get(_SYSTEM) == FOLDED:
            first, *rest = messages
            opening = _message(first.author, self._prompt(request, system, first.text))
            turns = [opening, *(_message(message.author, message.text) for message in rest)]
            return json_bytes(json_text(self._fields(request, "", turns)))
        key = (system, request.schema_name, request.max_tokens, request.temperature)
        frame = self._frames.frame(
            key, request.schema, lambda: self._fields(request, self._prompt(request, system), [PLACE])
        )
        if not frame.after:  # the user's extra body replaces the messages
            return frame.before
        turns_json = ", ".join(json_text(_message(message.author, message.text)) for message in messages)
        return b"".join((frame.before, json_bytes(turns_json), frame.after))

    def learn(self, problem: EndpointProblem) -> bool:
        """Adapt to a rejected request; return True if the problem names a parameter that is now omitted or sent
        differently.
        """
        learnt = problem.status == _REJECTED and self._learn(problem)
        if learnt:
            self._frames.forget()
        return learnt

    def _learn(self, problem: EndpointProblem) -> bool:
        text = problem.message
        if _ABOUT_FORMAT.search(text) and self._path is ReplyPath.JSON_SCHEMA:
            self._path = ReplyPath.PROMPTED
            sentence = "JSON is now requested by the prompt alone"
            return self._adaptations.note(_OUTPUT, self._path.value, sentence, problem=problem)
        if not REFUSES.search(text):
            return False
        if names("temperature", text):
            return self._adaptations.note("temperature", DROPPED, "temperature is no longer sent", problem=problem)
        if _ABOUT_SYSTEM.search(text):
            sentence = "the system message is sent at the start of the user message"
            return self._adaptations.note(_SYSTEM, FOLDED, sentence, problem=problem)
        return False

    def _fields(self, request: Request, system: str, messages: Sequence[object]) -> dict[str, object]:
        body: dict[str, object] = {_SYSTEM: [{"text": system}]} if system else {}
        body["messages"] = messages
        config: dict[str, object] = {}
        if request.max_tokens is not None:
            config["maxTokens"] = request.max_tokens
        if request.temperature is not None and self.done.get("temperature") != DROPPED:
            config["temperature"] = request.temperature
        if config:
            body["inferenceConfig"] = config
        if request.schema is not None and self._path is ReplyPath.JSON_SCHEMA:
            schema = {"name": request.schema_name, "schema": json_text(request.schema)}  # the API wants a text
            body[_OUTPUT] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
        return with_extra(body, self._extra)

    def _prompt(self, request: Request, *texts: str) -> str:
        """Return the texts of one message, with the schema in words after the first one if it is not a parameter."""
        parts = [text for text in texts if text]
        if request.schema is not None and self._path is not ReplyPath.JSON_SCHEMA:
            parts.insert(1, schema_in_words(request))
        return "\n\n".join(parts)


def _message(author: str, text: str) -> dict[str, object]:
    return {"role": author, "content": [{"text": text}]}


def _known_path(known: Mapping[str, str]) -> ReplyPath:
    path = known.get(_OUTPUT, ReplyPath.JSON_SCHEMA.value)
    if path not in _PATHS:
        raise UsageError(f"The known adaptation of {_OUTPUT} must be one of {', '.join(_PATHS)}, got {path!r}.")
    return ReplyPath(path)
