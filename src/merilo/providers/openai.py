"""OpenAI's wire: chat completions and embeddings at OpenAI, Azure and the many compatible endpoints, hosted or local.

Structured output is requested by JSON Schema, then by JSON mode, then by the prompt alone. Each rejection switches the
connection to the next way.
"""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple
from urllib.parse import quote

from merilo.errors import Permanent, Temporary, UsageError
from merilo.judging.json_types import Json, as_list, as_object
from merilo.judging.kinds.measured import MatrixVerdict
from merilo.providers.base import REPLY_LIMITS, Connection, Finish, Reply, ReplyPath, Request, Usage
from merilo.providers.bodies import (
    LIMIT,
    SYSTEM,
    Bodies,
    Form,
    Step,
    dropped,
    folded,
    json_bytes,
    json_text,
    limit,
    structured,
    temperature,
)
from merilo.providers.endpoint import ChatConnection, Endpoint, Service, Wire, url_in
from merilo.providers.problems import (
    OK,
    called_with,
    count,
    error_of,
    excerpt,
    json_object,
    message_in,
    problem_in,
    unusable,
)
from merilo.providers.secrets import KeySource, resolved_body

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from merilo.providers.problems import Received

_OLLAMA = "fp_ollama"
"""The `system_fingerprint` in the replies of Ollama."""
_FINISH = {"length": Finish.LENGTH, "max_tokens": Finish.LENGTH}
_FILTERED = "content_filter"
"""Beginning of the reasons for a text that a filter removed; some servers add which filter."""
_FINISHED = frozenset(
    {"", "none", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls", "function_call"}
)
_PLAIN = frozenset({"refusal", "reasoning_content", "reasoning"})  # what a plain reply lacks
_STREAM = "stream"
_STREAMED: Final[Mapping[str | None, Mapping[str, object]]] = {
    None: {},
    "with usage": {_STREAM: True, "stream_options": {"include_usage": True}},
    "without usage": {_STREAM: True},
}
_ONLY = re.compile(
    r"\b(?:only|must|requires?|enable|need).{0,40}\bstream|\bstream\w*.{0,40}\b(?:only|must|required|true)|stream_options",
    re.IGNORECASE,
)
"""Matches the message of a server that only streams, or that does not know how to stream the usage."""
_BROKEN = frozenset({"error", "abort"})
"""Reasons with which servers report that a completion failed."""
_EXAMPLE = "https://NAME.openai.azure.com"
_DEPLOYMENT = re.compile(r"/openai/deployments(?:/[^/]+)?$")
_DATED = re.compile(r"\d{4}-\d\d-\d\d(?:-preview)?")
_UNDATED = frozenset({"", "v1", "preview", "latest"})
_MOST = 3e38
"""Largest number of a vector, in float32; NaN is not below it."""
_LARGEST_REPLY_BYTES = 128 * 1024 * 1024  # some hundred vectors of some thousand numbers, written out


@dataclass(frozen=True)
class OpenAIProvider(Endpoint):
    """A model behind an OpenAI-compatible endpoint.

    `base_url` defaults to OPENAI_BASE_URL at construction, otherwise to OpenAI's own address. The key is read from the
    environment variable `api_key_env` when a connection is opened, or returned by the callable `api_key` before each
    request. It is stored nowhere, and endpoints other than OpenAI's may need none. `headers` may contain secrets and
    are never shown. `body` is sent with every request and overrides merilo's own fields. A text `${NAME}` in `body`, or
    in the path of `base_url`, is read from the environment variable NAME. `merilo.providers.secrets` describes how
    secrets written there are kept out of runs. Raises UsageError for an invalid address.
    """

    service = Service(
        "openai",
        model="openai:gpt-4.1-mini",
        endings=("/chat/completions", "/embeddings"),
        hosts=("api.openai.com",),
        check="the base URL (most end in /v1) and the model name {0.model!r}",
    )

    base_url: str = field(default_factory=url_in("OPENAI_BASE_URL", "https://api.openai.com/v1"), repr=False)
    api_key_env: str = "OPENAI_API_KEY"

    def open(self, wire: Wire, body: Mapping[str, object], known: Mapping[str, str]) -> ChatConnection:
        """See `Endpoint`."""
        bodies = OpenAIBodies(self.model, body, known, newer=self.newer)
        read = partial(read_reply, bodies)
        return ChatConnection(wire, self.route("/chat/completions"), bodies, self.address, read)

    def route(self, path: str) -> str:
        """Return the path of a kind of request, relative to the base URL."""
        return path

    @property
    def newer(self) -> bool:
        """True if the endpoint is one that takes `max_completion_tokens`."""
        return self.hosted


class OpenAIBodies(Bodies):
    """Creates the request bodies of one connection."""

    STRUCTURED = "response_format"
    PARAMETERS: ClassVar = {"temperature": "temperature", "seed": "seed", "n": "n", LIMIT: LIMIT}

    def __init__(self, model: str, extra: Mapping[str, object], known: Mapping[str, str], *, newer: bool) -> None:
        """`newer`: the reply limit is sent by its newer name first."""
        self._limit, other = REPLY_LIMITS if newer else REPLY_LIMITS[::-1]
        forms = (
            folded(),
            structured(self.STRUCTURED, ReplyPath.JSON_MODE, ReplyPath.PROMPTED),
            temperature(),
            limit(other),
            dropped("seed"),
            dropped("n", words=r"^n$|[\"'`]n[\"'`]|\bn\s*[=>]|\bn must be"),
            Form(_STREAM, tuple(Step(how, f"replies are streamed {how}") for how in _STREAMED if how), _ONLY, _ONLY),
        )
        super().__init__(model, extra, known, forms)

    def _parts(self) -> dict[str, object]:
        return {_STREAM: self.done.get(_STREAM)}

    def _fields(self, request: Request, system: str | None, messages: Sequence[object]) -> dict[str, object]:
        instructions = [] if system is None else [{"role": SYSTEM, "content": system}]
        body: dict[str, object] = {"model": self.model, "messages": [*instructions, *messages]}
        if request.schema is not None and self.path is ReplyPath.JSON_SCHEMA:
            form = {"name": request.schema_name, "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif request.schema is not None and self.path is ReplyPath.JSON_MODE:
            body["response_format"] = {"type": "json_object"}
        parameters = self._parameters(request)
        if LIMIT in parameters:
            parameters[self.done.get(LIMIT, self._limit)] = parameters.pop(LIMIT)
        streamed = _STREAMED.get(self.done.get(_STREAM), {})
        return {**body, **parameters, **self._adaptations.demanded(), **streamed, **self._extra}


def read_reply(bodies: OpenAIBodies, received: Received) -> Reply:
    """Return the reply in a body; advise a user whose server is Ollama."""
    if received.body.get("system_fingerprint") == _OLLAMA:
        sentence = "this server is Ollama, which truncates long prompts without an error"
        bodies.note("server", "ollama", f"{sentence}; use ollama:{bodies.model}")
    return reply_of(received)


def reply_of(received: Received) -> Reply:
    """Return the reply in a body. Raises Temporary if it is not a completion.

    A server with a reasoning parser may return the whole reply as reasoning, and a gateway the requested JSON as the
    arguments of a tool call. They are read there if the content is empty.
    """
    body, asks_json = received.body, received.path is not ReplyPath.TEXT
    choices = as_list(body.get("choices"))
    usage = usage_of(json_object(body.get("usage")) or {})
    if plain := _plain_text(choices):  # the rest of the function gives the same reply with three times the calls
        name = received.clean(str(body.get("model") or ""))
        return Reply((received.clean(plain),), Finish.STOP, usage, received.path, name, received.seconds)
    if not choices:
        raise received.without("chat completion")
    read = [_choice(choice, structured=asks_json) for choice in choices]
    empty = not any(choice.text.strip() for choice in read)
    if empty and any(choice.broken for choice in read):
        shown = excerpt(received.clean(received.text))
        raise unusable(f"{received.address} reported that the completion failed: {shown!r}.", received.text)
    stopped = all(choice.finish is Finish.STOP for choice in read)
    if asks_json and empty and stopped and usage.output_tokens == 0:  # free text may be empty
        advice = "The prompt may exceed the model's context length; increase it on the server."
        raise unusable(f"{received.address} sent a reply without any token. {advice}", received.text)
    fine = [choice for choice in read if choice.finish is not Finish.REFUSED]
    cut = any(choice.finish is Finish.LENGTH for choice in fine)
    finish = Finish.REFUSED if not fine else Finish.LENGTH if cut else Finish.STOP
    reply = received.reply("", finish, usage, "".join(choice.reasoning for choice in read))
    return replace(reply, texts=tuple(received.clean(choice.text) for choice in fine or read))


def _plain_text(choices: Any) -> str:  # Any: JSON
    """Return the text of a reply with one whole text and nothing else, as nearly all are; otherwise an empty one."""
    try:
        (choice,) = choices
        message, stopped = choice["message"], choice["finish_reason"] == "stop"
        text = message["content"] if stopped and _PLAIN.isdisjoint(filter(message.get, message)) else ""
    except (LookupError, TypeError, ValueError, AttributeError):
        return ""
    return text if type(text) is str and not text.isspace() else ""


class _Choice(NamedTuple):
    text: str
    finish: Finish
    reasoning: str = ""
    broken: bool = False


def _choice(choice: object, *, structured: bool) -> _Choice:
    fields = json_object(choice) or {}
    message = json_object(fields.get("message")) or {}
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        return _Choice(refusal, Finish.REFUSED)
    content = message.get("content")
    if not isinstance(content, str):
        content = "".join(str((json_object(part) or {}).get("text") or "") for part in as_list(content) or ())
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    reasoning = reasoning if isinstance(reasoning, str) else ""
    reason = str(fields.get("finish_reason") or "").lower()
    if reason in _FINISHED and not content.strip():
        given = called_with(message)
        content = given if isinstance(given, str) else json_text(given) if given else ""
        content = content or (reasoning if "{" in reasoning or not structured else "")
    return _Choice(content, _finish(reason, content), reasoning, broken=reason in _BROKEN)


def _finish(reason: str, content: str) -> Finish:
    """Return why a text ended. Without a text, a reason that is not known to be harmless is a refusal."""
    if reason in _FINISH:
        return _FINISH[reason]
    known = reason in _FINISHED or reason in _BROKEN
    return Finish.REFUSED if reason.startswith(_FILTERED) or not (known or content.strip()) else Finish.STOP


def usage_of(usage: Json, *, output: int | None = None) -> Usage:
    """Return the tokens in a reply's usage; `output` is the default for missing output tokens.

    Implausible counts are None. A server that reports more cached tokens than input counts the two separately.
    """
    made, cached, written = count(usage.get("completion_tokens")), None, None
    if (details := json_object(usage.get("prompt_tokens_details"))) is not None:
        cached, written = count(details.get("cached_tokens")), count(details.get("cache_write_tokens"))
    elif "prompt_cache_hit_tokens" in usage:
        cached = count(usage["prompt_cache_hit_tokens"])
    read, apart = count(usage.get("prompt_tokens")), (cached or 0) + (written or 0)
    return Usage(
        input_tokens=read + apart if read is not None and apart > read else read,
        output_tokens=output if made is None else made,
        cached_tokens=cached,
        written_tokens=written,
    )


def _default_url() -> str:
    url = os.environ.get("AZURE_OPENAI_ENDPOINT")
    if not url:
        raise UsageError(f"Azure OpenAI needs an address such as {_EXAMPLE}: set AZURE_OPENAI_ENDPOINT or --base-url.")
    return url


@dataclass(frozen=True)
class AzureProvider(OpenAIProvider):
    """A deployment of a model on Azure OpenAI.

    `model` is the deployment's name. `base_url` is the resource's endpoint, AZURE_OPENAI_ENDPOINT at construction.
    `api_version` is AZURE_OPENAI_API_VERSION. With a date such as 2024-10-21 the deployment's own address is used;
    without one (or with `preview`) the newer `/openai/v1`. A key, from the environment variable `api_key_env` or the
    callable `api_key`, is sent as `api-key`. `token` is a callable that returns a token of Microsoft Entra ID instead,
    sent as a bearer token. Otherwise as `OpenAIProvider`. Raises UsageError for an invalid address or version.
    """

    service = Service(
        "azure",
        model="azure:my-deployment",
        url=_EXAMPLE,
        endings=("/chat/completions", "/embeddings", "/v1", "/openai"),
        hosts=(".azure.com", ".azure.us", ".azure.cn"),
    )

    base_url: str = field(default_factory=_default_url, repr=False)
    api_key_env: str = "AZURE_OPENAI_API_KEY"
    api_version: str = field(default_factory=lambda: os.environ.get("AZURE_OPENAI_API_VERSION") or "")
    token: KeySource | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "base_url", _DEPLOYMENT.sub("", self.base_url))
        if self.api_version not in _UNDATED and not _DATED.fullmatch(self.api_version):
            raise UsageError(
                "AZURE_OPENAI_API_VERSION must be a date such as 2024-10-21, or empty for the newer /openai/v1, "
                f"got {self.api_version!r}."
            )

    def fingerprint(self) -> Mapping[str, object]:
        """Return the fingerprint of `Endpoint` with the version."""
        return {**super().fingerprint(), "api_version": self.api_version}

    def route(self, path: str) -> str:
        """Return the path of a kind of request, relative to the base URL."""
        if self.api_version not in _UNDATED:
            deployment = quote(self.model, safe="")
            return f"/openai/deployments/{deployment}{path}?api-version={self.api_version}"
        version = f"?api-version={self.api_version}" if self.api_version in {"preview", "latest"} else ""
        return f"/openai/v1{path}{version}"

    @property
    def newer(self) -> bool:
        """True: every deployment takes `max_completion_tokens`."""
        return True

    @property
    def key_source(self) -> KeySource | None:
        """See `Endpoint`."""
        return self.token or self.api_key

    @property
    def key_header(self) -> tuple[str, str]:
        """See `Endpoint`."""
        return ("Authorization", "Bearer ") if self.token else ("api-key", "")

    @property
    def check_place(self) -> str:
        """See `Endpoint`."""
        version = f"and the API version {self.api_version}" if self.api_version else "and whether it has /openai/v1"
        return f"Check the endpoint, the name of the deployment {self.model!r} {version}."


@dataclass(frozen=True, slots=True)
class EmbeddingsRequest(Request):
    """A request for one vector per text, without messages."""

    max_reply_characters: ClassVar[int | None] = None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenAIEmbeddingsProvider:
    """An embedding model behind an OpenAI-compatible endpoint; `endpoint` describes it as for a chat model.

    A reply is the JSON of a `MatrixVerdict`: one row per text, in the order of the texts.
    """

    endpoint: OpenAIProvider

    @property
    def model(self) -> str:
        """The model's name."""
        return self.endpoint.model

    def fingerprint(self) -> Mapping[str, object]:
        """Return address, model and extra body; no key and no headers."""
        own = self.endpoint.fingerprint()
        return {**own, "provider": f"{own['provider']}-embeddings"}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[Connection, None]:
        """Open a connection; no parameters are adapted. Raises UsageError if a required key is missing."""
        del known
        async with self.endpoint.wire() as wire:
            yield _EmbeddingsConnection(self.endpoint, wire)

    def price_usd(self, usage: Usage) -> float | None:
        """Return the price as the endpoint's provider reports it."""
        return self.endpoint.price_usd(usage)


@dataclass(frozen=True)
class _EmbeddingsConnection(Connection):
    endpoint: OpenAIProvider
    wire: Wire

    async def send(self, request: Request) -> Reply:
        if not isinstance(request, EmbeddingsRequest):
            raise Permanent(f"{self.endpoint.model} is an embedding model, but was sent chat messages.")
        began = perf_counter()
        body = {"model": self.endpoint.model, "input": list(request.inputs), **resolved_body(self.endpoint.body)}
        route = self.endpoint.route("/embeddings")
        answer = await self.wire.post(route, json_bytes(json_text(body)), largest=_LARGEST_REPLY_BYTES)
        received = message_in(answer.text)
        problem = problem_in(answer.status, received, answer.text)
        if problem is not None:
            raise error_of(problem.cleaned(self.wire.clean), answer.headers, self.endpoint.address)
        data = as_list(received.get("data"))
        if data is None:
            start = excerpt(self.wire.clean(answer.text))
            raise Temporary(f"{self.endpoint.address.url} sent no embeddings but: {start!r}.", status=OK)
        items = [as_object(item) or {} for item in data]
        matrix = _vectors(items, len(request.inputs), self.endpoint.address.url)
        return Reply(
            texts=(matrix.to_json(),),
            usage=usage_of(as_object(received.get("usage")) or {}, output=0),
            path=ReplyPath.TEXT,
            model=self.wire.clean(str(received.get("model") or "")),
            seconds=perf_counter() - began,
        )


def _vectors(items: list[Json], wanted: int, address: str) -> MatrixVerdict:
    """Return the vectors in the order of their `index`, or as received if no item has one. Raises Permanent."""
    places = [item.get("index", place) for place, item in enumerate(items)]
    by_place = {place: item for place, item in zip(places, items, strict=True) if isinstance(place, int)}
    rows: list[list[Any]] = [
        as_list(by_place[place].get("embedding")) or [] for place in range(wanted) if place in by_place
    ]
    lengths = sorted({len(row) for row in rows})
    fault = ""
    if len(items) != wanted:
        fault = f"{len(items)} vectors for {wanted} texts"
    elif len(rows) != wanted:
        fault = f"indices that are not 0 to {wanted - 1}"
    elif not all(row and all(type(each) in {int, float} and abs(each) < _MOST for each in row) for row in rows):
        fault = "not lists of finite numbers"
    elif len(lengths) > 1:
        fault = f"vectors of {' and '.join(map(str, lengths))} numbers"
    if fault:
        raise Permanent(f"{address} sent invalid embeddings: {fault}.", status=OK)
    return MatrixVerdict.of([[float(each) for each in row] for row in rows])


PROVIDER: Final = OpenAIProvider
PROVIDER_AZURE: Final = AzureProvider
