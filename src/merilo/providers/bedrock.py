"""Amazon Bedrock's Converse API, with a Bedrock API key: provider, request bodies, replies and errors.

Structured output is requested by `outputConfig.textFormat` and, if that is rejected, by the prompt alone: support
differs from model to model.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

from merilo.errors import Permanent, ProviderDown, ProviderError, Temporary, UsageError
from merilo.judging.json_types import Json, as_list
from merilo.providers.base import Finish, Message, Reply, ReplyPath, Request, Usage
from merilo.providers.bodies import LIMIT, SYSTEM, Bodies, dropped, folded, json_text, limit, structured, with_extra
from merilo.providers.endpoint import ChatConnection, Endpoint, Service, Wire
from merilo.providers.problems import OK, count, error_of, json_object, message_in, text_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.providers.problems import EndpointAddress, EndpointProblem, Received

_DOMAINS: Final = {"cn-": ".amazonaws.com.cn", "eusc-": ".amazonaws.eu"}
"""Domains of the regions outside amazonaws.com, by the beginning of the region's name."""
_EXAMPLE: Final = "https://bedrock-runtime.us-east-1.amazonaws.com"
_REGION: Final = re.compile(r"[a-z]{2,}(?:-[a-z]+)+-\d+")
_TYPE_HEADER: Final = "x-amzn-ErrorType"
_FINISH: Final = {
    "max_tokens": Finish.LENGTH,
    "content_filtered": Finish.REFUSED,
    "guardrail_intervened": Finish.REFUSED,
}
"""All other reasons (end_turn, stop_sequence, tool_use) leave a text that can be parsed."""
_OVER_CONTEXT: Final = "model_context_window_exceeded"
_MALFORMED: Final = frozenset({"malformed_model_output", "malformed_tool_use"})
_EXPIRED: Final = "ExpiredTokenException"
_SAYS_EXPIRED: Final = re.compile(r"token.{0,40}\bexpired\b", re.IGNORECASE)


def _default_url() -> str:
    """Return the address of the region in the environment. Raises UsageError without a valid region."""
    if url := os.environ.get("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"):
        return url
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
    if not region:
        raise UsageError("Bedrock needs a region such as us-east-1: set AWS_REGION, or give --base-url.")
    if not _REGION.fullmatch(region):
        raise UsageError(f"AWS_REGION must be a region such as us-east-1, got {region!r}.")
    domain = next((domain for start, domain in _DOMAINS.items() if region.startswith(start)), ".amazonaws.com")
    return f"https://bedrock-runtime.{region}{domain}"


@dataclass(frozen=True)
class BedrockProvider(Endpoint):
    """A model of Amazon Bedrock.

    `model` is a model id, the id of an inference profile, or an ARN. `base_url` is AWS_ENDPOINT_URL_BEDROCK_RUNTIME at
    construction, otherwise the address of the region in AWS_REGION or AWS_DEFAULT_REGION. The key is a Bedrock API key
    in AWS_BEARER_TOKEN_BEDROCK; requests signed with AWS credentials (SigV4) are not supported. Otherwise as
    `OpenAIProvider`. Raises UsageError for an invalid address or region.
    """

    service = Service(
        "bedrock",
        model="bedrock:amazon.nova-lite-v1:0",
        url=_EXAMPLE,
        endings=("/v1", "/openai"),
        hosts=(".amazonaws.com", *_DOMAINS.values()),
        check="the region (AWS_REGION) and the model id {0.model!r}; most models need an inference profile",
    )

    base_url: str = field(default_factory=_default_url, repr=False)
    api_key_env: str = "AWS_BEARER_TOKEN_BEDROCK"
    timeout_s: float = 300.0  # a new schema is compiled during the first request, which may take minutes

    def open(self, wire: Wire, body: Mapping[str, object], known: Mapping[str, str]) -> ChatConnection:
        """See `Endpoint`."""
        bodies = BedrockBodies(self.model, body, known)
        route = f"/model/{quote(self.model, safe='')}/converse"
        read_error = partial(converse_error_of, renews_key=self.api_key is not None)
        return ChatConnection(wire, route, bodies, self.address, converse_reply_of, read_error=read_error)

    @property
    def check_key(self) -> str:
        """See `Endpoint`."""
        return f"{super().check_key}; a key is valid in one region"


