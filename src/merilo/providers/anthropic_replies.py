"""What comes back from Anthropic's Messages API, as replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.judging.untyped import as_list, as_object
from merilo.providers.base import Finish, Reply, Usage
from merilo.providers.openai_replies import count
from merilo.providers.problems import excerpt, unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.judging.untyped import Json
    from merilo.providers.base import ReplyPath

_FINISH = {
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSED,
}
"""All other reasons (end_turn, stop_sequence, tool_use, pause_turn) leave a text that can be read."""


def message_of(
    told: Json, text: str, *, path: ReplyPath, clean: Callable[[str], str], address: str, seconds: float = 0.0
) -> Reply:
    """The reply in a body, given as an object and as text. Raises Temporary for a body that is none."""
    blocks = as_list(told.get("content"))
    if blocks is None:
        raise unusable(f"{address} sent no message but: {excerpt(clean(text))!r}.", text)
    finish = _FINISH.get(str(told.get("stop_reason")), Finish.STOP)
    said = "".join(map(_text, blocks))
    if finish is Finish.REFUSED and not said:
        said = str((as_object(told.get("stop_details")) or {}).get("explanation") or "")
    return Reply(
        texts=(clean(said),),
        finish=finish,
        usage=_usage(as_object(told.get("usage")) or {}),
        path=path,
        model=clean(str(told.get("model") or "")),
        seconds=seconds,
        reasoning="".join(map(_thinking, blocks)),
    )


def _text(block: object) -> str:
    """The text of a block; what the model thought is not its answer."""
    fields = as_object(block) or {}
    text = fields.get("text") if fields.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def _thinking(block: object) -> str:
    thinking = (as_object(block) or {}).get("thinking")
    return thinking if isinstance(thinking, str) else ""


def _usage(told: Json) -> Usage:
    """The tokens of a message. The API counts what was cached or written apart from the rest of the input."""
    fresh = count(told.get("input_tokens"))
    cached, written = count(told.get("cache_read_input_tokens")), count(told.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
        output_tokens=count(told.get("output_tokens")),
        cached_tokens=cached,
        written_tokens=written,
    )
