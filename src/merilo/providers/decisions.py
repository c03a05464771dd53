"""Providers of decision models: OpenAI's wire (`/v1/decisions`), and TypeSafe's (`/v1/systemone`) with its servers.

Bodies, connection, errors and sizes are common. A wire is a row (`Service`) and the JSON of its state and questions.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from merilo.errors import Permanent, ProviderDown, ProviderError, TooLarge
from merilo.judging.json_types import as_list, loaded
from merilo.providers.base import Reply, Request, Usage
from merilo.providers.bodies import Bodies, Form, Step, json_bytes, json_text, with_extra
from merilo.providers.decision_request import AnswerType, DecisionQuestion, DecisionRequest, answers_text
from merilo.providers.endpoint import ChatConnection, Endpoint, Service, Wire, url_in
from merilo.providers.problems import EndpointAddress, EndpointProblem, Received, count, error_of, excerpt, json_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_MODEL: Final = "model"
"""The key of the model that answered among a connection's adaptations."""
_INSTRUCTIONS: Final = "instructions"
_TEXT: Final = "text"
_FORM: Final = Form(
    _INSTRUCTIONS,
    (Step(_TEXT, "questions and their fields are now sent as text"),),
    re.compile(r"\binstructions\b|input_json|\binput[.\[]\d", re.IGNORECASE),
)
_ROUTES: Final = ("/systemone", "/decisions", "/invocations")
"""Ends of an address that is the whole one: no path is added to it."""
_TOO_MANY: Final = re.compile(r"too (?:many|long|large)|at most|maximum|exceed", re.IGNORECASE)
_QUESTIONS: Final = re.compile(r"\bquestions\b(?![.\[]\w)", re.IGNORECASE)
"""Matches the name of the list of questions, not of one question in it."""
_MAX_USD: Final = 1_000.0
_URL: Final = "https://api.typesafe.ai"
_MAX_JSON_BYTES: Final = 256 * 1024
"""Largest part in JSON that OpenAI accepts; a longer state is sent as text."""


class DecisionSizes(NamedTuple):
    """The size of the largest request to an endpoint."""

    questions: int
    state_tokens: int
    """Maximum tokens of the state and its longest question together."""
    request_tokens: int


UNKNOWN_SIZES: Final = DecisionSizes(200, 8_000, 16_000)
"""The sizes for servers whose limits are not known."""


class DecisionEndpoint(Endpoint):
    """A decision model at an address."""

    own_route: ClassVar[str]
    """The path of a request, relative to the base URL."""
    own_sizes: ClassVar[DecisionSizes]
    """The sizes at the provider's own hosts."""
    json_state: ClassVar[bool] = False
    """True if some servers of the wire may accept the state only as text."""

    @abstractmethod
    def fields(self, request: DecisionRequest, *, as_text: bool) -> dict[str, object]:
        """Return the state and the questions of a request as the wire has them.

        `as_text`: without parts in JSON. The questions have no fields then.
        """

    def text_of(self, request: DecisionRequest) -> str:
        """Return the state and the questions of a request as they are sent, for estimates of its tokens."""
        questions = self.fields(request, as_text=False)["questions"]
        return request.state + json.dumps(questions, ensure_ascii=False)

    def open(self, wire: Wire, body: Mapping[str, object], known: Mapping[str, str]) -> DecisionConnection:
        """See `Endpoint`. `known` has the model that answered, too."""
        bodies = DecisionBodies(self, body, known)
        read = partial(read_reply, bodies)
        return DecisionConnection(wire, self.route, bodies, self.address, read, read_error=decision_error)

    @property
    def route(self) -> str:
        """The path of a request, relative to the base URL; blank if the base URL is the whole address."""
        return "" if self.base_url.endswith(_ROUTES) else self.own_route

    @property
    def sizes(self) -> DecisionSizes:
        """The size of the largest request."""
        return self.own_sizes if self.hosted else UNKNOWN_SIZES


class DecisionConnection(ChatConnection):
    """A session with one decision model, whose replies have the text of `merilo.providers.decision_request`."""

    async def _attempt(self, request: Request) -> Reply | None:
        reply = await super()._attempt(request)
        if reply is not None and isinstance(request, DecisionRequest):
            reply = replace(reply, texts=(answers_text(reply.text, request),))
        return reply


