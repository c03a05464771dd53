"""Errors reported by endpoints, and the merilo error for each.

The mapping follows the providers' own pages on errors; tests/providers/test_errors.py names the page for each case.
And an error that no server reports: `PromptCheck` finds prompts of which only a part was read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.errors import Permanent, ProviderDown, ProviderError, RateLimited, Refused, Temporary
from merilo.judging.json_types import Json, as_list, as_object, loaded
from merilo.providers.base import Finish, Reply, ReplyPath, Request, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence


OK = 200
SERVER_ERRORS = 500
_MAX_TOKENS = 10**7  # no model reads or writes more in one request, so a larger count is an error of the server
_LONGEST_SHOWN = 300
_LONGEST_BODY = 10_000
_STATUS = re.compile(r"[45]\d\d")
_RATE_LIMITED = 429
_KEY_REFUSED = 401
_INVALID = 422
OVERLOADED = frozenset({503, 529})
"""Statuses of a server that has too much to do."""
_QUOTED_INPUT = re.compile(r"input_value=.*?(?=, input_type=|$)", re.DOTALL)
"""Matches the part of the request that an error of pydantic quotes."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)s")
"""A duration as Google's APIs write it, such as `34s`."""
_OBJECT: Final = {dict}


class _Cause(NamedTuple):
    """A kind of error: how it is recognised, the merilo error, and the advice printed after the endpoint's message."""

    error: type[ProviderError]
    statuses: Collection[int] = ()
    words: re.Pattern[str] | None = None
    """Matches the code or the message."""
    only: Collection[int] = range(1_000)
    """The statuses with which the words count."""
    advice: str = ""
    """May contain `{0.check_key}` and `{0.check_place}` of the address."""
    quoted: bool = True
    """False if the endpoint's message may quote a part of the key."""

    def fits(self, problem: EndpointProblem) -> bool:
        """Return True for an error of this kind."""
        said = self.words is not None and self.words.search(f"{problem.code} {problem.message}")
        return problem.status in self.statuses or bool(said and problem.status in self.only)


def _cause(error: type[ProviderError], words: str = "", advice: str = "", **more: Any) -> _Cause:  # Any: fields
    return _Cause(error, words=re.compile(words, re.IGNORECASE) if words else None, advice=advice, **more)


_TOO_LONG: Final = _cause(
    Permanent,
    r"context[ _-]?(?:length|window|size|limit)|(?:max|maximum|range of) (?:prompt|input|model|sequence)[ _]?length|"
    r"(?:prompt|input|messages?|requests?)`? (?:is|are|was|text is) too l|longer than the m(?:ax|odel)|"
    r"too many (?:\w+ )?tokens|reduce the length|max_new_tokens`? must be|less than \d+ tokens|max_tokens_exceeded|"
    r"(?:prompt|input|request|token count|number of tokens).{0,60}(?:exceed|larger than|greater than).{0,40}"
    r"(?:tokens?\b|length)|exceed.{0,30}(?:max length|token limit)",
    only=frozenset(range(1_000)) - {_KEY_REFUSED, _RATE_LIMITED},
)
"""The prompt does not fit. A shorter reply limit is tried once."""
_FORM: Final = _Cause(Permanent)
"""All other errors. If the message names a part of the request, the next form of this part is tried."""
_CAUSES: Final = (
    _cause(Refused, r"^(?:content_filter|content_policy_violation|ResponsibleAIPolicyViolation)\b"),
    _cause(
        ProviderDown,
        r"^(?:insufficient_quota|credit_balance_exhausted|billing_error|enforced_spend_limit_reached)\b|"
        r"^(?:organization|project)_(?:spend|usage)_limit_exceeded\b|credit balance is too low|"
        r"reached your (?:specified )?(?:workspace )?API usage limits",
        "The account has reached its spending limit.",
        statuses=(402,),
        only=range(SERVER_ERRORS),
    ),
    _cause(ProviderDown, r"^\S*PerDay|tokens per day", "The daily quota is used up."),
    _TOO_LONG,
    _cause(ProviderDown, r"^(?:invalid_api_key|API_KEY_INVALID)\b", statuses=(_KEY_REFUSED,), quoted=False),
    _cause(ProviderDown, "^AccessDenied", "The key lacks the permission: {0.check_key}.", statuses=(403,)),
    _cause(
        ProviderDown,
        r"^model_not_found\b|model identifier is invalid|on-demand throughput|inference profile",
        "{0.check_place}",
        statuses=(301, 302, 303, 307, 308, 404, 405),
    ),
    _cause(ProviderDown, r"^FAILED_PRECONDITION\b"),  # the country, billing
    _cause(RateLimited, "^ServiceQuotaExceeded", statuses=(_RATE_LIMITED,)),
    _cause(  # retried for minutes, as after "too many requests"
        RateLimited,
        r"\bloading\b|warm(?:ing|s)?[ -]?up|cold start|start(?:ing|s) up|initiali[sz]ing|not (?:yet )?ready",
        "The model is being loaded.",
        only=(424, 425, 502, 503),
    ),
    # 101 and 204 come from gateways: they hold no reply, and no error either
    _Cause(Temporary, (*range(300), 408, 409, 424, 425, *range(SERVER_ERRORS, 600))),
)
"""The causes, the first that matches counts. Refusals, keys, quotas and places are never tried again."""


