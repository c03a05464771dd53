"""Request bodies for chat completions, and what to leave out once an endpoint has refused it.

Structured output is asked for by JSON Schema, then by JSON mode, then by words alone; each refusal takes
the next, once for the connection.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from merilo.errors import UsageError
from merilo.providers.base import ReplyPath

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.providers.base import Request
    from merilo.providers.openai_replies import Problem

DROPPED = "dropped"
FOLDED = "folded into the user message"
_PATHS = (ReplyPath.JSON_SCHEMA, ReplyPath.JSON_MODE, ReplyPath.PROMPTED)
_LIMITS = ("max_completion_tokens", "max_tokens")
_MAY_BE_DROPPED = ("temperature", "seed", "n")

_ADAPTABLE = frozenset({400, 404, 405, 422})
_ABOUT_FORMAT = re.compile(
    r"response_?format|json_schema|json_object|json mode|structured output|guided|grammar", re.IGNORECASE
)
_ABOUT_SYSTEM = re.compile(
    r"system (?:role|message|prompt)s?\b.{0,40}\bnot\b|role.{0,20}\bsystem\b.{0,40}\bnot\b", re.IGNORECASE
)
_REFUSES = re.compile(
    r"unsupported|not supported|n[o']t support|unknown|unrecogni[sz]ed|unexpected|not permitted"
    r"|not allowed|no longer|unavailable|not available|only the default|extra (?:inputs|fields)"
    r"|not implemented|deprecated|invalid (?:parameter|field|argument)|use '?max_",
    re.IGNORECASE,
)
_ABOUT_SIZE = re.compile(
    r"context length|maximum context|context window|too (?:large|long|many|high)|exceed", re.IGNORECASE
)


class Bodies:
    """Makes bodies for one connection; `done` maps each refused parameter to what was done about it."""

    def __init__(self, model: str, extra: Mapping[str, object], *, hosted: bool, known: Mapping[str, str]) -> None:
        self._model = model
        self._extra = extra
        self._limit = _LIMITS[0] if hosted else _LIMITS[1]
        self.done: dict[str, str] = dict(known)
        self.notices: list[str] = []
        self._path = _known_path(known)

    def path_for(self, request: Request) -> ReplyPath:
        """How structured output is asked for at this moment; TEXT for free text."""
        return ReplyPath.TEXT if request.schema is None else self._path

    def body_for(self, request: Request) -> dict[str, object]:
        """The JSON body of one request, without what was refused so far."""
        body: dict[str, object] = {"model": self._model, "messages": self._messages(request)}
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

    def learn(self, problem: Problem) -> bool:
        """True when the refusal names something that can be left out or written otherwise, and now is."""
        text = f"{problem.parameter} {problem.message}"
        if _ABOUT_SIZE.search(text) and not _REFUSES.search(text):
            return False
        if _ABOUT_FORMAT.search(text) and (problem.status in _ADAPTABLE or problem.status in {500, 501}):
            return self._next_path(problem)
        if problem.status not in _ADAPTABLE:
            return _ABOUT_SYSTEM.search(text) is not None and problem.status == 500 and self._fold(problem)
        if _ABOUT_SYSTEM.search(text):
            return self._fold(problem)
        if not _REFUSES.search(text) and problem.code not in {"unsupported_parameter", "unsupported_value"}:
            return False
        if problem.parameter in _LIMITS or (not problem.parameter and _names(self._limit_name(), text)):
            return self._next_limit(problem)
        for name in _MAY_BE_DROPPED:
            if problem.parameter == name or (not problem.parameter and _names(name, text)):
                return self._note(name, DROPPED, problem, f"{name} is no longer sent")
        return False

    def _next_path(self, problem: Problem) -> bool:
        position = _PATHS.index(self._path) + 1
        if position == len(_PATHS):
            return False
        self._path = _PATHS[position]
        how = "in JSON mode" if self._path is ReplyPath.JSON_MODE else "by words alone"
        return self._note("response_format", self._path.value, problem, f"JSON is now asked for {how}")

    def _next_limit(self, problem: Problem) -> bool:
        now = self.done.get("max_tokens")
        if now == DROPPED:
            return False
        other = _LIMITS[1 - _LIMITS.index(self._limit)]
        what = DROPPED if now == other else other
        sentence = "replies have no length limit" if what == DROPPED else f"the length limit is sent as {other}"
        return self._note("max_tokens", what, problem, sentence)

    def _fold(self, problem: Problem) -> bool:
        return self._note("system", FOLDED, problem, "the system message is put before the user's")

    def _note(self, name: str, what: str, problem: Problem, sentence: str) -> bool:
        if self.done.get(name) == what:
            return False
        self.done[name] = what
        self.notices.append(f"{self._model}: the endpoint refused {name} ({problem.shown}); {sentence}.")
        return True

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
            messages[0] = (author, f"{text}\n\n{_schema_in_words(request)}")
        if self.done.get("system") == FOLDED and len(messages) > 1 and messages[0][0] == "system":
            (_, system), (author, text), *rest = messages
            messages = [(author, f"{system}\n\n{text}"), *rest]
        return [{"role": author, "content": text} for author, text in messages]


def _schema_in_words(request: Request) -> str:
    schema = json.dumps(request.schema, ensure_ascii=False)
    return f"The reply is one JSON object that fits this JSON Schema ({request.schema_name}):\n{schema}"


def _known_path(known: Mapping[str, str]) -> ReplyPath:
    path = known.get("response_format", ReplyPath.JSON_SCHEMA.value)
    if path not in _PATHS:
        raise UsageError(f"The known adaptation of response_format must be one of {', '.join(_PATHS)}, got {path!r}.")
    return ReplyPath(path)


def _names(parameter: str, text: str) -> bool:
    return bool(parameter) and re.search(rf"(?<![\w-]){parameter}(?![\w-])", text) is not None
