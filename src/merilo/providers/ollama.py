"""Ollama's own chat API, which refuses a prompt that is too long instead of truncating it.

Every body sets the context length and asks for an error instead of a truncated prompt: by default Ollama removes the
beginning of a prompt that exceeds 4,096 tokens, without an error.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import Permanent, ProviderDown, ProviderError, UsageError
from merilo.judging.json_types import Json, as_list
from merilo.providers.base import Finish, Reply, ReplyPath, Request, Usage
from merilo.providers.bodies import DROPPED, LIMIT, SYSTEM, Bodies, dropped, structured, with_extra
from merilo.providers.endpoint import ChatConnection, Endpoint, Service, Wire
from merilo.providers.problems import OK, count, error_of, json_object, message_in, problem_in, text_in, unusable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.providers.problems import EndpointAddress, EndpointProblem, Received

OLLAMA_URL: Final = "http://localhost:11434"
_PORT: Final = 11434
_DEFAULT_NUM_CTX: Final = 16_384
_MIN_NUM_CTX: Final = 512
_ANY_HOST: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  read from the user's variable, not bound
"""Hosts to listen on, and the host at which a client reaches each."""
_DIGEST: Final = "digest"
_UPDATE: Final = "Update Ollama: some versions ignore `truncate: false` or count only uncached tokens."
_NUM_CTX: Final = "num_ctx"
_THINK: Final = "think"
_LEVELS: Final = ("low", "medium", "high")
_NOT_FOUND: Final = 404


def _default_url() -> str:
    """Return the address in OLLAMA_HOST, which may lack the scheme, the host or the port."""
    given = os.environ.get("OLLAMA_HOST", "").strip().strip("\"'").rstrip("/")
    if not given:
        return OLLAMA_URL
    if "://" in given:
        return given
    if given.count(":") > 1 and "[" not in given:  # an IPv6 address
        given = f"[{given}]"
    host, colon, port = given.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = given, str(_PORT)
    return f"http://{_ANY_HOST.get(host, host) or 'localhost'}:{port}"


def _default_num_ctx() -> int:
    given = os.environ.get("OLLAMA_CONTEXT_LENGTH", "").strip()
    if given and not given.isdecimal():
        raise UsageError(f"OLLAMA_CONTEXT_LENGTH must be a number of tokens, got {given!r}.")
    return int(given or 0) or _DEFAULT_NUM_CTX


@dataclass(frozen=True)
class OllamaProvider(Endpoint):
    """A model of an Ollama server.

    `base_url` is OLLAMA_HOST at construction, otherwise http://localhost:11434. `num_ctx` is the context length of all
    requests: OLLAMA_CONTEXT_LENGTH at construction, otherwise 16,384, but at most that of the model. A longer prompt is
    an error. So it changes no reply, fingerprints omit it, and a run may resume with a larger one. `keep_alive` is how
    long the model stays loaded after a request. No key is needed; one in `api_key_env` is sent as a bearer token.
    Otherwise as `OpenAIProvider`. Raises UsageError for an invalid address or length.
    """

    service = Service(
        "ollama",
        model="ollama:qwen3",
        url=OLLAMA_URL,
        endings=("/chat", "/api", "/v1"),
        check="that an Ollama server runs on {place} (OLLAMA_HOST, --base-url)",
        absent="No Ollama server at {place}. Start it: ollama serve",
    )

    base_url: str = field(default_factory=_default_url, repr=False)
    api_key_env: str = "OLLAMA_API_KEY"
    timeout_s: float = 300.0
    num_ctx: int = field(default_factory=_default_num_ctx)
    keep_alive: str = "30m"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_ctx < _MIN_NUM_CTX:
            raise UsageError(f"num_ctx (OLLAMA_CONTEXT_LENGTH) must be at least {_MIN_NUM_CTX}, got {self.num_ctx}.")

    def open(self, wire: Wire, body: Mapping[str, object], known: Mapping[str, str]) -> OllamaConnection:
        """See `Endpoint`. `known` has the digest of the model, too."""
        bodies = OllamaBodies(self.model, body, known, num_ctx=self.num_ctx, keep_alive=self.keep_alive)
        return OllamaConnection(self.model, wire, bodies, self.address)


class OllamaConnection(ChatConnection):
    """A session with one Ollama server that inspects the model before the first request."""

    def __init__(self, model: str, wire: Wire, bodies: OllamaBodies, address: EndpointAddress) -> None:
        self._model = model
        self._ollama = bodies
        self._inspected = False
        self._inspecting = asyncio.Lock()
        read = partial(chat_reply_of, limit=bodies.limit)
        error = partial(chat_error_of, model=model, limit=bodies.limit)
        super().__init__(wire, "/api/chat", bodies, address, read, read_error=error, truncation_advice=_UPDATE)

    async def attempt(self, request: Request) -> Reply | None:
        """See `ChatConnection`. Raises ProviderDown, too, if the model has changed."""
        if not self._inspected:
            async with self._inspecting:  # concurrent requests wait for it
                await self._inspect()
        return await super().attempt(request)

    async def _inspect(self) -> None:
        """Read the model's description before the first request.

        Raises the errors of `attempt`, as errors of a request that was not sent.
        """
        if self._inspected:
            return
        try:
            await self._fit()
        except ProviderError as error:
            error.sent = False  # the request itself was not sent, so it is not counted
            raise
        self._inspected = True

    async def _fit(self) -> None:
        """Adjust the bodies to the model. Raises ProviderDown if an earlier part of the run used another one."""
        shown = await self.wire.post("/api/show", json.dumps({"model": self._model}).encode())
        body = message_in(shown.text)
        if (problem := problem_in(shown.status, body, shown.text)) is not None:
            raise self._read_error(problem.cleaned(self.wire.clean), shown.headers, self._address)
        tags = await self.wire.get("/api/tags")
        digest = self.wire.clean(_digest(message_in(tags.text), self._model) if tags.status == OK else "")
        if digest and (earlier := self._ollama.done.setdefault(_DIGEST, digest)) != digest:
            raise ProviderDown(
                f"The model {self._model!r} has changed since this run began (digest {digest[:12]}, before "
                f"{earlier[:12]}). Start a new run, or restore the earlier model."
            )
        info = json_object(body.get("model_info")) or {}  # its fields begin with the name of the architecture
        length = count(info.get(f"{info.get('general.architecture')}.context_length")) or None
        self._ollama.fit(context_length=length, think=_least_thinking(body))


@dataclass
class ContextLimit:
    """The context length that every request asks for: Ollama loads the model again if it changes."""

    tokens: int
    of_model: bool = False
    """True if the model itself reads no longer prompts."""

    @property
    def advice(self) -> str:
        """What to do if it is too small."""
        if self.of_model:
            return "That is the limit of the model: shorten the contexts or use another model."
        return f"To increase it, set OLLAMA_CONTEXT_LENGTH={2 * self.tokens} (in Python: num_ctx)."


class OllamaBodies(Bodies):
    """Creates the request bodies of one connection."""

    STRUCTURED = "format"
    PARAMETERS: ClassVar = {LIMIT: "num_predict", "temperature": "temperature", "seed": "seed"}

    def __init__(
        self, model: str, extra: Mapping[str, object], known: Mapping[str, str], *, num_ctx: int, keep_alive: str
    ) -> None:
        self._keep_alive = keep_alive
        self.limit = ContextLimit(num_ctx)
        self._think: bool | str | None = False
        thinking = dropped(_THINK, words=r"\bthink(?:ing)?\b")
        forms = structured(self.STRUCTURED, ReplyPath.JSON_MODE, ReplyPath.PROMPTED)
        super().__init__(model, extra, known, (forms, replace(thinking, strict=thinking.words)))

    def fit(self, *, context_length: int | None, think: bool | str | None) -> None:
        """Adjust the bodies to the model before the first request.

        `context_length` is the model's own limit if it is known. `think` is the value of the parameter with the least
        thinking, which is omitted if None.
        """
        if context_length is not None and context_length <= self.limit.tokens:
            self.limit.tokens, self.limit.of_model = context_length, True
        self.done[_NUM_CTX] = str(self.limit.tokens)
        self._think = think
        self._templates.clear()

    def _parts(self) -> dict[str, object]:
        return {} if self._think is None or self.done.get(_THINK) == DROPPED else {_THINK: self._think}

    def _fields(self, request: Request, system: str | None, messages: Sequence[object]) -> dict[str, object]:
        instructions = [] if system is None else [{"role": SYSTEM, "content": system}]
        body: dict[str, object] = {"model": self.model, "messages": [*instructions, *messages], "stream": False}
        if request.schema is not None and self.path is not ReplyPath.PROMPTED:
            body[self.STRUCTURED] = request.schema if self.path is ReplyPath.JSON_SCHEMA else "json"
        # Without `truncate` and `shift` the server removes the beginning of a long prompt, or of a long conversation.
        body |= {"truncate": False, "shift": False, "keep_alive": self._keep_alive, **self._parts()}
        body["options"] = {_NUM_CTX: self.limit.tokens, **self._parameters(request)}
        return with_extra(body, self._extra)


def _digest(body: Json, name: str) -> str:
    """Return the digest of the model's files; empty if the server does not list it, as for a cloud model."""
    names = {name, f"{name}:latest"}
    models = (json_object(each) or {} for each in as_list(body.get("models")) or ())
    return next(
        (str(model.get("digest") or "") for model in models if names & {model.get("name"), model.get("model")}), ""
    )


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