class BedrockBodies(Bodies):
    """Creates the request bodies of one connection."""

    STRUCTURED = "outputConfig"
    PARAMETERS: ClassVar = {LIMIT: "maxTokens", "temperature": "temperature"}
    NO_SEED = "the Converse API has no seed parameter; none is sent"

    def __init__(self, model: str, extra: Mapping[str, object], known: Mapping[str, str]) -> None:
        forms = (folded(), structured(self.STRUCTURED, ReplyPath.PROMPTED), dropped("temperature"), limit())
        super().__init__(model, extra, known, forms)

    def _fields(self, request: Request, system: str | None, messages: Sequence[object]) -> dict[str, object]:
        body: dict[str, object] = {SYSTEM: [{"text": system}]} if system else {}
        body["messages"] = messages
        if config := self._parameters(request):
            body["inferenceConfig"] = config
        if request.schema is not None and self.path is ReplyPath.JSON_SCHEMA:
            # the API wants a text; each new schema is compiled for minutes, so questions share one
            schema = {"name": request.schema_name, "schema": json_text(request.general_schema or request.schema)}
            body[self.STRUCTURED] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
        return with_extra(body, self._extra)

    def _message(self, message: Message) -> str:
        return json_text({"role": message.author, "content": [{"text": message.text}]})


def converse_reply_of(received: Received) -> Reply:
    """Return the reply in a body.

    Raises Temporary for a body that is not a reply, and Permanent if the prompt exceeds the model's context window.
    """
    body = received.body
    message = json_object((json_object(body.get("output")) or {}).get("message"))
    reason = str(body.get("stopReason") or "")
    if reason == _OVER_CONTEXT:
        raise Permanent(
            f"{received.address}: prompt and reply exceed the context window of the model.",
            status=OK,
            received_bytes=len(received.text.encode("utf-8", "replace")),
        )
    if message is None or reason in _MALFORMED:
        raise received.without("message")
    blocks = [json_object(block) or {} for block in as_list(message.get("content")) or ()]
    text, reasoning = "".join(text_in(block, "text") for block in blocks), "".join(map(_reasoning, blocks))
    usage = _usage(json_object(body.get("usage")) or {})
    return received.reply(text, _FINISH.get(reason, Finish.STOP), usage, reasoning, model="")


def converse_error_of(
    problem: EndpointProblem, headers: Mapping[str, str], address: EndpointAddress, *, renews_key: bool
) -> ProviderError:
    """Return the merilo error for a problem, whose type is in a header.

    `renews_key`: a callable returns the key, so that a request with an expired key is retried with another one.
    """
    code = headers.get(_TYPE_HEADER, "").partition(":")[0]
    message = str(message_in(problem.message).get("Message") or problem.message)  # errors of the gateway: a capital M
    problem = replace(problem, code=code or problem.code, message=message)
    if code == _EXPIRED or _SAYS_EXPIRED.search(message):
        if renews_key:
            return Temporary(f"{address.url}: the key has expired; a new one is requested.", status=problem.status)
        return ProviderDown(
            f"{address.url}: the key has expired. Create a new one; {address.check_key}.", status=problem.status
        )
    return error_of(problem, headers, address)


def _reasoning(block: Json) -> str:
    content = json_object(block.get("reasoningContent")) or {}
    return text_in(json_object(content.get("reasoningText")) or {}, "text")


def _usage(usage: Json) -> Usage:
    """Return the tokens of a reply.

    `totalTokens` is all input and output. `inputTokens` may exclude the tokens of the prompt cache.
    """
    fresh, made, total = (count(usage.get(name)) for name in ("inputTokens", "outputTokens", "totalTokens"))
    cached, written = count(usage.get("cacheReadInputTokens")), count(usage.get("cacheWriteInputTokens"))
    if fresh is not None:
        apart = (cached or 0) + (written or 0)
        fresh = fresh + apart if apart > fresh else max(fresh, (total or 0) - (made or 0))
    return Usage(input_tokens=fresh, output_tokens=made, cached_tokens=cached, written_tokens=written)


PROVIDER: Final = BedrockProvider
