"""Request bodies for Ollama's chat API, and their adaptation to rejected parameters.

Every body sets the context length and asks for an error instead of a truncated prompt: by default Ollama removes the
beginning of a prompt that exceeds 4,096 tokens, without an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.errors import UsageError
from merilo.providers.adaptations import ADAPTABLE, DROPPED, REFUSES, Adaptations
from merilo.providers.base import ReplyPath
from merilo.providers.bodies import PLACE, BodyTemplates, json_bytes, json_text, schema_in_words, with_extra
from merilo.providers.problems import ABOUT_SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.providers.base import Message, Request
    from merilo.providers.problems import EndpointProblem

_NUM_CTX: Final = "num_ctx"
_THINK: Final = "think"
_FORMAT: Final = "format"
_SYSTEM: Final = "system"
_PATHS: Final = (ReplyPath.JSON_SCHEMA, ReplyPath.JSON_MODE, ReplyPath.PROMPTED)
_ABOUT_FORMAT: Final = re.compile(r"\bformat\b|json.?schema|structured output|grammar", re.IGNORECASE)
_ABOUT_THINKING: Final = re.compile(r"\bthink(?:ing)?\b", re.IGNORECASE)
_FAILED: Final = frozenset({500, 501})
"""Statuses with which Ollama also reports a schema that it cannot compile."""


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


class OllamaBodies:
    """Creates the request bodies of one connection; `done` maps each rejected parameter to its adaptation."""

    def __init__(
        self, model: str, extra: Mapping[str, object], *, num_ctx: int, keep_alive: str, known: Mapping[str, str]
    ) -> None:
        self._model = model
        self._extra = extra
        self._keep_alive = keep_alive
        self._adaptations = Adaptations(model, known)
        self.done = self._adaptations.done
        self.notices = self._adaptations.notices
        self.limit = ContextLimit(num_ctx)
        self._path = _known_path(known)
        self._think: bool | str | None = False
        self._frames = BodyTemplates()

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

    def path_for(self, request: Request) -> ReplyPath:
        """Return how structured output is requested at present; TEXT for free text."""
        return ReplyPath.TEXT if request.schema is None else self._path

    def body_for(self, request: Request) -> bytes:
        """Return the JSON body of one request, without the parameters rejected so far."""
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

    def learn(self, problem: EndpointProblem) -> bool:
        """Adapt to a rejected request; return True if the problem names a parameter that is now omitted or sent
        differently.
        """
        learnt = self._learn(problem)
        if learnt:
            self._frames.forget()
        return learnt

    def _learn(self, problem: EndpointProblem) -> bool:
        text = problem.message
        if ABOUT_SIZE.search(text) and not REFUSES.search(text):
            return False
        if _ABOUT_FORMAT.search(text) and (problem.status in ADAPTABLE or problem.status in _FAILED):
            return self._next_path(problem)
        if problem.status in ADAPTABLE and _ABOUT_THINKING.search(text) and self._sends_think():
            return self._adaptations.note(_THINK, DROPPED, f"{_THINK} is no longer sent", problem=problem)
        return False

    def _next_path(self, problem: EndpointProblem) -> bool:
        position = _PATHS.index(self._path) + 1
        if position == len(_PATHS):
            return False
        self._path = _PATHS[position]
        how = "in JSON mode" if self._path is ReplyPath.JSON_MODE else "by the prompt alone"
        return self._adaptations.note(_FORMAT, self._path.value, f"JSON is now requested {how}", problem=problem)

    def _sends_think(self) -> bool:
        return self._think is not None and self.done.get(_THINK) != DROPPED

    def _fields(self, request: Request, messages: list[object]) -> dict[str, object]:
        body: dict[str, object] = {"model": self._model, "messages": messages, "stream": False}
        if request.schema is not None and self._path is not ReplyPath.PROMPTED:
            body[_FORMAT] = request.schema if self._path is ReplyPath.JSON_SCHEMA else "json"
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
        if request.schema is not None and self._path is not ReplyPath.JSON_SCHEMA:
            author, text = messages[0]
            messages[0] = (author, f"{text}\n\n{schema_in_words(request)}")
        return [{"role": author, "content": text} for author, text in messages]


def _message_json(message: Message) -> str:
    return f'{{"role": {json_text(message.author)}, "content": {json_text(message.text)}}}'


def _known_path(known: Mapping[str, str]) -> ReplyPath:
    path = known.get(_FORMAT, ReplyPath.JSON_SCHEMA.value)
    if path not in _PATHS:
        raise UsageError(f"The known adaptation of {_FORMAT} must be one of {', '.join(_PATHS)}, got {path!r}.")
    return ReplyPath(path)
