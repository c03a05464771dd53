"""Amounts of requests, tokens, money and time: the parts of a cost estimate."""

from __future__ import annotations

import itertools
import json
from dataclasses import astuple, dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.providers.base import REPLY_LIMITS, Reply, Request, Usage
from merilo.providers.problems import PLAUSIBLE_CHARACTERS_PER_TOKEN, without_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from merilo.providers.decision_request import DecisionQuestion

LOOKED_AT: Final = 2_000
"""Maximum number of samples whose plans an estimate runs dry, spread evenly over a larger data set."""
_CHARACTERS_PER_TOKEN: Final = 4
_BYTES_PER_CHARGED_TOKEN: Final = 3
"""Bytes per token in estimated charges, low enough that an estimate is rarely too low (design/engine.md). Six
tokenizers made 3.5 to 4.8 bytes of an English prompt into a token, and 2.1 or more in 14 other languages."""
_AROUND_TOKENS: Final = 500
"""Tokens that a provider may add to a request: message separators and instructions on the form of the reply."""
_AROUND_TEXT_TOKENS: Final = 8
"""Tokens that a provider may add to each text of a request."""
_UNLIMITED_TOKENS: Final = 4_096
"""Assumed maximum reply tokens of a request that sets no limit."""
_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


def tokens_in(characters: int) -> int:
    """Return the estimated tokens of a text with this many characters, if nothing was measured."""
    return -(-characters // _CHARACTERS_PER_TOKEN)


def tokens_of(request: Request) -> int:
    """Return characters / 4 of the text that the model reads: messages and schema, or the texts to embed."""
    return tokens_in(sum(map(len, _texts(request))))


def charged_tokens_of(request: Request) -> int:
    """Return the input tokens that a request is charged for if the server does not report them: one per three bytes."""
    return charged_tokens(_size(_texts(request)))


class Settled(NamedTuple):
    """The usage that a reply is charged for."""

    usage: Usage
    estimated: bool
    input_estimated: bool


def settled(request: Request, reply: Reply, *, charged: int | None = None, max_reply_tokens: int = 0) -> Settled:
    """Return the usage that the server reported, with an estimate for counts that are missing or implausibly low.

    A count is too low if its tokens would have more than eight characters on average. Usually it is 0. The estimate is
    computed from the texts. A reply without any text that reports no output, or 0, counts as a reply of the maximum
    length: a server can write a reply and withhold it, as a content filter does. No estimate exceeds that length.
    The reply of a decision model has no output tokens.

    `charged`: `charged_tokens_of` the request, if it is known.
    """
    usage = reply.usage
    read, written = usage.input_tokens, usage.output_tokens
    if hasattr(request, "questions"):  # no text is written; a request without a plausible count is charged as reserved
        known = read is not None and not _too_low(read, [request.messages[0].text])
        read = read if known else max_tokens_of(request).input_tokens
        return Settled(replace(usage, input_tokens=read, output_tokens=written or 0), not known, not known)
    if charged is None or read is None or read * PLAUSIBLE_CHARACTERS_PER_TOKEN < charged * _BYTES_PER_CHARGED_TOKEN:
        sent = _texts(request)  # otherwise the count is plausible, since a text has at most as many characters as bytes
        if read is None or (_too_low(read, sent) and _too_low(read, map(without_runs, sent))):
            read = charged_tokens_of(request)
            usage = Usage(read, written)
    wrote = (*reply.texts, reply.reasoning) if request.messages else ()
    if written is None or _too_low(written, wrote) or (not written and wrote):
        written = charged_tokens(_size(wrote)) if any(text.strip() for text in wrote) else max_reply_tokens
        written = min(written, max_reply_tokens) if max_reply_tokens else written
    input_estimated = read != reply.usage.input_tokens
    if not input_estimated and written == reply.usage.output_tokens:
        return Settled(usage, estimated=False, input_estimated=False)
    return Settled(replace(usage, output_tokens=written), estimated=True, input_estimated=input_estimated)


def max_tokens_of(request: Request, body: Mapping[str, object] = _NOTHING) -> Usage:
    """Return the maximum usage of a request: one input token per byte, plus what a provider adds, and its output limit.

    No tokenizer in use makes more tokens of a text than it has bytes. `body`: see `max_reply_tokens`.
    """
    texts = [*_texts(request), json.dumps(body, default=str)] if body else _texts(request)
    read = _size(texts) + _AROUND_TEXT_TOKENS * len(texts) + _AROUND_TOKENS
    if request.schema is not None:
        read += sum(map(_compact(request.schema).count, ",:"))  # a provider may write it with spaces
    return Usage(read, max_reply_tokens(request, body), 0)


def max_reply_tokens(request: Request, body: Mapping[str, object] = _NOTHING) -> int:
    """Return the maximum output tokens of a request: 4,096 if it sets no limit, 0 if it asks for vectors or decisions.

    `body`: request fields added by the user, which may set another limit.
    """
    if not request.messages or (type(request) is not Request and hasattr(request, "questions")):
        return 0
    if not body:
        limit = _UNLIMITED_TOKENS if request.max_tokens is None else request.max_tokens
        return limit * request.samples
    limits = [body[name] for name in REPLY_LIMITS if name in body] or [request.max_tokens]
    limit = max((each for each in limits if isinstance(each, int)), default=_UNLIMITED_TOKENS)
    replies = body.get("n", request.samples)
    return limit * replies if isinstance(replies, int) else 0


@dataclass(frozen=True, slots=True)
class Amount:
    """Requests with their tokens, cost and time. Requests and tokens may be fractions if they are means."""

    requests: float = 0
    input_tokens: float = 0
    output_tokens: float = 0
    usd: float | None = 0.0
    """Cost in USD; None if the price of any part is unknown."""
    seconds: float | None = 0.0
    """Seconds of waiting for replies one after another; None if any part was not measured."""

    def __add__(self, other: Amount) -> Amount:
        pairs = zip(astuple(self), astuple(other), strict=True)
        sums: Any = (None if None in pair else sum(pair) for pair in pairs)  # Any: numbers, None for unknown ones
        return Amount(*sums)

    def times(self, factor: float) -> Amount:
        """Return the amount multiplied by a factor, such as the ratio of all samples to those estimated."""
        values: Any = astuple(self)  # Any: numbers, None for unknown ones
        return Amount(*(each and each * factor for each in values))


@dataclass(frozen=True, slots=True)
class MetricEstimate:
    """Estimated questions and cost of one metric. Amounts exclude answers that the run or the cache holds already."""

    metric: str
    questions: int
    """Questions over the estimated samples, including those with a known answer."""
    held: int
    """Number of these questions that the run or the cache has answered already."""
    alone: Amount
    """Its amount if it were the only metric."""
    added: Amount
    """Its amount in addition to the metrics listed above it. These add up to the total."""


def _texts(request: Request) -> list[str]:
    texts = [message.text for message in request.messages]
    if request.schema is not None:
        texts += (_compact(request.schema),)
    if type(request) is Request:
        return texts
    inputs: tuple[str, ...] = getattr(request, "inputs", ())  # of a request for vectors
    texts += inputs
    questions: tuple[DecisionQuestion, ...] = getattr(request, "questions", ())  # of a request to a decision model
    for question in questions:
        texts += (question.text, *itertools.chain.from_iterable(question.fields))
        texts += (f"{option.value} {option.description}" for option in question.options)
    return texts


def charged_tokens(size: int) -> int:
    """Return the output tokens that this many bytes of a reply are charged for if the server does not report them."""
    return -(-size // _BYTES_PER_CHARGED_TOKEN)


def _too_low(tokens: int, texts: Iterable[str]) -> bool:
    """Return True if these texts cannot consist of this few tokens."""
    most = tokens * PLAUSIBLE_CHARACTERS_PER_TOKEN + PLAUSIBLE_CHARACTERS_PER_TOKEN - 1
    return sum(map(len, texts)) > most


def _size(texts: Sequence[str]) -> int:
    """Return the bytes of all texts."""
    return sum(map(len, texts if all(map(str.isascii, texts)) else [text.encode("utf-8", "replace") for text in texts]))


def _compact(schema: Mapping[str, object]) -> str:
    """Return a schema as JSON, cached by identity: the schemas of a kind are built once and shared."""
    number = id(schema)
    if number not in _known_schemas or _known_schemas[number][0] is not schema:
        if len(_known_schemas) >= _MAX_KNOWN:
            _known_schemas.clear()
        _known_schemas[number] = (schema, json.dumps(schema, separators=(",", ":")))
    return _known_schemas[number][1]


_known_schemas: Final[dict[int, tuple[Mapping[str, object], str]]] = {}
_MAX_KNOWN: Final = 1_024
