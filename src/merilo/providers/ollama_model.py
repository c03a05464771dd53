"""What Ollama reports about a model before the first request: its digest, its context length and its thinking."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.judging.json_types import Json, as_list
from merilo.providers.openai_replies import count
from merilo.providers.problems import OK, json_object, message_in, problem_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.errors import ProviderError
    from merilo.providers.problems import EndpointProblem
    from merilo.providers.wire import Wire, WireAnswer

_LEVELS: Final = ("low", "medium", "high")


class OllamaModel(NamedTuple):
    """A model as the server describes it."""

    digest: str = ""
    """The digest of the model's files; empty if the server does not list it, as for a cloud model."""
    context_length: int | None = None
    """The maximum context length of the model; None if the server does not report it."""
    think: bool | str | None = False
    """The value of the parameter `think` with the least thinking; None for a model that does not think."""


async def model_at(wire: Wire, name: str, error: Callable[[EndpointProblem, WireAnswer], ProviderError]) -> OllamaModel:
    """Return the description of a model. `error` makes the error to raise if the server has no such model."""
    shown = await wire.post("/api/show", json.dumps({"model": name}).encode())
    body = message_in(shown.text)
    if (problem := problem_in(shown.status, body, shown.text)) is not None:
        raise error(problem.cleaned(wire.clean), shown)
    tags = await wire.get("/api/tags")
    return OllamaModel(
        wire.clean(_digest(message_in(tags.text), name) if tags.status == OK else ""),
        _context_length(body),
        _least_thinking(body),
    )


def _digest(body: Json, name: str) -> str:
    names = {name, f"{name}:latest"}
    models = (json_object(each) or {} for each in as_list(body.get("models")) or ())
    return next(
        (str(model.get("digest") or "") for model in models if names & {model.get("name"), model.get("model")}), ""
    )


def _context_length(body: Json) -> int | None:
    """Return the field of `model_info` that begins with the name of the architecture, such as `llama`."""
    info = json_object(body.get("model_info")) or {}
    return count(info.get(f"{info.get('general.architecture')}.context_length")) or None


def _least_thinking(body: Json) -> bool | str | None:
    """Return the value of `think` for the shortest thinking that the model supports.

    Newer servers list the values. Older ones have only the capability, and no capabilities at all before that.
    """
    values = as_list((json_object(body.get("thinking")) or {}).get("values"))
    capabilities = as_list(body.get("capabilities"))
    if not values:
        return False if capabilities is None or "thinking" in capabilities else None
    if False in values:
        return False
    return next((level for level in _LEVELS if level in values), None)