class DecisionBodies(Bodies):
    """Creates the request bodies of one connection, and compares the models that answer."""

    STRUCTURED = _INSTRUCTIONS
    PARAMETERS: ClassVar = {}

    def __init__(self, endpoint: DecisionEndpoint, extra: Mapping[str, object], known: Mapping[str, str]) -> None:
        super().__init__(endpoint.model, extra, known, (_FORM,))
        self._endpoint = endpoint
        self._answered = self._changed = False

    def _fields(self, request: Request, system: str | None, messages: Sequence[object]) -> dict[str, object]:
        del system, messages
        if not isinstance(request, DecisionRequest):
            raise Permanent(f"{self.model} is asked as a decision model, which answers no chat message.", sent=False)
        as_text = self.done.get(_INSTRUCTIONS) == _TEXT
        request = with_fenced_fields(request) if as_text else request
        return {"model": self.model, **self._endpoint.fields(request, as_text=as_text)}

    def body_for(self, request: Request) -> bytes:
        """See `Bodies`. Raises Permanent for a chat request."""
        return json_bytes(json_text(with_extra(self._fields(request, None, ()), self._extra)))

    def used(self, request: Request) -> dict[str, object]:
        """See `Bodies`."""
        fields = isinstance(request, DecisionRequest) and any(each.fields for each in request.questions)
        return {_INSTRUCTIONS: (self.done.get(_INSTRUCTIONS), fields)} if fields or self._endpoint.json_state else {}

    def learn(self, problem: EndpointProblem, request: Request, body: bytes) -> bool:
        """See `Bodies`. The body of an error is ignored, because it repeats requests."""
        return super().learn(replace(problem, body=""), request, body)

    def check_model(self, model: str, text: str) -> None:
        """Record the model that answered, and report another one once.

        Raises ProviderDown if the first reply is from another model than an earlier part of the run. `text`: its body.
        """
        first = self.done.setdefault(_MODEL, model) if model else ""
        if model == first:
            self._answered = True
        elif not self._answered:
            raise ProviderDown(
                f"{self.model} is now answered by the model {model!r}, before by {first!r}. Start a new run.",
                received_bytes=len(text.encode("utf-8", "replace")),
            )
        elif not self._changed:
            self._changed = True
            self.notices.append(f"{self.model}: the model that answers changed from {first!r} to {model!r}.")


def with_fenced_fields(request: DecisionRequest) -> DecisionRequest:
    """Return the request with the fields of each question in its text, fenced by a token that occurs in no field."""
    from merilo.judging.rubric import fence_token, fenced

    token = fence_token(tuple(text for each in request.questions for _, text in each.fields))
    texts = (
        "\n\n".join((each.text, *(fenced(text, name, token) for name, text in each.fields)))
        for each in request.questions
    )
    return request.asking(
        [replace(each, text=text, fields=()) for each, text in zip(request.questions, texts, strict=True)]
    )


def read_reply(bodies: DecisionBodies, received: Received) -> Reply:
    """Return the reply in a body, with the whole body as its text. Raises Temporary if it has no answers."""
    body, text = received.body, received.text
    if json_object(body.get("answers")) is None and as_list(body.get("answers")) is None:
        raise received.without("answers")
    model = excerpt(received.clean(str(body.get("model") or "")))
    bodies.check_model(model, text)
    usage = json_object(body.get("usage")) or {}
    details = json_object(usage.get("input_tokens_details")) or {}
    cost = usage.get("cost")
    return Reply(
        (text,),
        usage=Usage(
            count(usage.get("input_tokens")),
            count(usage.get("output_tokens")) or 0,
            count(details.get("cached_tokens")),
            count(details.get("cache_write_tokens")),
            cost if isinstance(cost, float) and 0 < cost < _MAX_USD else None,
        ),
        path=received.path,
        model=model,
        seconds=received.seconds,
    )


def decision_error(problem: EndpointProblem, headers: Mapping[str, str], address: EndpointAddress) -> ProviderError:
    """Return the merilo error for a problem: TooLarge for the size of a request, ProviderDown for a chat model."""
    message = f"{address.url} answered {problem.shown}".rstrip(".")
    # about the number of questions or the length of the context
    named = _QUESTIONS.search(f"{problem.parameter} {problem.message}") and _TOO_MANY.search(problem.message)
    if problem.status == 413 or problem.too_long or (problem.status in {400, 422} and named):
        return TooLarge(f"{message}. The request is too large.", status=problem.status)
    if problem.status == 501:
        return ProviderDown(f"{message}. This model is not a decision model.", status=problem.status)
    return error_of(problem, headers, address)


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
        questions = [_openai_question(question) for question in request.questions]
        return {"input": [{"role": "user", "content": [part]}], "questions": questions}


def _openai_question(question: DecisionQuestion) -> dict[str, object]:
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
            "questions": {question.name: _systemone_question(question) for question in request.questions},
        }

    def price_usd(self, usage: Usage) -> float | None:
        """Return the cost that OpenRouter states in the reply, otherwise the list price, see `Endpoint`."""
        stated = usage.usd if "://openrouter.ai/" in f"{self.base_url}/" else None
        return super().price_usd(usage) if stated is None else stated


def _systemone_question(question: DecisionQuestion) -> dict[str, object]:
    instructions = {"question": question.text, **dict(question.fields)} if question.fields else question.text
    options, kind = question.options, question.type.value
    criteria: object = [each.description or each.value for each in options]
    if question.type is AnswerType.YES_NO:
        sides = zip(("false", "true"), options, strict=True)
        kind, criteria = "noul", {side: each.description for side, each in sides if each.description}
    elif question.type is AnswerType.CHOICE:
        criteria = {each.value: each.description or None for each in options}
    return {"type": kind, "instructions": instructions, **({"criteria": criteria} if criteria else {})}


PROVIDER: Final = DecisionsProvider
PROVIDER_SYSTEMONE: Final = SystemOneProvider
