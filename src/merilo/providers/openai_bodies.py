"""Request bodies for chat completions, and their adaptation to rejected parameters.

Structured output is requested by JSON Schema, then by JSON mode, then by the prompt alone. Each rejection switches the
connection to the next way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.providers.adaptations import (
    DROPPED,
    FOLDED,
    LIMIT,
    Adaptations,
    dropped,
    folded,
    limit,
    structured,
    temperature,
)
from merilo.providers.base import REPLY_LIMITS, ReplyPath
from merilo.providers.bodies import PLACE, Bodies, json_bytes, json_text, schema_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.providers.base import Message, Request

_STRUCTURED = "response_format"
_SYSTEM = "system"


class OpenAIBodies(Bodies):
    """Creates the request bodies of one connection."""

    def __init__(self, model: str, extra: Mapping[str, object], *, hosted: bool, known: Mapping[str, str]) -> None:
        self._model = model
        self._extra = extra
        self._limit, other = REPLY_LIMITS if hosted else REPLY_LIMITS[::-1]
        forms = (
            folded(),
            structured(_STRUCTURED, ReplyPath.JSON_MODE, ReplyPath.PROMPTED),
            temperature(),
            limit(other),
            dropped("seed"),
            dropped("n", words=r"^n$|[\"'`]n[\"'`]|\bn\s*[=>]|\bn must be"),
        )
        super().__init__(Adaptations(model, known, forms, extra), _STRUCTURED)

    def body_for(self, request: Request) -> bytes:
        """See `Bodies.body_for`."""
        first, *rest = request.messages
        if first.author != _SYSTEM or not rest or self.done.get(_SYSTEM) == FOLDED:
            return json_bytes(json_text(self._fields(request, self._messages(request))))
        key = (first.text, request.schema_name, self._adaptations.reply_limit(request), *_sampling(request))
        frame = self._frames.frame(
            key, request.schema, lambda: self._fields(request, [self._messages(request)[0], PLACE])
        )
        if not frame.after:  # the user's extra body replaces the messages
            return frame.before
        return b"".join((frame.before, json_bytes(", ".join(map(_message_json, rest))), frame.after))

    def used(self, request: Request) -> dict[str, object]:
        """See `Bodies.used`."""
        found: dict[str, object] = {name: value for name, value in self._wanted(request).items() if value is not None}
        if LIMIT in found:
            found[LIMIT] = self.done.get(LIMIT)
        if len(request.messages) > 1 and request.messages[0].author == _SYSTEM:
            found[_SYSTEM] = self.done.get(_SYSTEM)
        if request.schema is not None:
            found[_STRUCTURED] = (self.path, request.schema_name)
        return {name: value for name, value in found.items() if name not in self._extra}

    def advise_ollama(self) -> None:
        """Tell the user once that the server is Ollama, which this protocol cannot keep from truncating prompts."""
        sentence = f"this server is Ollama, which truncates long prompts without an error; use ollama:{self._model}"
        self._adaptations.note("server", "ollama", sentence)

    def _wanted(self, request: Request) -> dict[str, float | None]:
        """Return the parameters in their present form, by the name of the part; None if one is not sent."""
        wanted = {
            "temperature": self._adaptations.temperature(request),
            "seed": request.seed,
            "n": request.samples if request.samples > 1 else None,
        }
        wanted = {name: None if self.done.get(name) == DROPPED else value for name, value in wanted.items()}
        return {**wanted, LIMIT: self._adaptations.reply_limit(request)}

    def _fields(self, request: Request, messages: Sequence[object]) -> dict[str, object]:
        body: dict[str, object] = {"model": self._model, "messages": messages}
        if request.schema is not None and (form := self._response_format(request)) is not None:
            body["response_format"] = form
        names = {LIMIT: self.done.get(LIMIT, self._limit)}
        wanted = self._wanted(request)
        body.update({names.get(name, name): value for name, value in wanted.items() if value is not None})
        body.update(self._extra)
        return body

    def _response_format(self, request: Request) -> Mapping[str, object] | None:
        if self.path is ReplyPath.JSON_SCHEMA:
            form = {"name": request.schema_name, "strict": True, "schema": request.schema}
            return {"type": "json_schema", "json_schema": form}
        return {"type": "json_object"} if self.path is ReplyPath.JSON_MODE else None

    def _messages(self, request: Request) -> list[dict[str, str]]:
        messages = [(message.author, message.text) for message in request.messages]
        if request.schema is not None and self.path is not ReplyPath.JSON_SCHEMA:
            author, text = messages[0]
            messages[0] = (author, f"{text}\n\n{schema_in_words(request)}")
        if self.done.get(_SYSTEM) == FOLDED and len(messages) > 1 and messages[0][0] == _SYSTEM:
            (_, system), (author, text), *rest = messages
            messages = [(author, f"{system}\n\n{text}"), *rest]
        return [{"role": author, "content": text} for author, text in messages]


def _message_json(message: Message) -> str:
    return f'{{"role": {json_text(message.author)}, "content": {json_text(message.text)}}}'


def _sampling(request: Request) -> tuple[float | int | None, ...]:
    return request.temperature, request.seed, request.samples