@dataclass(frozen=True, slots=True)
class EndpointProblem:
    """An error as the endpoint reports it."""

    status: int
    message: str
    code: str = ""
    parameter: str = ""
    body: str = ""
    """The beginning of the whole answer."""
    received_bytes: int = 0
    """The size of a body with HTTP status 200 that reports a server error: a model may have run."""
    retry_after_s: float | None = None
    """Seconds to wait, if the body states them."""

    @property
    def shown(self) -> str:
        """Status and message, truncated for display."""
        return f"{self.status}: {excerpt(self.message)}"

    @property
    def cause(self) -> _Cause:
        """The kind of error."""
        return next((each for each in _CAUSES if each.fits(self)), _FORM)

    @property
    def too_long(self) -> bool:
        """True if the prompt, or prompt and reply together, exceed what the model reads."""
        return self.cause is _TOO_LONG

    def cleaned(self, clean: Callable[[str], str]) -> EndpointProblem:
        """Return the problem without secrets."""
        message, code, parameter, body = map(clean, (self.message, self.code, self.parameter, self.body))
        return replace(self, message=message, code=code, parameter=parameter, body=body)


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """The endpoint as shown in messages: its address, and what to check if it accepts no request at all."""

    url: str
    check_key: str
    check_place: str


def unusable(sentence: str, text: str) -> Temporary:
    """Return the error for a body with HTTP status 200 that cannot be used. A model may have run for it."""
    return Temporary(sentence, status=OK, received_bytes=len(text.encode("utf-8", "replace")))


class Received(NamedTuple):
    """The body of an answer with HTTP status 200, as an object and as text, and what else is in its reply."""

    body: Json
    text: str
    path: ReplyPath
    clean: Callable[[str], str]
    """Removes secrets from a text."""
    address: str
    seconds: float = 0.0

    def reply(self, text: str, finish: Finish, usage: Usage, reasoning: str = "", *, model: str = "model") -> Reply:
        """Return the reply with one text. `model`: the field with the name of the model."""
        name = self.clean(str(self.body.get(model) or ""))
        return Reply((self.clean(text),), finish, usage, self.path, name, self.seconds, reasoning=reasoning)

    def without(self, what: str) -> Temporary:
        """Return the error for a body without what was expected, such as "message"."""
        return unusable(f"{self.address} sent no {what} but: {excerpt(self.clean(self.text))!r}.", self.text)


def text_in(fields: Json, name: str) -> str:
    """Return the text in a field; empty for anything else."""
    text = fields.get(name)
    return text if isinstance(text, str) else ""


