"""Request bodies for chat completions, and their adaptation to rejected parameters.

Structured output is requested by JSON Schema, then by JSON mode, then by the prompt alone. Each rejection switches the
connection to the next way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from merilo.errors import UsageError
from merilo.providers.adaptations import ADAPTABLE, DROPPED, REFUSES, Adaptations, names
from merilo.providers.base import REPLY_LIMITS, ReplyPath
from merilo.providers.bodies import PLACE, BodyTemplates, json_bytes, json_text, schema_in_words
from merilo.providers.problems import ABOUT_SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.providers.base import Message, Request
    from merilo.providers.problems import EndpointProblem

FOLDED = "folded into the user message"
_PATHS = (ReplyPath.JSON_SCHEMA, ReplyPath.JSON_MODE, ReplyPath.PROMPTED)
_MAY_BE_DROPPED = ("temperature", "seed", "n")
_SYSTEM = "system"

_ABOUT_FORMAT = re.compile(
    r"response_?format|json_schema|json_object|json mode|structured output|guided|grammar", re.IGNORECASE
)
_ABOUT_SYSTEM = re.compile(
    r"system (?:role|message|prompt)s?\b.{0,40}\bnot\b|role.{0,20}\bsystem\b.{0,40}\bnot\b", re.IGNORECASE
)


class OpenAIBodies:
    """Creates the request bodies of one connection; `done` maps each rejected parameter to its adaptation."""

    def __init__(self, model: str, extra: Mapping[str, object], *, hosted: bool, known: Mapping[str, str]) -> None:
        self._model = model
        self._extra = extra
        self._limit = REPLY_LIMITS[0] if hosted else REPLY_LIMITS[1]
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
        first, *rest = request.messages
        if first.author != _SYSTEM or not rest or self.done.get(_SYSTEM) == FOLDED:
            return json_bytes(json_text(self._fields(request, self._messages(request))))
        key = (first.text, request.schema_name, request.max_tokens, request.temperature, request.seed, request.samples)
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
        learnt = self._learn(problem, f"{problem.parameter} {problem.message}")
        if learnt:
            self._frames.forget()
        return learnt

    def advise_ollama(self) -> None:
        """Tell the user once that the server is Ollama, which this protocol cannot keep from truncating prompts."""
        sentence = f"this server is Ollama, which truncates long prompts without an error; use ollama:{self._model}"
        self._adaptations.note("server", "ollama", sentence)

    def _learn(self, problem: EndpointProblem, text: str) -> bool:
        if ABOUT_SIZE.search(text) and not REFUSES.search(text):
            return False
        if _ABOUT_FORMAT.search(text) and (problem.status in ADAPTABLE or problem.status in {500, 501}):
            return self._next_path(problem)
        if problem.status not in ADAPTABLE:
            return _ABOUT_SYSTEM.search(text) is not None and problem.status == 500 and self._fold(problem)
        if _ABOUT_SYSTEM.search(text):
            return self._fold(problem)
        if not REFUSES.search(text) and problem.code not in {"unsupported_parameter", "unsupported_value"}:
            return False
        if problem.parameter in REPLY_LIMITS or (not problem.parameter and names(self._limit_name(), text)):
            return self._next_limit(problem)
        for name in _MAY_BE_DROPPED:
            if problem.parameter == name or (not problem.parameter and names(name, text)):
                return self._adaptations.note(name, DROPPED, f"{name} is no longer sent", problem=problem)
        return False

    def _next_path(self, problem: EndpointProblem) -> bool:
        position = _PATHS.index(self._path) + 1
        if position == len(_PATHS):
            return False
        self._path = _PATHS[position]
        how = "in JSON mode" if self._path is ReplyPath.JSON_MODE else "by the prompt alone"
        sentence = f"JSON is now requested {how}"
        return self._adaptations.note("response_format", self._path.value, sentence, problem=problem)

    def _next_limit(self, problem: EndpointProblem) -> bool:
        now = self.done.get("max_tokens")
        if now == DROPPED:
            return False
        other = REPLY_LIMITS[1 - REPLY_LIMITS.index(self._limit)]
        what = DROPPED if now == other else other
        sentence = "replies have no length limit" if what == DROPPED else f"the length limit is sent as {other}"
        return self._adaptations.note("max_tokens", what, sentence, problem=problem)

    def _fold(self, problem: EndpointProblem) -> bool:
        sentence = "the system message is sent at the start of the user message"
        return self._adaptations.note(_SYSTEM, FOLDED, sentence, problem=problem)

    def _fields(self, request: Request, messages: Sequence[object]) -> dict[str, object]:
        body: dict[str, object] = {"model": self._model, "messages": messages}
        if request.schema is not None and (form := self._response_format(request)) is not None:
            body["response_format"] = form
        wanted = {
            "temperature": request.temperature,
            "seed": request.seed,
            "n": request.samples if request.samples > 1 else None,
            self._limit_name(): request.max_tokens,
        }
        body.update({name: value for name, value in wanted.items() if value is not None and name})
        for name in _MAY_BE_DROPPED:
            if self.done.get(name) == DROPPED:
                body.pop(name, None)
        body.update(self._extra)
        return body

    def _limit_name(self) -> str:
        name = self.done.get("max_tokens", self._limit)
        return "" if name == DROPPED else name

    def _response_format(self, request: Request) -> Mapping[str, object] | None:
        if self._path is ReplyPath.JSON_SCHEMA:
            form = {"name": request.schema_name, "strict": True, "schema": request.schema}
            return {"type": "json_schema", "json_schema": form}
        return {"type": "json_object"} if self._path is ReplyPath.JSON_MODE else None

    def _messages(self, request: Request) -> list[dict[str, str]]:
        messages = [(message.author, message.text) for message in request.messages]
        if request.schema is not None and self._path is not ReplyPath.JSON_SCHEMA:
            author, text = messages[0]
            messages[0] = (author, f"{text}\n\n{schema_in_words(request)}")
        if self.done.get(_SYSTEM) == FOLDED and len(messages) > 1 and messages[0][0] == _SYSTEM:
            (_, system), (author, text), *rest = messages
            messages = [(author, f"{system}\n\n{text}"), *rest]
        return [{"role": author, "content": text} for author, text in messages]


def _message_json(message: Message) -> str:
    return f'{{"role": {json_text(message.author)}, "content": {json_text(message.text)}}}'


def _known_path(known: Mapping[str, str]) -> ReplyPath:
    path = known.get("response_format", ReplyPath.JSON_SCHEMA.value)
    if path not in _PATHS:
        raise UsageError(f"The known adaptation of response_format must be one of {', '.join(_PATHS)}, got {path!r}.")
    return ReplyPath(path)
