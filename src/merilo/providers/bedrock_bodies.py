"""Request bodies for Amazon Bedrock's Converse API, and their adaptation to rejected parameters.

Structured output is requested by `outputConfig.textFormat` and, if that is rejected, by the prompt alone: support
differs from model to model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.providers.adaptations import DROPPED, FOLDED, LIMIT, Adaptations, dropped, folded, limit, structured
from merilo.providers.base import ReplyPath
from merilo.providers.bodies import (
    PLACE,
    Bodies,
    json_bytes,
    json_text,
    schema_in_words,
    split_system,
    with_extra,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.providers.base import Request

_OUTPUT: Final = "outputConfig"
_SYSTEM: Final = "system"


class BedrockBodies(Bodies):
    """Creates the request bodies of one connection."""

    def __init__(self, model: str, extra: Mapping[str, object], *, known: Mapping[str, str]) -> None:
        self._extra = extra
        forms = (folded(), structured(_OUTPUT, ReplyPath.PROMPTED), dropped("temperature"), limit())
        super().__init__(Adaptations(model, known, forms, extra), _OUTPUT)

    def body_for(self, request: Request) -> bytes:
        """See `Bodies.body_for`."""
        if request.seed is not None:
            self._adaptations.note("seed", DROPPED, "the Converse API has no seed parameter; none is sent")
        system, messages = split_system(request)
        if not system or self.done.get(_SYSTEM) == FOLDED:
            first, *rest = messages
            opening = _message(first.author, self._prompt(request, system, first.text))
            turns = [opening, *(_message(message.author, message.text) for message in rest)]
            return json_bytes(json_text(self._fields(request, "", turns)))
        key = (system, request.schema_name, self._adaptations.reply_limit(request), request.temperature)
        frame = self._frames.frame(
            key, request.schema, lambda: self._fields(request, self._prompt(request, system), [PLACE])
        )
        if not frame.after:  # the user's extra body replaces the messages
            return frame.before
        turns_json = ", ".join(json_text(_message(message.author, message.text)) for message in messages)
        return b"".join((frame.before, json_bytes(turns_json), frame.after))

    def used(self, request: Request) -> dict[str, object]:
        """See `Bodies.used`."""
        found: dict[str, object] = {**self._sampling(request)}
        if "maxTokens" in found:
            found[LIMIT] = None
        if request.schema is not None:
            found[_OUTPUT] = (self.path, request.schema_name)
        if split_system(request)[0]:
            found[_SYSTEM] = self.done.get(_SYSTEM)
        return {name: value for name, value in found.items() if name not in self._extra}

    def _sampling(self, request: Request) -> dict[str, object]:
        """Return the parameters that are sent."""
        wanted = {"maxTokens": self._adaptations.reply_limit(request), "temperature": request.temperature}
        return {name: value for name, value in wanted.items() if value is not None and self.done.get(name) != DROPPED}

    def _fields(self, request: Request, system: str, messages: Sequence[object]) -> dict[str, object]:
        body: dict[str, object] = {_SYSTEM: [{"text": system}]} if system else {}
        body["messages"] = messages
        if config := self._sampling(request):
            body["inferenceConfig"] = config
        if request.schema is not None and self.path is ReplyPath.JSON_SCHEMA:
            # the API wants a text; each new schema is compiled for minutes, so questions share one
            schema = {"name": request.schema_name, "schema": json_text(request.general_schema or request.schema)}
            body[_OUTPUT] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
        return with_extra(body, self._extra)

    def _prompt(self, request: Request, *texts: str) -> str:
        """Return the texts of one message, with the schema in words after the first one if it is not a parameter."""
        parts = [text for text in texts if text]
        if request.schema is not None and self.path is not ReplyPath.JSON_SCHEMA:
            parts.insert(1, schema_in_words(request))
        return "\n\n".join(parts)


def _message(author: str, text: str) -> dict[str, object]:
    return {"role": author, "content": [{"text": text}]}