def message_in(text: str) -> Json:
    """Return the JSON object in a body, in a list of one object, or in events; empty if the body is anything else."""
    try:
        value = loaded(text)
    except ValueError:
        return _streamed(text)
    # Google's compatible endpoint wraps its errors in a list.
    items = None if type(value) in _OBJECT else as_list(value)
    return json_object(items[0] if items is not None and len(items) == 1 else value) or {}


def _streamed(text: str) -> Json:
    """Return the chat completion in server-sent events, or their error; empty if it is incomplete or none."""
    body: Json = {}
    pieces: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    events = [line[5:].strip() for line in text.split("\n") if line.startswith("data:")]
    for event in events:
        if (found := message_in(event) if event.startswith("{") else {}).get("error"):
            return found
        body |= {name: value for name, value in found.items() if value is not None}
        for choice in filter(None, map(json_object, as_list(found.get("choices")) or ())):
            delta = json_object(choice.get("delta") or choice.get("message")) or {}
            own = pieces[str(choice.get("index"))]
            for name, value in (*delta.items(), ("arguments", called_with(delta)), ("", choice.get("finish_reason"))):
                if isinstance(value, str) and value:
                    own[name].append(value)
    if not any("" in own for own in pieces.values()) and "[DONE]" not in events:
        return {}
    joined = [{name: "".join(parts) for name, parts in own.items()} for own in pieces.values()]
    choices = [{"message": {**own, "function_call": own}, "finish_reason": own.get("")} for own in joined]
    return {**body, "choices": choices}


def called_with(message: Json) -> object:
    """Return the arguments of the first tool call of a message; None without one."""
    calls = as_list(message.get("tool_calls")) or ({"function": message.get("function_call")},)
    return (json_object((json_object(calls[0]) or {}).get("function")) or {}).get("arguments")


def json_object(value: Any) -> Json | None:
    """Return the value if it is an object of JSON that was just parsed, so that its keys are text; otherwise None."""
    return value if type(value) in _OBJECT else None


def count(value: object) -> int | None:
    """Return the value if it can be a number of tokens, otherwise None."""
    # the exact type, which bool is not: values of JSON have no other
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS else None


def problem_in(status: int, body: Json, text: str) -> EndpointProblem | None:
    """Return the error that an answer reports, also in a body with status 200; None for a reply.

    `body` is the parsed object of `text`.
    """
    if status == OK and (not body.get("error") or body.get("choices")):
        return None
    error = body.get("error", body)
    fields = as_object(error) or {}
    fields = as_object(fields.get("detail")) or fields  # TypeSafe
    message, parameter = _message(fields)
    details = [detail for each in as_list(fields.get("details")) or () if (detail := as_object(each)) is not None]
    code = _code(fields, details)
    delays = (_DURATION.fullmatch(str(detail.get("retryDelay") or "")) for detail in details)
    wait_s = next((float(delay[1]) for delay in delays if delay is not None), None)
    wait_s = _number(str(body.get("estimated_time"))) if wait_s is None else wait_s  # a model that is being loaded
    received = 0
    if status == OK:
        number = str(fields.get("code") or code)
        status = int(number) if _STATUS.fullmatch(number) else SERVER_ERRORS
        received = len(text.encode("utf-8", "replace")) if status >= SERVER_ERRORS else 0
    if not message:  # a 422 of another form may repeat the request
        message = error if isinstance(error, str) else code if status == _INVALID and body else text
    message = _QUOTED_INPUT.sub("", message)
    return EndpointProblem(status, message, code, parameter, text[:_LONGEST_BODY], received, wait_s)


def error_of(problem: EndpointProblem, headers: Mapping[str, str], address: EndpointAddress) -> ProviderError:
    """Return the merilo error for a problem."""
    cause, status = problem.cause, problem.status
    message = f"{address.url} answered {problem.shown}".rstrip(".") + "."
    if not cause.quoted:
        message = f"{address.url} rejected the key ({status}); {address.check_key}."
    message = f"{message} {cause.advice.format(address)}".rstrip()
    wait_s = retry_after_s(headers)
    wait_s = problem.retry_after_s if wait_s is None else wait_s
    if cause.error is RateLimited or (cause.error is Temporary and status in OVERLOADED and wait_s is not None):
        error: ProviderError = RateLimited(message, retry_after_s=wait_s, status=status)
    else:
        error = cause.error(message, status=status)
    error.received_bytes = problem.received_bytes
    return error


