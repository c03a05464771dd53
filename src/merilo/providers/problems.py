"""Errors reported by endpoints, and the merilo error for each.

The mapping follows the providers' own pages on errors; tests/providers/test_errors.py names the page for each case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING, cast

from merilo.errors import Permanent, ProviderDown, ProviderError, RateLimited, Refused, Temporary
from merilo.judging.json_types import as_list, as_object, loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.judging.json_types import Json

OK = 200
SERVER_ERRORS = 500
_LONGEST_SHOWN = 300
_STATUS = re.compile(r"[45]\d\d")
_RATE_LIMITED = 429
_KEY_REFUSED = 401
_FORBIDDEN = 403
_DOWN = frozenset({301, 302, 303, 307, 308, 402, 403, 404, 405})
_TEMPORARY = frozenset({408, 409, 425})
_OVERLOADED = frozenset({503, 529})
_FILTERED = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})
_SPENT = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "enforced_spend_limit_reached",
        "billing_error",
    }
)
_SAYS_SPENT = re.compile(
    r"credit balance is too low|reached your (?:specified )?(?:workspace )?API usage limits", re.IGNORECASE
)
ABOUT_SIZE = re.compile(
    r"context length|maximum context|context window|too (?:large|long|many|high)|exceed|input token count",
    re.IGNORECASE,
)
"""Matches a message about the size of the request or a limit, not about an unsupported parameter."""


@dataclass(frozen=True, slots=True)
class EndpointProblem:
    """An error as the endpoint reports it."""

    status: int
    message: str
    code: str = ""
    parameter: str = ""
    received_bytes: int = 0
    """The size of a body with HTTP status 200 that reports a server error: a model may have run."""

    @property
    def shown(self) -> str:
        """Status and message, truncated for display."""
        return f"{self.status}: {excerpt(self.message)}"

    def cleaned(self, clean: Callable[[str], str]) -> EndpointProblem:
        """Return the problem without secrets."""
        return replace(self, message=clean(self.message), code=clean(self.code), parameter=clean(self.parameter))


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """The endpoint as shown in messages: its address, and what to check if it accepts no request at all."""

    url: str
    check_key: str
    check_place: str


def unusable(sentence: str, text: str) -> Temporary:
    """Return the error for a body with HTTP status 200 that cannot be used. A model may have run for it."""
    return Temporary(sentence, status=OK, received_bytes=len(text.encode("utf-8", "replace")))


def message_in(text: str) -> Json:
    """Return the JSON object in a body; empty if the body is anything else."""
    try:
        return json_object(loaded(text)) or {}
    except ValueError:
        return {}


def json_object(value: object) -> Json | None:
    """Return the value if it is an object of JSON that was just parsed, so that its keys are text; otherwise None."""
    return cast("Json", value) if isinstance(value, dict) else None


def problem_in(status: int, body: Json, text: str) -> EndpointProblem | None:
    """Return the error that an answer reports, also in a body with status 200; None for a reply.

    `body` is the parsed object of `text`.
    """
    if status == OK and (not body.get("error") or body.get("choices")):
        return None
    error = body.get("error", body)
    fields = as_object(error) or {}
    message, parameter = _message(fields)
    code = _code(fields)
    received = 0
    if status == OK:
        status = int(code) if _STATUS.fullmatch(code) else SERVER_ERRORS
        received = len(text.encode("utf-8", "replace")) if status >= SERVER_ERRORS else 0
    return EndpointProblem(status, message or (error if isinstance(error, str) else text), code, parameter, received)


def error_of(problem: EndpointProblem, headers: Mapping[str, str], address: EndpointAddress) -> ProviderError:
    """Return the merilo error for a problem."""
    error = _error_of(problem, headers, address)
    error.received_bytes = problem.received_bytes
    return error


def _error_of(problem: EndpointProblem, headers: Mapping[str, str], address: EndpointAddress) -> ProviderError:
    status, code = problem.status, problem.code
    message = f"{address.url} answered {problem.shown}"
    if code in _FILTERED:
        return Refused(f"{message}.", status=status)
    if code in _SPENT or (status < SERVER_ERRORS and _SAYS_SPENT.search(problem.message)):
        return ProviderDown(f"{message}. The account has reached its spending limit.", status=status)
    if status == _KEY_REFUSED or code == "invalid_api_key":  # its message is not shown: it may quote part of the key
        return ProviderDown(f"{address.url} rejected the key ({status}); {address.check_key}.", status=status)
    if status == _FORBIDDEN and ABOUT_SIZE.search(problem.message):
        return Permanent(f"{message}.", status=status)
    if status == _FORBIDDEN:
        return ProviderDown(f"{message}. The key lacks the permission: {address.check_key}.", status=status)
    if status in _DOWN or code == "model_not_found":
        return ProviderDown(f"{message}. {address.check_place}", status=status)
    return _temporary(problem, headers, message) or Permanent(f"{message}.", status=status)


def _temporary(problem: EndpointProblem, headers: Mapping[str, str], message: str) -> ProviderError | None:
    """Return the error of a request that may succeed later; None if it will not."""
    status, wait_s = problem.status, retry_after_s(headers)
    if status == _RATE_LIMITED or (status in _OVERLOADED and wait_s is not None):
        return RateLimited(f"{message}.", retry_after_s=wait_s, status=status)
    return Temporary(f"{message}.", status=status) if status in _TEMPORARY or status >= SERVER_ERRORS else None


def retry_after_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Return the seconds that the headers ask to wait, given in milliseconds, seconds or as a date; None without such a
    header.
    """
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


def excerpt(text: str) -> str:
    """Return the beginning of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + " ..."


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _code(fields: Json) -> str:
    """Return the most specific code: that of the details, the error's own, its type, or Azure's inner one."""
    details, inner = as_object(fields.get("details")) or {}, as_object(fields.get("innererror")) or {}
    found = details.get("error_code") or fields.get("code") or fields.get("type") or inner.get("code")
    return str(found or "")


def _message(error: Json) -> tuple[str, str]:
    """Return the message and the parameter it is about; also from a list of errors, as FastAPI returns them."""
    detail = error.get("detail")
    faults = [fault for item in as_list(detail) or () if (fault := as_object(item)) is not None]
    if faults:
        places = [".".join(map(str, as_list(fault.get("loc")) or ())) for fault in faults]
        messages = [f"{place}: {fault.get('msg', '')}" for place, fault in zip(places, faults, strict=True)]
        return "; ".join(messages), places[0].rpartition(".")[2] if len(places) == 1 else ""
    message = error.get("message", detail)
    return (message if isinstance(message, str) else ""), str(error.get("param") or "")
