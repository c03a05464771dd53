"""Request bodies for Google's `generateContent`, and their adaptation to rejected parameters.

Structured output is requested by JSON Schema, then by JSON mode, then by the prompt alone. The model thinks as little
as it can: thinking is billed as output, and counts towards the length limit of the reply.
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
from merilo.providers.problems import ABOUT_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.providers.base import Request
    from merilo.providers.problems import EndpointProblem

    ThinkingSteps = tuple[Mapping[str, object] | None, ...]

_SCHEMA: Final = "responseJsonSchema"
_THINKING: Final = "thinkingConfig"
_SAFETY: Final = "safetySettings"
_SYSTEM: Final = "system"
_REJECTED: Final = 400
"""The only status that rejects a parameter; the 404 of an unknown model may contain the same words."""
_PATHS: Final = (ReplyPath.JSON_SCHEMA, ReplyPath.JSON_MODE, ReplyPath.PROMPTED)
_ROLES: Final = {"assistant": "model"}
_MAY_BE_DROPPED: Final = ("temperature", "seed")
_ABOUT_FORMAT: Final = re.compile(r"schema|response_?mime_?type|response_?format|json mode", re.IGNORECASE)
_ABOUT_THINKING: Final = re.compile(r"thinking|\bbudget\b", re.IGNORECASE)
_ABOUT_SAFETY: Final = re.compile(r"safety_?settings|harm_?category", re.IGNORECASE)
_ABOUT_SYSTEM: Final = re.compile(r"developer instruction|system_?instruction", re.IGNORECASE)
_GENERATION: Final = re.compile(r"gemini-(\d+)")
_LEVELS_SINCE: Final = 3
_CATEGORIES: Final = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
_NO_FILTERS: Final = [{"category": f"HARM_CATEGORY_{each}", "threshold": "OFF"} for each in _CATEGORIES]
"""Judges must read harmful texts, too, to judge them."""


class GoogleBodies:
    """Creates the request bodies of one connection; `done` maps each rejected parameter to its adaptation."""

    def __init__(
        self, model: str, extra: Mapping[str, object], *, thinking: int | str | None, known: Mapping[str, str]
    ) -> None:
        self._model = model
        self._extra = extra
        self._adaptations = Adaptations(model, known)
        self.done = self._adaptations.done
        self.notices = self._adaptations.notices
        self._path = _known_path(known)
        self._thinking = _known_steps(_thinking_steps(model, thinking), known.get(_THINKING))
        self._frames = BodyTemplates()

    def path_for(self, request: Request) -> ReplyPath:
        """Return how structured output is requested at present; TEXT for free text."""
        return ReplyPath.TEXT if request.schema is None else self._path

    def body_for(self, request: Request) -> bytes:
        """Return the JSON body of one request, without the parameters rejected so far."""
        system, messages = split_system(request)
        if not system or self.done.get(_SYSTEM) == FOLDED:
            first, *rest = messages
            opening = _content(first.author, self._prompt(request, system, first.text))
            contents = [opening, *(_content(message.author, message.text) for message in rest)]
            return json_bytes(json_text(self._fields(request, "", contents)))
        key = (system, request.schema_name, request.max_tokens, request.temperature, request.seed)
        frame = self._frames.frame(
            key, request.schema, lambda: self._fields(request, self._prompt(request, system), [PLACE])
        )
        if not frame.after:  # the user's extra body replaces the contents
            return frame.before
        contents_json = ", ".join(json_text(_content(message.author, message.text)) for message in messages)
        return b"".join((frame.before, json_bytes(contents_json), frame.after))

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
        if _ABOUT_FORMAT.search(text):  # before the size: a schema may be too large as well
            return self._next_path(problem)
        if _ABOUT_THINKING.search(text):
            return self._think_otherwise(problem)
        if ABOUT_SIZE.search(text) and not REFUSES.search(text):
            return False
        if _ABOUT_SAFETY.search(text):
            return self._adaptations.note(_SAFETY, DROPPED, f"{_SAFETY} are no longer sent", problem=problem)
        if not REFUSES.search(text) and "not enabled" not in text:
            return False
        if _ABOUT_SYSTEM.search(text):
            sentence = "the system message is sent at the start of the user message"
            return self._adaptations.note(_SYSTEM, FOLDED, sentence, problem=problem)
        for name in _MAY_BE_DROPPED:
            if names(name, text):
                return self._adaptations.note(name, DROPPED, f"{name} is no longer sent", problem=problem)
        return False

    def _think_otherwise(self, problem: EndpointProblem) -> bool:
        if len(self._thinking) == 1:
            return False
        self._thinking = self._thinking[1:]
        what = _step_name(self._thinking[0])
        how = f"{_THINKING} is no longer sent" if what == DROPPED else f"{what} is now sent"
        return self._adaptations.note(_THINKING, what, how, problem=problem)

    def _next_path(self, problem: EndpointProblem) -> bool:
        position = _PATHS.index(self._path) + 1
        if position == len(_PATHS):
            return False
        self._path = _PATHS[position]
        how = "in JSON mode" if self._path is ReplyPath.JSON_MODE else "by the prompt alone"
        return self._adaptations.note(_SCHEMA, self._path.value, f"JSON is now requested {how}", problem=problem)

    def _fields(self, request: Request, system: str, contents: Sequence[object]) -> dict[str, object]:
        body: dict[str, object] = {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
        body["contents"] = contents
        wanted = {name: value for name, value in _sampling(request) if self.done.get(name) != DROPPED}
        body["generationConfig"] = {**wanted, **self._format(request), **self._thinking_config()}
        if self.done.get(_SAFETY) != DROPPED:
            body[_SAFETY] = _NO_FILTERS
        return with_extra(body, self._extra)

    def _format(self, request: Request) -> dict[str, object]:
        if request.schema is None or self._path is ReplyPath.PROMPTED:
            return {}
        schema = {_SCHEMA: request.schema} if self._path is ReplyPath.JSON_SCHEMA else {}
        return {"responseMimeType": "application/json", **schema}

    def _thinking_config(self) -> dict[str, object]:
        return {} if self._thinking[0] is None else {_THINKING: self._thinking[0]}

    def _prompt(self, request: Request, *texts: str) -> str:
        """Return the texts of one message, with the schema in words after the first one if it is not a parameter."""
        parts = [text for text in texts if text]
        if request.schema is not None and self._path is not ReplyPath.JSON_SCHEMA:
            parts.insert(1, schema_in_words(request))
        return "\n\n".join(parts)


def _sampling(request: Request) -> Iterator[tuple[str, object]]:
    """Yield the parameters that are set."""
    wanted = {"temperature": request.temperature, "seed": request.seed, "maxOutputTokens": request.max_tokens}
    return ((name, value) for name, value in wanted.items() if value is not None)


def _content(author: str, text: str) -> dict[str, object]:
    return {"role": _ROLES.get(author, author), "parts": [{"text": text}]}


def _thinking_steps(model: str, thinking: int | str | None) -> ThinkingSteps:
    """Return the configurations to try in order; None is the model's own thinking.

    Only the user's own choice is tried if there is one. Models before Gemini 3 take a budget of tokens (at least 128 if
    they cannot stop thinking), later models a level.
    """
    if thinking is not None:
        return ({"thinkingLevel": thinking} if isinstance(thinking, str) else {"thinkingBudget": thinking},)
    generation = _GENERATION.search(model)
    budgets = ({"thinkingBudget": 0}, {"thinkingBudget": 128})
    levels = ({"thinkingLevel": "minimal"}, {"thinkingLevel": "low"})
    if generation is None:
        return (*budgets[:1], *levels, None)
    return (*(levels if int(generation[1]) >= _LEVELS_SINCE else budgets), None)


def _step_name(step: Mapping[str, object] | None) -> str:
    """Return the name under which an adaptation of thinking is stored."""
    return DROPPED if step is None else " ".join(f"{name} {value}" for name, value in step.items())


def _known_steps(steps: ThinkingSteps, known: str | None) -> ThinkingSteps:
    """Return the steps from a stored one on; all of them if it is not among them."""
    stored = [_step_name(step) for step in steps]
    return steps[stored.index(known) :] if known in stored else steps


def _known_path(known: Mapping[str, str]) -> ReplyPath:
    path = known.get(_SCHEMA, ReplyPath.JSON_SCHEMA.value)
    if path not in _PATHS:
        raise UsageError(f"The known adaptation of {_SCHEMA} must be one of {', '.join(_PATHS)}, got {path!r}.")
    return ReplyPath(path)
