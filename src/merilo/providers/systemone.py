"""Decision models over TypeSafe's wire, `POST /v1/systemone`, which many other servers have too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.json_types import loaded
from merilo.providers.decision_endpoint import DecisionEndpoint, DecisionSizes
from merilo.providers.decision_request import AnswerType
from merilo.providers.endpoint import Service, url_in

if TYPE_CHECKING:
    from merilo.providers.base import Usage
    from merilo.providers.decision_request import DecisionQuestion, DecisionRequest

_URL: Final = "https://api.typesafe.ai"


@dataclass(frozen=True)
class SystemOneProvider(DecisionEndpoint):
    """A decision model behind TypeSafe's endpoint `/v1/systemone`, or a compatible one.

    `base_url` is TYPESAFE_BASE_URL at construction, otherwise TypeSafe's own address. One that ends in `/decisions` or
    `/systemone` is used as it is. Otherwise as `OpenAIProvider`.
    """

    service = Service(
        "systemone",
        model="systemone:jev-latest",
        url=_URL,
        endings=("/v1/systemone", "/v1"),
        hosts=("api.typesafe.ai",),
        check="the base URL (for a server of OpenAI's wire use decisions:MODEL) and the model name {0.model!r}",
    )
    own_route: ClassVar = "/v1/systemone"
    own_sizes: ClassVar = DecisionSizes(200, 32_000, 64_000)

    base_url: str = field(default_factory=url_in("TYPESAFE_BASE_URL", _URL), repr=False)
    api_key_env: str = "TYPESAFE_API_KEY"

    def fields(self, request: DecisionRequest, *, as_text: bool) -> dict[str, object]:
        """See `DecisionEndpoint`."""
        del as_text  # every server accepts the state as an object
        return {
            "state": loaded(request.state),
            "questions": {question.name: _question(question) for question in request.questions},
        }

    def price_usd(self, usage: Usage) -> float | None:
        """Return the cost that OpenRouter states in the reply, otherwise the list price, see `Endpoint`."""
        stated = usage.usd if "://openrouter.ai/" in f"{self.base_url}/" else None
        return super().price_usd(usage) if stated is None else stated


def _question(question: DecisionQuestion) -> dict[str, object]:
    instructions = {"question": question.text, **dict(question.fields)} if question.fields else question.text
    options, kind = question.options, question.type.value
    criteria: object = [each.description or each.value for each in options]
    if question.type is AnswerType.YES_NO:
        sides = zip(("false", "true"), options, strict=True)
        kind, criteria = "noul", {side: each.description for side, each in sides if each.description}
    elif question.type is AnswerType.CHOICE:
        criteria = {each.value: each.description or None for each in options}
    return {"type": kind, "instructions": instructions, **({"criteria": criteria} if criteria else {})}


PROVIDER: Final = SystemOneProvider
