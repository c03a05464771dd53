"""Replies of Anthropic's Messages API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.judging.json_types import as_list, as_object
from merilo.providers.base import Finish, Reply, Usage
from merilo.providers.openai_replies import count
from merilo.providers.problems import excerpt, unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.judging.json_types import Json
    from merilo.providers.base import ReplyPath

_FINISH = {
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSED,
}
"""All other reasons (end_turn, stop_sequence, tool_use, pause_turn) leave a text that can be parsed."""


def message_of(
    body: Json, text: str, *, path: ReplyPath, clean: Callable[[str], str], address: str, seconds: float = 0.0
) -> Reply:
    """Return the reply in a body, given as an object and as text. Raises Temporary for a body that is not a message."""
    blocks = as_list(body.get("content"))
    if blocks is None:
        raise unusable(f"{address} sent no message but: {excerpt(clean(text))!r}.", text)
    finish = _FINISH.get(str(body.get("stop_reason")), Finish.STOP)
    answer = "".join(map(_text, blocks))
    if finish is Finish.REFUSED and not answer:
        answer = str((as_object(body.get("stop_details")) or {}).get("explanation") or "")
    return Reply(
        texts=(clean(answer),),
        finish=finish,
        usage=_usage(as_object(body.get("usage")) or {}),
        path=path,
        model=clean(str(body.get("model") or "")),
        seconds=seconds,
        reasoning="".join(map(_thinking, blocks)),
    )


def _text(block: object) -> str:
    """Return the text of a block; empty for a block with the model's reasoning."""
    fields = as_object(block) or {}
    text = fields.get("text") if fields.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def _thinking(block: object) -> str:
    thinking = (as_object(block) or {}).get("thinking")
    return thinking if isinstance(thinking, str) else ""


def _usage(usage: Json) -> Usage:
    """Return the tokens of a message. The API counts cached and written tokens separately from the other input."""
    fresh = count(usage.get("input_tokens"))
    cached, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
        output_tokens=count(usage.get("output_tokens")),
        cached_tokens=cached,
        written_tokens=written,
    )
