"""Request bodies for Ollama's chat API, and their adaptation to rejected parameters.

Every body sets the context length and asks for an error instead of a truncated prompt: by default Ollama removes the
beginning of a prompt that exceeds 4,096 tokens, without an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.providers.adaptations import DROPPED, Adaptations, dropped, structured
from merilo.providers.base import ReplyPath
from merilo.providers.bodies import PLACE, Bodies, json_bytes, json_text, schema_in_words, with_extra

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.providers.base import Message, Request

_NUM_CTX: Final = "num_ctx"
_THINK: Final = "think"
_FORMAT: Final = "format"
_SYSTEM: Final = "system"


class ContextLimit(NamedTuple):
    """The context length that every request asks for: Ollama loads the model again if it changes."""

    tokens: int
    of_model: bool = False
    """True if the model itself reads no longer prompts."""

    @property
    def advice(self) -> str:
        """What to do if it is too small."""
        if self.of_model:
            return "That is the limit of the model: shorten the contexts or use another model."
        return f"To increase it, set OLLAMA_CONTEXT_LENGTH={2 * self.tokens} (in Python: num_ctx)."


class OllamaBodies(Bodies):
    """Creates the request bodies of one connection."""

    def __init__(
        self, model: str, extra: Mapping[str, object], *, num_ctx: int, keep_alive: str, known: Mapping[str, str]
    ) -> None:
        self._model = model
        self._extra = extra
        self._keep_alive = keep_alive
        thinking = dropped(_THINK, words=r"\bthink(?:ing)?\b")
        forms = (structured(_FORMAT, ReplyPath.JSON_MODE, ReplyPath.PROMPTED), replace(thinking, strict=thinking.words))
        super().__init__(Adaptations(model, known, forms, extra), _FORMAT)
        self.limit = ContextLimit(num_ctx)
        self._think: bool | str | None = False

    def fit(self, *, context_length: int | None, think: bool | str | None) -> None:
        """Adjust the bodies to the model before the first request.

        `context_length` is the model's own limit if it is known. `think` is sent as the parameter of that name, which
        is omitted if None.
        """
        if context_length is not None and context_length <= self.limit.tokens:
            self.limit = ContextLimit(context_length, of_model=True)
        self.done[_NUM_CTX] = str(self.limit.tokens)
        self._think = think
        self._frames.forget()

    def body_for(self, request: Request) -> bytes:
        """See `Bodies.body_for`."""
        first, *rest = request.messages
        if first.author != _SYSTEM or not rest:
            return json_bytes(json_text(self._fields(request, self._messages(request))))
        key = (first.text, request.schema_name, request.max_tokens, request.temperature, request.seed)
        frame = self._frames.frame(
            key, request.schema, lambda: self._fields(request, [self._messages(request)[0], PLACE])
        )
        if not frame.after:  # the user's extra body replaces the messages
            return frame.before
        return b"".join((frame.before, json_bytes(", ".join(map(_message_json, rest))), frame.after))

    def used(self, request: Request) -> dict[str, object]:
        """See `Bodies.used`."""
        found: dict[str, object] = {} if request.schema is None else {_FORMAT: (self.path, request.schema_name)}
        if self._sends_think():
            found[_THINK] = self._think
        return {name: value for name, value in found.items() if name not in self._extra}

    def _sends_think(self) -> bool:
        return self._think is not None and self.done.get(_THINK) != DROPPED

    def _fields(self, request: Request, messages: list[object]) -> dict[str, object]:
        body: dict[str, object] = {"model": self._model, "messages": messages, "stream": False}
        if request.schema is not None and self.path is not ReplyPath.PROMPTED:
            body[_FORMAT] = request.schema if self.path is ReplyPath.JSON_SCHEMA else "json"
        # Without `truncate` and `shift` the server removes the beginning of a long prompt, or of a long conversation.
        body |= {"truncate": False, "shift": False, "keep_alive": self._keep_alive}
        if self._sends_think():
            body[_THINK] = self._think
        wanted = {
            _NUM_CTX: self.limit.tokens,
            "num_predict": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
        }
        body["options"] = {name: value for name, value in wanted.items() if value is not None}
        return with_extra(body, self._extra)

    def _messages(self, request: Request) -> list[object]:
        messages = [(message.author, message.text) for message in request.messages]
        if request.schema is not None and self.path is not ReplyPath.JSON_SCHEMA:
            author, text = messages[0]
            messages[0] = (author, f"{text}\n\n{schema_in_words(request)}")
        return [{"role": author, "content": text} for author, text in messages]


def _message_json(message: Message) -> str:
    return f'{{"role": {json_text(message.author)}, "content": {json_text(message.text)}}}'
