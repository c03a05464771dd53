"""Replies of chat completions endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from merilo.judging.json_types import as_list
from merilo.providers.base import Finish, Reply, ReplyPath, Usage
from merilo.providers.problems import excerpt, json_object, unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.judging.json_types import Json

_MAX_TOKENS = 10**7  # no model reads or writes more in one request, so a larger count is an error of the server
_FINISH = {"length": Finish.LENGTH, "max_tokens": Finish.LENGTH}
_FILTERED = "content_filter"
"""Beginning of the reasons for a text that a filter removed; some servers add which filter."""
_FINISHED = frozenset(
    {"", "none", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls", "function_call"}
)
_BROKEN = frozenset({"error", "abort"})
"""Reasons with which servers report that a completion failed."""


def reply_of(
    body: Json, text: str, *, path: ReplyPath, clean: Callable[[str], str], address: str, seconds: float = 0.0
) -> Reply:
    """Return the reply in a body, given as an object and as text. Raises Temporary if it is not a completion.

    A server with a reasoning parser may return the requested JSON as reasoning; it is read there if the content is
    empty.
    """
    choices = as_list(body.get("choices"))
    if not choices:
        raise unusable(f"{address} sent no chat completion but: {excerpt(clean(text))!r}.", text)
    read = [_choice(choice, structured=path is not ReplyPath.TEXT) for choice in choices]
    usage = usage_of(json_object(body.get("usage")) or {})
    empty = not any(choice.text.strip() for choice in read)
    if empty and any(choice.broken for choice in read):
        raise unusable(f"{address} reported that the completion failed: {excerpt(clean(text))!r}.", text)
    stopped = all(choice.finish is Finish.STOP for choice in read)
    if path is not ReplyPath.TEXT and empty and stopped and usage.output_tokens == 0:  # free text may be empty
        advice = "The prompt may exceed the model's context length; increase it on the server."
        raise unusable(f"{address} sent a reply without any token. {advice}", text)
    fine = [choice for choice in read if choice.finish is not Finish.REFUSED]
    cut = any(choice.finish is Finish.LENGTH for choice in fine)
    return Reply(
        texts=tuple(clean(choice.text) for choice in fine or read),
        finish=Finish.REFUSED if not fine else Finish.LENGTH if cut else Finish.STOP,
        usage=usage,
        path=path,
        model=clean(str(body.get("model") or "")),
        seconds=seconds,
        reasoning="".join(choice.reasoning for choice in read),
    )


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
    if structured and reason in _FINISHED and not content.strip() and "{" in reasoning:
        content = reasoning
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
    made = count(usage.get("completion_tokens"))
    details = json_object(usage.get("prompt_tokens_details"))
    cached = count(usage.get("prompt_cache_hit_tokens") if details is None else details.get("cached_tokens"))
    written = count(None if details is None else details.get("cache_write_tokens"))
    read, apart = count(usage.get("prompt_tokens")), (cached or 0) + (written or 0)
    return Usage(
        input_tokens=read + apart if read is not None and apart > read else read,
        output_tokens=output if made is None else made,
        cached_tokens=cached,
        written_tokens=written,
    )


def count(value: object) -> int | None:
    """Return the value if it can be a number of tokens, otherwise None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS else None
