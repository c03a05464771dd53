"""Request bodies for Google's `generateContent`, and their adaptation to rejected parameters.

Structured output is requested by JSON Schema, then by JSON mode, then by the prompt alone. The model thinks as little
as it can: thinking is billed as output, and counts towards the length limit of the reply.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from merilo.providers.adaptations import (
    DROPPED,
    FOLDED,
    LIMIT,
    Adaptations,
    Form,
    Step,
    dropped,
    folded,
    limit,
    structured,
)
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

    ThinkingSteps = tuple[Mapping[str, object] | None, ...]

_SCHEMA: Final = "responseJsonSchema"
_THINKING: Final = "thinkingConfig"
_SAFETY: Final = "safetySettings"
_SYSTEM: Final = "system"
_ROLES: Final = {"assistant": "model"}
_ABOUT_THINKING: Final = re.compile(r"thinking|\bbudget\b", re.IGNORECASE)
_GENERATION: Final = re.compile(r"gemini-(\d+)")
_LEVELS_SINCE: Final = 3
_CATEGORIES: Final = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
_NO_FILTERS: Final = [{"category": f"HARM_CATEGORY_{each}", "threshold": "OFF"} for each in _CATEGORIES]
"""Judges must read harmful texts, too, to judge them."""


class GoogleBodies(Bodies):
    """Creates the request bodies of one connection."""

    def __init__(
        self, model: str, extra: Mapping[str, object], *, thinking: int | str | None, known: Mapping[str, str]
    ) -> None:
        self._model = model
        self._extra = extra
        self._thinking = {_step_name(step): step for step in _thinking_steps(model, thinking)}
        """What to send as thinking configuration, in order, by the name under which an adaptation stores it."""
        forms = (
            folded(),
            structured(_SCHEMA, ReplyPath.JSON_MODE, ReplyPath.PROMPTED),
            Form(_THINKING, tuple(_thinking_step(name) for name in list(self._thinking)[1:]), _ABOUT_THINKING),
            dropped(_SAFETY, words=r"safety_?settings|harm_?category"),
            dropped("temperature"),
            limit(),
            dropped("seed"),
        )
        if known.get(_THINKING) not in self._thinking:
            known = {name: what for name, what in known.items() if name != _THINKING}
        super().__init__(Adaptations(model, known, forms, extra), _SCHEMA)

    def body_for(self, request: Request) -> bytes:
        """See `Bodies.body_for`."""
        system, messages = split_system(request)
        if not system or self.done.get(_SYSTEM) == FOLDED:
            first, *rest = messages
            opening = _content(first.author, self._prompt(request, system, first.text))
            contents = [opening, *(_content(message.author, message.text) for message in rest)]
            return json_bytes(json_text(self._fields(request, "", contents)))
        key = (system, request.schema_name, self._adaptations.reply_limit(request), request.temperature, request.seed)
        frame = self._frames.frame(
            key, request.schema, lambda: self._fields(request, self._prompt(request, system), [PLACE])
        )
        if not frame.after:  # the user's extra body replaces the contents
            return frame.before
        contents_json = ", ".join(json_text(_content(message.author, message.text)) for message in messages)
        return b"".join((frame.before, json_bytes(contents_json), frame.after))

    def used(self, request: Request) -> dict[str, object]:
        """See `Bodies.used`."""
        found: dict[str, object] = {**self._sampling(request), _SAFETY: None}
        if "maxOutputTokens" in found:
            found[LIMIT] = None
        if split_system(request)[0]:
            found[_SYSTEM] = self.done.get(_SYSTEM)
        if request.schema is not None:
            found[_SCHEMA] = (self.path, request.schema_name)
        if self._thinking_now is not None:
            found[_THINKING] = self.done.get(_THINKING)
        return {name: value for name, value in found.items() if name not in self._extra}

    def _fields(self, request: Request, system: str, contents: Sequence[object]) -> dict[str, object]:
        body: dict[str, object] = {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
        body["contents"] = contents
        thinking = {} if self._thinking_now is None else {_THINKING: self._thinking_now}
        body["generationConfig"] = {**self._sampling(request), **self._format(request), **thinking}
        if self.done.get(_SAFETY) != DROPPED:
            body[_SAFETY] = _NO_FILTERS
        return with_extra(body, self._extra)

    def _format(self, request: Request) -> dict[str, object]:
        if request.schema is None or self.path is ReplyPath.PROMPTED:
            return {}
        schema = {_SCHEMA: request.schema} if self.path is ReplyPath.JSON_SCHEMA else {}
        return {"responseMimeType": "application/json", **schema}

    @property
    def _thinking_now(self) -> Mapping[str, object] | None:
        return self._thinking[self.done.get(_THINKING) or next(iter(self._thinking))]

    def _sampling(self, request: Request) -> dict[str, object]:
        """Return the parameters that are sent."""
        wanted = {
            "temperature": request.temperature,
            "seed": request.seed,
            "maxOutputTokens": self._adaptations.reply_limit(request),
        }
        return {name: value for name, value in wanted.items() if value is not None and self.done.get(name) != DROPPED}

    def _prompt(self, request: Request, *texts: str) -> str:
        """Return the texts of one message, with the schema in words after the first one if it is not a parameter."""
        parts = [text for text in texts if text]
        if request.schema is not None and self.path is not ReplyPath.JSON_SCHEMA:
            parts.insert(1, schema_in_words(request))
        return "\n\n".join(parts)


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


def _thinking_step(name: str) -> Step:
    return Step(name, f"{_THINKING} is no longer sent" if name == DROPPED else f"{name} is now sent")
