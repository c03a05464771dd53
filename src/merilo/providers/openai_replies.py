"""What comes back from a chat completions endpoint: replies, and problems as our errors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from merilo.errors import Permanent, ProviderDown, ProviderError, RateLimited, Refused, Temporary
from merilo.judging.untyped import as_list, as_object, loaded
from merilo.providers.base import Finish, Reply, ReplyPath, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.judging.untyped import Json

_LONGEST_SHOWN = 300
_MOST_TOKENS = 10**12  # more than any request has: a count beyond is a fault of the server
_LOOKED_AT = 2_000
_OK = 200
_STATUS = re.compile(r"[45]\d\d")
_DOWN = frozenset({301, 302, 303, 307, 308, 401, 402, 403, 404, 405})
_TEMPORARY = frozenset({408, 409, 425})
_RATE_LIMITED = 429
_SERVER_ERRORS = 500
_FINISH = {"length": Finish.LENGTH, "max_tokens": Finish.LENGTH, "content_filter": Finish.REFUSED}


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as the endpoint tells it."""

    status: int
    message: str
    code: str = ""
    parameter: str = ""

    @property
    def shown(self) -> str:
        """Status and message, cut to a length for people."""
        return f"{self.status}: {_excerpt(self.message)}"


def problem_in(status: int, text: str) -> Problem | None:
    """The error that an answer tells, also where it hides in a body with status 200; None for a reply."""
    if status == _OK and '"error"' not in text[:_LOOKED_AT]:
        return None
    told = _object_in(text)
    if status == _OK and (not told.get("error") or told.get("choices")):
        return None
    error = told.get("error", told)
    fields = as_object(error) or {}
    message, parameter = _message(fields)
    code = str(fields.get("code") or fields.get("type") or "")
    if status == _OK:
        status = int(code) if _STATUS.fullmatch(code) else _SERVER_ERRORS
    return Problem(status, message or (error if isinstance(error, str) else text), code, parameter)


def error_of(problem: Problem, headers: Mapping[str, str], address: str, model: str) -> ProviderError:
    """The problem as one of our errors."""
    status, code = problem.status, problem.code
    told = f"{address} answered {problem.shown}"
    if code in {"content_filter", "content_policy_violation"}:
        return Refused(f"{told}.", status=status)
    if code == "insufficient_quota":
        return ProviderDown(f"{told}. The account has no credit left.", status=status)
    if status == _RATE_LIMITED:
        return RateLimited(f"{told}.", retry_after_s=retry_after_s(headers), status=status)
    if status in {401, 403}:
        return ProviderDown(f"{address} refused the key ({status}); check the variable that holds it.", status=status)
    if status in _DOWN or code == "model_not_found":
        return ProviderDown(
            f"{told}. Check the base URL (most end in /v1) and the model name {model!r}.", status=status
        )
    if status in _TEMPORARY or status >= _SERVER_ERRORS:
        return Temporary(f"{told}.", status=status)
    return Permanent(f"{told}.", status=status)


def retry_after_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """The seconds that the headers ask to wait, given in milliseconds, seconds or as a date; None without."""
    for name, unit_s in (("retry-after-ms", 0.001), ("Retry-After", 1.0)):
        value = headers.get(name, "").strip()
        seconds = _number(value)
        if seconds is not None:
            return max(0.0, seconds * unit_s)
        try:
            return max(0.0, (parsedate_to_datetime(value) - (now or datetime.now(UTC))).total_seconds())
        except (TypeError, ValueError, OverflowError):
            continue
    return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def reply_of(text: str, *, path: ReplyPath, clean: Callable[[str], str], address: str) -> Reply:
    """The reply in a body. Raises Temporary for a body that is none."""
    told = _object_in(text)
    choices = as_list(told.get("choices"))
    if not choices:
        raise Temporary(f"{address} sent no chat completion but: {_excerpt(clean(text))!r}.", status=_OK)
    read = [_Choice(clean(text), finish) for text, finish in map(_choice, choices)]
    fine = [choice for choice in read if choice.finish is not Finish.REFUSED]
    cut = any(choice.finish is Finish.LENGTH for choice in fine)
    return Reply(
        texts=tuple(choice.text for choice in fine or read),
        finish=Finish.REFUSED if not fine else Finish.LENGTH if cut else Finish.STOP,
        usage=usage_of(as_object(told.get("usage")) or {}),
        path=path,
        model=clean(str(told.get("model") or "")),
    )


class _Choice(NamedTuple):
    text: str
    finish: Finish


def _choice(choice: object) -> _Choice:
    fields = as_object(choice) or {}
    message = as_object(fields.get("message")) or {}
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        return _Choice(refusal, Finish.REFUSED)
    content = message.get("content")
    parts = as_list(content)
    if parts is not None:
        content = "".join(str((as_object(part) or {}).get("text") or "") for part in parts)
    finish = _FINISH.get(str(fields.get("finish_reason")), Finish.STOP)
    return _Choice(content if isinstance(content, str) else "", finish)


def usage_of(told: Json, *, output: int | None = None) -> Usage:
    """The tokens that a reply's usage tells; `output`: what stands where it tells none."""
    made = _count(told.get("completion_tokens"))
    details = as_object(told.get("prompt_tokens_details"))
    cached = told.get("prompt_cache_hit_tokens") if details is None else details.get("cached_tokens")
    return Usage(_count(told.get("prompt_tokens")), output if made is None else made, _count(cached))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None


def _message(error: Json) -> tuple[str, str]:
    """The message and the parameter it is about; also from a list of faults, as FastAPI gives them."""
    detail = error.get("detail")
    faults = [fault for item in as_list(detail) or () if (fault := as_object(item)) is not None]
    if faults:
        places = [".".join(map(str, as_list(fault.get("loc")) or ())) for fault in faults]
        said = [f"{place}: {fault.get('msg', '')}" for place, fault in zip(places, faults, strict=True)]
        return "; ".join(said), places[0].rpartition(".")[2] if len(places) == 1 else ""
    message = error.get("message", detail)
    return (message if isinstance(message, str) else ""), str(error.get("param") or "")


def _object_in(text: str) -> Json:
    """The JSON object that a text is; empty for anything else."""
    try:
        return as_object(loaded(text)) or {}
    except ValueError:
        return {}


def _excerpt(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + " ..."
