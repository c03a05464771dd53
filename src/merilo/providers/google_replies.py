"""Replies and errors of Google's `generateContent`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.errors import ProviderDown
from merilo.judging.json_types import as_list
from merilo.providers.base import Finish, Reply, ReplyPath, Usage
from merilo.providers.openai_replies import count
from merilo.providers.problems import error_of, excerpt, json_object, unusable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.errors import ProviderError
    from merilo.judging.json_types import Json
    from merilo.providers.problems import EndpointAddress, EndpointProblem

_PRECONDITION: Final = "FAILED_PRECONDITION"
_FINISHED: Final = frozenset({"", "STOP", "FINISH_REASON_UNSPECIFIED"})
_MALFORMED: Final = "MALFORMED_RESPONSE"
_FILTERED: Final = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR"}
)
"""Reasons that withhold the rest of a reply, even if it has begun."""


def content_of(
    body: Json, text: str, *, path: ReplyPath, clean: Callable[[str], str], address: str, seconds: float = 0.0
) -> Reply:
    """Return the reply in a body, given as an object and as text. Raises Temporary for a body that is not a reply.

    A candidate may lack its content or the parts of it. A blocked prompt has no candidate at all.
    """
    candidates = as_list(body.get("candidates")) or []
    blocked = (json_object(body.get("promptFeedback")) or {}).get("blockReason")
    if not candidates and not blocked:
        raise unusable(f"{address} sent no candidate but: {excerpt(clean(text))!r}.", text)
    candidate = json_object(candidates[0]) or {} if candidates else {}
    parts = [json_object(part) or {} for part in as_list(_content(candidate).get("parts")) or ()]
    answer = _joined(parts, thought=False)
    reason = str(blocked or candidate.get("finishReason") or "")
    finish = Finish.REFUSED if blocked else _finish(reason, answer)
    lacking = path is not ReplyPath.TEXT and finish is Finish.STOP and not answer.strip()  # free text may be empty
    if reason == _MALFORMED or lacking:
        raise unusable(f"{address} sent a candidate without a text (finish reason {clean(reason)!r}).", text)
    if finish is Finish.REFUSED:  # a text that a filter ended is not an answer
        answer = str(
            candidate.get("finishMessage") or f"{'The prompt' if blocked else 'The reply'} was blocked: {reason}"
        )
    return Reply(
        texts=(clean(answer),),
        finish=finish,
        usage=_usage(json_object(body.get("usageMetadata")) or {}),
        path=path,
        model=clean(str(body.get("modelVersion") or "")),
        seconds=seconds,
        reasoning=_joined(parts, thought=True),
    )


def content_error_of(problem: EndpointProblem, headers: Mapping[str, str], address: EndpointAddress) -> ProviderError:
    """Return the merilo error for a problem. A failed precondition (the country, billing) holds for every request."""
    if problem.code == _PRECONDITION:
        return ProviderDown(f"{address.url} answered {problem.shown}.", status=problem.status)
    return error_of(problem, headers, address)


def _finish(reason: str, answer: str) -> Finish:
    if reason == "MAX_TOKENS":
        return Finish.LENGTH
    ended = reason in _FILTERED or (reason not in _FINISHED and not answer.strip())
    return Finish.REFUSED if ended else Finish.STOP


def _content(candidate: Json) -> Json:
    return json_object(candidate.get("content")) or {}


def _joined(parts: list[Json], *, thought: bool) -> str:
    return "".join(str(part.get("text") or "") for part in parts if bool(part.get("thought")) is thought)


def _usage(usage: Json) -> Usage:
    """Return the tokens of a reply; thoughts are billed as output and counted separately from the candidates."""
    written, thoughts = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
    known = written is not None or thoughts is not None
    return Usage(
        input_tokens=count(usage.get("promptTokenCount")),
        output_tokens=(written or 0) + (thoughts or 0) if known else None,
        cached_tokens=count(usage.get("cachedContentTokenCount")),
    )