def retry_after_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Return the seconds to wait that the headers state, in milliseconds, seconds or as a date; None without one."""
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


def _code(fields: Json, listed: Sequence[Json]) -> str:
    """Return the most specific code: that of the details, the error's own, its type or status, or Azure's inner one.

    A number repeats the HTTP status, so it is returned only if there is nothing else.
    """
    details, inner = as_object(fields.get("details")) or {}, as_object(fields.get("innererror")) or {}
    own = fields.get("code")
    number = isinstance(own, int) or (isinstance(own, str) and own.isdecimal())
    found = details.get("error_code") or _detail_code(listed) or (None if number else own)
    named = (fields.get(name) for name in ("error_type", "type", "status"))
    return str(found or next(filter(None, named), None) or inner.get("code") or own or "")


def _detail_code(details: Sequence[Json]) -> object:
    """Return the exhausted quota, or the reason, in the list of details that Google's APIs send; None without it."""
    violations = (as_object(each) or {} for detail in details for each in as_list(detail.get("violations")) or ())
    quota = next((str(each["quotaId"]) for each in violations if each.get("quotaId")), None)
    return quota or next((detail["reason"] for detail in details if detail.get("reason")), None)


def _message(error: Json) -> tuple[str, str]:
    """Return the message and the parameter it is about; also from a list of errors, as FastAPI returns them."""
    detail = error.get("detail")
    faults = [fault for item in as_list(detail) or () if (fault := as_object(item)) is not None]
    if faults:
        places = [".".join(map(str, as_list(fault.get("loc")) or ())) for fault in faults]
        messages = [f"{place}: {fault.get('msg', '')}" for place, fault in zip(places, faults, strict=True)]
        return "; ".join(messages), places[0] if len(places) == 1 else ""
    message = error.get("message", detail)
    message = message if isinstance(message, str) else ""
    if "n_prompt_tokens" in error and "n_ctx" in error:  # llama.cpp
        message += f" (prompt: {error['n_prompt_tokens']} tokens, context: {error['n_ctx']} tokens)"
    return message, str(error.get("param") or "")


# -- servers that read only a part of a long prompt and report no error -----------------------------------
# Ollama, for example, removes the beginning of a prompt that exceeds its context length, by default 4,096 tokens. The
# only trace is the number of prompt tokens in the reply: it is too low for the length of the prompt. The check is a
# heuristic; design/providers.md has its error rates.

PLAUSIBLE_CHARACTERS_PER_TOKEN: Final = 8
"""Maximum mean characters per token of a plausible token count; six tokenizers stayed below 6.1 in 15 languages."""
_MIN_FRACTION: Final = 0.6
"""Fraction of the expected tokens below which a prompt counts as truncated."""
_MIN_TOKENS: Final = 256
"""Smallest count that is checked: no server truncates to fewer tokens, but some report a constant such as 0 or 1."""
_LEARNING: Final = 8
"""Number of prompts of similar characters from which the tokens per character are learnt."""
_MAX_LEARNT: Final = 64
_SAME_COUNTS: Final = 3
"""Number of replies with the same count that show a limit, if their prompts differ in length."""
_GROWTH: Final = 1.3
"""Ratio of the lengths of two prompts that cannot have the same number of tokens."""
_MAX_TRUNCATED: Final = 3
"""Number of truncated prompts at which the run stops."""
_RUN: Final = re.compile(r"(.)\1{3,15}", re.DOTALL)
"""Repetitions of one character that count as one, such as blanks in a table. The longest such tokens in o200k and
cl100k have 128 characters, which are eight of these."""
INCREASE_CONTEXT: Final = (
    "Increase the server's context length (vLLM: --max-model-len, llama.cpp: -c, LM Studio: in the settings of the "
    "model), or use --judge ollama:MODEL if the server is Ollama."
)


