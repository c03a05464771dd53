"""Google's `generateContent`: provider, request bodies, replies and errors.

Structured output is requested by JSON Schema, then by JSON mode, then by the prompt alone. The model thinks as little
as it can: thinking is billed as output, and counts towards the length limit of the reply.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

from merilo.errors import UsageError
from merilo.judging.json_types import Json, as_list
from merilo.providers.base import Finish, Message, Reply, ReplyPath, Request, Usage
from merilo.providers.bodies import (
    DROPPED,
    LIMIT,
    Bodies,
    Form,
    Step,
    dropped,
    folded,
    json_text,
    limit,
    structured,
    with_extra,
)
from merilo.providers.endpoint import ChatConnection, Endpoint, Service, Wire, url_in
from merilo.providers.problems import Received, count, json_object, unusable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    ThinkingSteps = tuple[Mapping[str, object] | None, ...]

GOOGLE_URL: Final = "https://generativelanguage.googleapis.com"
_VERSION: Final = "v1beta"
_KEYS: Final = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_THINKING: Final = "thinkingConfig"
_SAFETY: Final = "safetySettings"
_ROLES: Final = {"assistant": "model"}
_ABOUT_THINKING: Final = re.compile(r"thinking|\bbudget\b", re.IGNORECASE)
_GENERATION: Final = re.compile(r"gemini-(\d+)")
_LEVELS_SINCE: Final = 3
_CATEGORIES: Final = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
_NO_FILTERS: Final = [{"category": f"HARM_CATEGORY_{each}", "threshold": "OFF"} for each in _CATEGORIES]
"""Judges must read harmful texts, too, to judge them."""
_FINISHED: Final = frozenset({"", "STOP", "FINISH_REASON_UNSPECIFIED"})
_MALFORMED: Final = "MALFORMED_RESPONSE"
_FILTERED: Final = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR"}
)
"""Reasons that withhold the rest of a reply, even if it has begun."""


@dataclass(frozen=True)
class GoogleProvider(Endpoint):
    """A model of Google's Gemini API.

    `base_url` is GOOGLE_GEMINI_BASE_URL at construction, otherwise Google's own address. The key is read from
    GEMINI_API_KEY, or from GOOGLE_API_KEY if only that is set, and is sent as a header, never in the address.
    `thinking` is a budget in tokens or a level such as "low", by default as little as the model allows. Otherwise as
    `OpenAIProvider`. Raises UsageError for an invalid address or budget.
    """

    service = Service(
        "google",
        model="google:gemini-2.5-flash",
        url=GOOGLE_URL,
        endings=("/openai", f"/{_VERSION}"),
        hosts=("generativelanguage.googleapis.com",),
        key_header="x-goog-api-key",
        key_prefix="",
        check=f"the base URL (without /{_VERSION}) and the model name {{0.model!r}}",
    )

    base_url: str = field(default_factory=url_in("GOOGLE_GEMINI_BASE_URL", GOOGLE_URL), repr=False)
    api_key_env: str = field(
        default_factory=lambda: next((name for name in _KEYS if os.environ.get(name, "").strip()), _KEYS[0])
    )
    thinking: int | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.thinking, int) and self.thinking < -1:
            raise UsageError(f"thinking must be a level, or a number of tokens (-1: automatic), got {self.thinking}.")

    def fingerprint(self) -> Mapping[str, object]:
        """Return the fingerprint of `Endpoint` with a chosen `thinking`."""
        marks = super().fingerprint()
        return marks if self.thinking is None else {**marks, "thinking": self.thinking}

    def open(self, wire: Wire, body: Mapping[str, object], known: Mapping[str, str]) -> ChatConnection:
        """See `Endpoint`. Names such as `tunedModels/NAME` contain their collection."""
        name = self.model if "/" in self.model else f"models/{self.model}"
        bodies = GoogleBodies(self.model, body, known, thinking=self.thinking)
        route = f"/{_VERSION}/{quote(name)}:generateContent"
        return ChatConnection(wire, route, bodies, self.address, content_of)


class GoogleBodies(Bodies):
    """Creates the request bodies of one connection."""

    STRUCTURED = "responseJsonSchema"
    PARAMETERS: ClassVar = {"temperature": "temperature", "seed": "seed", LIMIT: "maxOutputTokens"}

    def __init__(
        self, model: str, extra: Mapping[str, object], known: Mapping[str, str], *, thinking: int | str | None
    ) -> None:
        self._thinking_steps = {
            DROPPED if step is None else " ".join(f"{name} {value}" for name, value in step.items()): step
            for step in _thinking_steps(model, thinking)
        }
        """What to send as thinking configuration, in order, by the name under which an adaptation stores it."""
        thinking_steps = (
            Step(name, f"{_THINKING} is no longer sent" if name == DROPPED else f"{name} is now sent")
            for name in [*self._thinking_steps][1:]
        )
        forms = (
            folded(),
            structured(self.STRUCTURED, ReplyPath.JSON_MODE, ReplyPath.PROMPTED),
            Form(_THINKING, tuple(thinking_steps), _ABOUT_THINKING),
            dropped(_SAFETY, words=r"safety_?settings|harm_?category"),
            dropped("temperature"),
            limit(),
            dropped("seed"),
        )
        if known.get(_THINKING) not in self._thinking_steps:
            known = {name: what for name, what in known.items() if name != _THINKING}
        super().__init__(model, extra, known, forms)

    @property
    def _thinking(self) -> Mapping[str, object] | None:
        return self._thinking_steps[self.done.get(_THINKING) or next(iter(self._thinking_steps))]

    def _parts(self) -> dict[str, object]:
        thinking = {} if self._thinking is None else {_THINKING: self.done.get(_THINKING)}
        return {_SAFETY: None, **thinking}

    def _fields(self, request: Request, system: str | None, messages: Sequence[object]) -> dict[str, object]:
        body: dict[str, object] = {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
        body["contents"] = messages
        thinking = {} if self._thinking is None else {_THINKING: self._thinking}
        config = self._parameters(request)
        if request.schema is not None and self.path is not ReplyPath.PROMPTED:
            config["responseMimeType"] = "application/json"
            if self.path is ReplyPath.JSON_SCHEMA:
                config[self.STRUCTURED] = request.schema
        body["generationConfig"] = {**config, **thinking}
        if self.done.get(_SAFETY) != DROPPED:
            body[_SAFETY] = _NO_FILTERS
        return with_extra(body, self._extra)

    def _message(self, message: Message) -> str:
        return json_text({"role": _ROLES.get(message.author, message.author), "parts": [{"text": message.text}]})


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


def content_of(received: Received) -> Reply:
    """Return the reply in a body. Raises Temporary for a body that is not a reply.

    A candidate may lack its content or the parts of it. A blocked prompt has no candidate at all.
    """
    body = received.body
    candidates = as_list(body.get("candidates")) or []
    blocked = (json_object(body.get("promptFeedback")) or {}).get("blockReason")
    if not candidates and not blocked:
        raise received.without("candidate")
    candidate = json_object(candidates[0]) or {} if candidates else {}
    content = json_object(candidate.get("content")) or {}
    parts = [json_object(part) or {} for part in as_list(content.get("parts")) or ()]
    answer = _joined(parts, thought=False)
    reason = str(blocked or candidate.get("finishReason") or "")
    finish = Finish.REFUSED if blocked else _finish(reason, answer)
    lacking = received.path is not ReplyPath.TEXT and finish is Finish.STOP and not answer.strip()
    if reason == _MALFORMED or lacking:
        shown = f"{received.address} sent a candidate without a text (finish reason {received.clean(reason)!r})."
        raise unusable(shown, received.text)
    if finish is Finish.REFUSED:  # a text that a filter ended is not an answer
        answer = str(
            candidate.get("finishMessage") or f"{'The prompt' if blocked else 'The reply'} was blocked: {reason}"
        )
    usage = _usage(json_object(body.get("usageMetadata")) or {})
    return received.reply(answer, finish, usage, _joined(parts, thought=True), model="modelVersion")


def _finish(reason: str, answer: str) -> Finish:
    if reason == "MAX_TOKENS":
        return Finish.LENGTH
    ended = reason in _FILTERED or (reason not in _FINISHED and not answer.strip())
    return Finish.REFUSED if ended else Finish.STOP


def _joined(parts: list[Json], *, thought: bool) -> str:
    return "".join(str(part.get("text") or "") for part in parts if bool(part.get("thought")) is thought)


def _usage(usage: Json) -> Usage:
    """Return the tokens of a reply; thoughts are billed as output and counted separately from the candidates."""
    written, thoughts = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
    known = written is not None or thoughts is not None
    return Usage(
        input_tokens=count(usage.get("promptTokenCount")),
        output_tokens=(written or 0) + (thoughts or 0) if known else None,
        cached_tokens=count(usage.get("cachedContentTokenCount")),
    )


PROVIDER: Final = GoogleProvider
