"""Decision models over OpenAI's wire, `POST /v1/decisions`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.json_types import loaded
from merilo.providers.decision_endpoint import DecisionEndpoint, DecisionSizes
from merilo.providers.decision_request import AnswerType
from merilo.providers.endpoint import Service, url_in

if TYPE_CHECKING:
    from merilo.providers.decision_request import DecisionQuestion, DecisionRequest

_MAX_JSON_BYTES: Final = 256 * 1024
"""Largest part in JSON that OpenAI accepts; a longer state is sent as text."""


@dataclass(frozen=True)
class DecisionsProvider(DecisionEndpoint):
    """A decision model behind OpenAI's endpoint `/decisions`, or a compatible one.

    The fields are those of `OpenAIProvider`. A base URL that ends in `/decisions` or `/systemone` is used as it is.
    """

    service = Service(
        "decisions",
        model="decisions:gpt-6-luna",
        endings=("/decisions",),
        hosts=("api.openai.com",),
        check="the base URL (most end in /v1; for a server of System One use systemone:MODEL) and the model name "
        "{0.model!r}",
    )
    own_route: ClassVar = "/decisions"
    own_sizes: ClassVar = DecisionSizes(400, 250_000, 250_000)
    json_state: ClassVar = True

    base_url: str = field(default_factory=url_in("OPENAI_BASE_URL", "https://api.openai.com/v1"), repr=False)
    api_key_env: str = "OPENAI_API_KEY"

    def fields(self, request: DecisionRequest, *, as_text: bool) -> dict[str, object]:
        """See `DecisionEndpoint`."""
        text = as_text or len(request.state.encode("utf-8", "replace")) > _MAX_JSON_BYTES
        part = _text(request.state) if text else _json(loaded(request.state))
        questions = [_question(question) for question in request.questions]
        return {"input": [{"role": "user", "content": [part]}], "questions": questions}


def _question(question: DecisionQuestion) -> dict[str, object]:
    instructions, options = question.text, question.options
    own: dict[str, object] = {"type": "predicate"}
    if question.type is AnswerType.YES_NO:  # the wire has no place for the meanings of yes and no
        meanings = (f"{each.value}: {each.description}" for each in reversed(options) if each.description)
        instructions = "\n".join((instructions, *meanings))
    elif question.type is AnswerType.CHOICE:
        choices = [
            {"value": each.value} | ({"description": each.description} if each.description else {}) for each in options
        ]
        own = {"type": "choice", "choices": choices}
    else:
        own = {"type": "score", "levels": [{"label": each.description or each.value} for each in options]}
    parts = [_text(instructions), _json(dict(question.fields))] if question.fields else instructions
    return {"name": question.name, "instructions": parts, **own}


def _text(text: str) -> dict[str, object]:
    return {"type": "input_text", "text": text}


def _json(data: object) -> dict[str, object]:
    return {"type": "input_json", "data": data}


PROVIDER: Final = DecisionsProvider