def without_runs(text: str) -> str:
    """Shorten runs of one character. A model reads a run in a few tokens, but it may write it token by token."""
    return _RUN.sub(r"\1", text)


class _Prompt(NamedTuple):
    characters: int
    tokens: int


class PromptCheck:
    """Compares the token counts of one connection's replies with the lengths of the prompts."""

    def __init__(self, shown_url: str, *, advice: str = INCREASE_CONTEXT) -> None:
        """`advice` tells the user what to do about truncated prompts."""
        self._shown_url = shown_url
        self._advice = advice
        self._learnt: dict[int, list[_Prompt]] = defaultdict(list)
        """The first prompts by density, see `_density`."""
        self._ratios: dict[int, float] = {}
        """Tokens per character by density, as far as learnt."""
        self._same: dict[int, tuple[int, int]] = {}
        """Token count → number of replies and length of the shortest prompt."""
        self._largest = 0
        """Largest token count of a prompt that was read whole."""
        self._truncated = 0

    def error(self, request: Request, reply: Reply) -> ProviderError | None:
        """Return the error of a reply whose prompt was truncated by the server; None for all other replies.

        It is ProviderDown from the third truncated prompt on, which stops the run.
        """
        tokens = reply.usage.input_tokens
        if tokens is None or tokens < _MIN_TOKENS or hasattr(request, "questions"):  # their tokens count, too
            return None
        expected = self._expected_if_truncated([message.text for message in request.messages], tokens)
        if expected is None:
            self._largest = max(self._largest, tokens)
            return None
        self._truncated += 1
        message = (
            f"{self._shown_url} read only {tokens:,} of about {expected:,} tokens of a prompt and reported no error. "
            f"{self._advice}"
        )
        if self._truncated >= _MAX_TRUNCATED:
            return ProviderDown(f"{message} The run stops after {_MAX_TRUNCATED} such replies.")
        return Permanent(message, received_bytes=sum(len(text.encode("utf-8", "replace")) for text in reply.texts))

    def _expected_if_truncated(self, texts: Sequence[str], tokens: int) -> int | None:
        """Return the expected tokens of the prompt if its count is too low; None if it is plausible."""
        characters = sum(map(len, texts))
        seen, shortest = self._same.get(tokens, (0, characters))
        self._same[tokens] = (seen + 1, min(shortest, characters))
        density = _density(texts, characters)
        per_character = self._ratios.get(density, 2.0 / PLAUSIBLE_CHARACTERS_PER_TOKEN)
        least = _MIN_FRACTION * per_character if density in self._ratios else 1.0 / PLAUSIBLE_CHARACTERS_PER_TOKEN
        group = self._learnt[density]
        if len(group) < _MAX_LEARNT:
            group.append(_Prompt(characters, tokens))
            if len(group) >= _LEARNING:  # the shortest quarter is the least likely to be truncated
                shortest_ones = sorted(group)[: max(2, len(group) // 4)]
                self._ratios[density] = median(each.tokens / each.characters for each in shortest_ones)
        expected = round(characters * per_character)
        if expected <= self._largest:  # the server has read longer prompts
            return None
        if seen + 1 >= _SAME_COUNTS and characters > _GROWTH * shortest:
            return expected
        if tokens >= least * characters:
            return None
        # Long runs of one character are few tokens.
        characters = sum(len(without_runs(text)) for text in texts)
        expected = round(characters * per_character)
        return expected if tokens < least * characters and expected > self._largest else None


def _density(texts: Sequence[str], characters: int) -> int:
    """Return four times the mean bytes per character, rounded: in one script, tokens per character are alike."""
    if all(map(str.isascii, texts)):
        return 4 if characters else 0
    size = sum([len(text.encode("utf-8", "replace")) for text in texts])
    return round(4 * size / characters)
