"""Replies and errors of Ollama's chat API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from merilo.errors import Permanent, ProviderDown
from merilo.providers.base import Finish, Reply, ReplyPath, Usage
from merilo.providers.openai_replies import count
from merilo.providers.problems import OK, error_of, excerpt, json_object, unusable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.errors import ProviderError
    from merilo.judging.json_types import Json
    from merilo.providers.ollama_bodies import ContextLimit
    from merilo.providers.problems import EndpointAddress, EndpointProblem

_NOT_FOUND: Final = 404
_OVER_CONTEXT: Final = re.compile(r"exceeds? the (?:available |maximum )?context|prompt is too long", re.IGNORECASE)
"""Matches the error for a prompt that exceeds the context length; its status is 400, 413 or 500."""


def chat_reply_of(
    body: Json,
    text: str,
    *,
    path: ReplyPath,
    clean: Callable[[str], str],
    address: str,
    limit: ContextLimit,
    seconds: float = 0.0,
) -> Reply:
    """Return the reply in a body, given as an object and as text.

    Raises Temporary for a body that is not a reply, and Permanent if prompt and reply fill the context length: the
    same request would be truncated again.
    """
    message = json_object(body.get("message"))
    if message is None:
        raise unusable(f"{address} sent no chat reply but: {excerpt(clean(text))!r}.", text)
    content, thinking = _text(message, "content"), _text(message, "thinking")
    cut = body.get("done_reason") == "length"
    if path is not ReplyPath.TEXT and not content.strip() and "{" in thinking and not cut:
        content = thinking  # some models write the requested JSON while they are still thinking
    usage = Usage(count(body.get("prompt_eval_count")), count(body.get("eval_count")))
    if path is not ReplyPath.TEXT and not content.strip() and not usage.output_tokens and not cut:
        raise unusable(f"{address} sent a reply without any token.", text)
    if cut and (usage.input_tokens or 0) + (usage.output_tokens or 0) >= limit.tokens:
        full = f"The prompt and the reply of {address} fill the context length of {limit.tokens:,} tokens."
        raise Permanent(f"{full} {limit.advice}", status=OK, received_bytes=len(text.encode("utf-8", "replace")))
    return Reply(
        texts=(clean(content),),
        finish=Finish.LENGTH if cut else Finish.STOP,
        usage=usage,
        path=path,
        model=clean(str(body.get("model") or "")),
        seconds=seconds,
        reasoning=thinking,
    )


def chat_error_of(
    problem: EndpointProblem, headers: Mapping[str, str], address: EndpointAddress, *, model: str, limit: ContextLimit
) -> ProviderError:
    """Return the merilo error for a problem: with advice if the model is missing or the prompt is too long."""
    if _OVER_CONTEXT.search(problem.message):
        message = f"{address.url} answered {problem.shown}. The prompt exceeds {limit.tokens:,} tokens."
        return Permanent(f"{message} {limit.advice}", status=problem.status)
    if problem.status == _NOT_FOUND and "model" in problem.message:
        return ProviderDown(
            f"{address.url} has no model {model!r}. Download it with: ollama pull {model}", status=problem.status
        )
    return error_of(problem, headers, address)


def _text(message: Json, name: str) -> str:
    text = message.get(name)
    return text if isinstance(text, str) else ""