def chat_reply_of(received: Received, *, limit: ContextLimit) -> Reply:
    """Return the reply in a body.

    Raises Temporary for a body that is not a reply, and Permanent if prompt and reply fill the context length: the
    same request would be truncated again.
    """
    body, asks_json = received.body, received.path is not ReplyPath.TEXT
    message = json_object(body.get("message"))
    if message is None:
        raise received.without("chat reply")
    content, thinking = text_in(message, "content"), text_in(message, "thinking")
    cut = body.get("done_reason") == "length"
    if asks_json and not content.strip() and "{" in thinking and not cut:
        content = thinking  # some models write the requested JSON while they are still thinking
    usage = Usage(count(body.get("prompt_eval_count")), count(body.get("eval_count")))
    if asks_json and not content.strip() and not usage.output_tokens and not cut:
        raise unusable(f"{received.address} sent a reply without any token.", received.text)
    if cut and (usage.input_tokens or 0) + (usage.output_tokens or 0) >= limit.tokens:
        full = f"The prompt and the reply of {received.address} fill the context length of {limit.tokens:,} tokens."
        size = len(received.text.encode("utf-8", "replace"))
        raise Permanent(f"{full} {limit.advice}", status=OK, received_bytes=size)
    return received.reply(content, Finish.LENGTH if cut else Finish.STOP, usage, thinking)


def chat_error_of(
    problem: EndpointProblem, headers: Mapping[str, str], address: EndpointAddress, *, model: str, limit: ContextLimit
) -> ProviderError:
    """Return the merilo error for a problem: with advice if the model is missing or the prompt is too long."""
    if problem.too_long:
        message = f"{address.url} answered {problem.shown}. The prompt exceeds {limit.tokens:,} tokens."
        return Permanent(f"{message} {limit.advice}", status=problem.status)
    if problem.status == _NOT_FOUND and "model" in problem.message:
        return ProviderDown(
            f"{address.url} has no model {model!r}. Download it with: ollama pull {model}", status=problem.status
        )
    return error_of(problem, headers, address)


PROVIDER: Final = OllamaProvider
