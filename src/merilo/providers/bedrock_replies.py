"""Replies and errors of Amazon Bedrock's Converse API."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from merilo.errors import Permanent, ProviderDown, RateLimited, Temporary
from merilo.judging.json_types import as_list
from merilo.providers.base import Finish, Reply, ReplyPath, Usage
from merilo.providers.openai_replies import count
from merilo.providers.problems import OK, error_of, excerpt, json_object, message_in, unusable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.errors import ProviderError
    from merilo.judging.json_types import Json
    from merilo.providers.problems import EndpointAddress, EndpointProblem

_TYPE_HEADER: Final = "x-amzn-ErrorType"
_FINISH: Final = {
    "max_tokens": Finish.LENGTH,
    "content_filtered": Finish.REFUSED,
    "guardrail_intervened": Finish.REFUSED,
}
"""All other reasons (end_turn, stop_sequence, tool_use) leave a text that can be parsed."""
_OVER_CONTEXT: Final = "model_context_window_exceeded"
_MALFORMED: Final = frozenset({"malformed_model_output", "malformed_tool_use"})
_RETRIED: Final = frozenset({"ModelErrorException", "ModelTimeoutException"})
_DENIED: Final = "AccessDeniedException"
_QUOTA: Final = "ServiceQuotaExceededException"
_EXPIRED: Final = "ExpiredTokenException"
_SAYS_EXPIRED: Final = re.compile(r"token.{0,40}\bexpired\b", re.IGNORECASE)
_NO_MODEL: Final = re.compile(r"model identifier is invalid|on-demand throughput|inference profile", re.IGNORECASE)
"""Matches messages about a model that cannot be used by this name or in this region; their status is 400."""
_PER_DAY: Final = re.compile(r"tokens per day", re.IGNORECASE)


def converse_reply_of(
    body: Json, text: str, *, path: ReplyPath, clean: Callable[[str], str], address: str, seconds: float = 0.0
) -> Reply:
    """Return the reply in a body, given as an object and as text.

    Raises Temporary for a body that is not a reply, and Permanent if the prompt exceeds the model's context window.
    """
    message = json_object((json_object(body.get("output")) or {}).get("message"))
    reason = str(body.get("stopReason") or "")
    if reason == _OVER_CONTEXT:
        raise Permanent(
            f"{address}: prompt and reply exceed the context window of the model.",
            status=OK,
            received_bytes=len(text.encode("utf-8", "replace")),
        )
    if message is None or reason in _MALFORMED:
        raise unusable(f"{address} sent no message but: {excerpt(clean(text))!r}.", text)
    blocks = [json_object(block) or {} for block in as_list(message.get("content")) or ()]
    return Reply(
        texts=(clean("".join(_text(block) for block in blocks)),),
        finish=_FINISH.get(reason, Finish.STOP),
        usage=_usage(json_object(body.get("usage")) or {}),
        path=path,
        seconds=seconds,
        reasoning="".join(_reasoning(block) for block in blocks),
    )


def converse_error_of(
    problem: EndpointProblem, headers: Mapping[str, str], address: EndpointAddress, *, renews_key: bool
) -> ProviderError:
    """Return the merilo error for a problem, whose type is in a header.

    `renews_key`: a callable returns the key, so that a request with an expired key is retried with another one.
    """
    code = headers.get(_TYPE_HEADER, "").partition(":")[0]
    message = str(message_in(problem.message).get("Message") or problem.message)  # errors of the gateway: a capital M
    problem = replace(problem, code=code or problem.code, message=message)
    shown = f"{address.url} answered {problem.shown}"
    if code == _EXPIRED or _SAYS_EXPIRED.search(message):
        if renews_key:
            return Temporary(f"{address.url}: the key has expired; a new one is requested.", status=problem.status)
        return ProviderDown(
            f"{address.url}: the key has expired. Create a new one; {address.check_key}.", status=problem.status
        )
    if code == _DENIED:
        return ProviderDown(f"{shown}. The key lacks the permission: {address.check_key}.", status=problem.status)
    if code == _QUOTA:
        return RateLimited(f"{shown}.", status=problem.status)
    if code in _RETRIED:
        return Temporary(f"{shown}.", status=problem.status)
    if _PER_DAY.search(message):
        return ProviderDown(f"{shown}. The daily quota is used up.", status=problem.status)
    if _NO_MODEL.search(message):
        return ProviderDown(f"{shown}. {address.check_place}", status=problem.status)
    return error_of(problem, headers, address)


def _text(block: Json) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else ""


def _reasoning(block: Json) -> str:
    content = json_object(block.get("reasoningContent")) or {}
    text = (json_object(content.get("reasoningText")) or {}).get("text")
    return text if isinstance(text, str) else ""


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
