"""What asking takes, in requests, tokens, money and time: the parts of an estimate."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.providers.base import REPLY_LIMITS, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from merilo.providers.base import Reply, Request
    from merilo.providers.prices import Price

LOOKED_AT: Final = 2_000
"""Samples whose plans an estimate runs dry, spread evenly over a larger data set."""
_CHARACTERS_PER_TOKEN: Final = 4
_BYTES_PER_CHARGED_TOKEN: Final = 3
"""Of what is charged by estimate. Six tokenizers made 3.5 to 4.8 bytes of a prompt in English into a token, and 2.1 or
more in 14 other languages (design/money.md), so an estimate is rarely too low."""
_PLAUSIBLE_CHARACTERS_PER_TOKEN: Final = 8
"""The longest tokens, on average, that a count is believed with; the same tokenizers stayed below 6.1."""
_RUN: Final = re.compile(r"(.)\1{3,15}", re.DOTALL)
"""Repetitions of one character that count as one, such as blanks in a table. The longest tokens of such a run that
o200k and cl100k know have 128 characters, which are eight of these."""
_AROUND_TOKENS: Final = 500
"""What a provider may put around a request: marks of a conversation, words about the form of the reply."""
_AROUND_TEXT_TOKENS: Final = 8
"""The same around each of its texts."""
_UNLIMITED_TOKENS: Final = 4_096
"""Taken to be the longest reply where a request sets no limit."""
_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


def tokens_in(characters: int) -> int:
    """About how many tokens a text of so many characters is, where nothing was measured."""
    return -(-characters // _CHARACTERS_PER_TOKEN)


def tokens_of(request: Request) -> int:
    """Characters / 4 of what the model is to read: messages and schema, or the texts to embed."""
    return tokens_in(sum(map(len, _texts(request))))


def charged_tokens_of(request: Request) -> int:
    """The input tokens that a request is charged for if the server does not report them: one for three bytes."""
    return _charged(_texts(request))


class Settled(NamedTuple):
    """The usage that a reply is charged for."""

    usage: Usage
    estimated: bool
    input_estimated: bool


def settled(request: Request, reply: Reply, *, max_reply_tokens: int = 0) -> Settled:
    """Return the usage that the server reported, with an estimate for what is missing or too low to be true.

    A count is too low if its tokens would have more than eight characters on average. Usually it is 0. The estimate is
    made from the texts. A reply without any text that reports no output, or 0, is taken to be as long as it may be: a
    server can write a reply and withhold it, as a content filter does.
    """
    usage = reply.usage
    read, written = usage.input_tokens, usage.output_tokens
    sent = tuple(_texts(request))
    if read is None or (_too_low(read, sent) and _too_low(read, map(_without_runs, sent))):
        read = charged_tokens_of(request)
        usage = Usage(read, written)
    wrote = (*reply.texts, reply.reasoning) if request.messages else ()
    if written is None or _too_low(written, wrote) or (not written and wrote):
        written = _charged(wrote) if any(text.strip() for text in wrote) else max_reply_tokens
    estimated = read != reply.usage.input_tokens, written != reply.usage.output_tokens
    if not any(estimated):
        return Settled(usage, estimated=False, input_estimated=False)
    return Settled(replace(usage, output_tokens=written), estimated=True, input_estimated=estimated[0])


def most_tokens_of(request: Request, body: Mapping[str, object] = _NOTHING) -> Usage:
    """What a request can take: a token a byte in, what a provider puts around it included, and its limit out.

    No tokenizer in use makes more tokens of a text than it has bytes. `body`: see `max_reply_tokens`.
    """
    texts = [*_texts(request), json.dumps(body, default=str)] if body else [*_texts(request)]
    read = sum(map(_bytes, texts)) + _AROUND_TEXT_TOKENS * len(texts) + _AROUND_TOKENS
    if request.schema is not None:
        read += sum(map(_compact(_Same(request.schema)).count, ",:"))  # where it is written with blanks
    return Usage(read, max_reply_tokens(request, body), 0)


def max_reply_tokens(request: Request, body: Mapping[str, object] = _NOTHING) -> int:
    """Return the maximum output tokens of a request: 4,096 if it sets no limit, and 0 if it is for vectors.

    `body`: fields that the user has the provider add to the request, which may set another limit.
    """
    limits = [body[name] for name in REPLY_LIMITS if name in body] or [request.max_tokens]
    limit = max((each for each in limits if isinstance(each, int)), default=_UNLIMITED_TOKENS)
    replies = body.get("n", request.samples)
    return limit * replies if isinstance(replies, int) and request.messages else 0


@dataclass(frozen=True, slots=True)
class Amount:
    """Requests and what they take; tokens and requests may be fractions where they are means."""

    requests: float = 0
    input_tokens: float = 0
    output_tokens: float = 0
    usd: float | None = 0.0
    """None: unknown, at least for a part."""
    seconds: float | None = 0.0
    """Of waiting for replies one after another; None: not measured, at least for a part."""

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            _sum(self.usd, other.usd),
            _sum(self.seconds, other.seconds),
        )

    def times(self, factor: float) -> Amount:
        """As much for so many times the samples."""
        return Amount(
            self.requests * factor,
            self.input_tokens * factor,
            self.output_tokens * factor,
            None if self.usd is None else self.usd * factor,
            None if self.seconds is None else self.seconds * factor,
        )


@dataclass(frozen=True, slots=True)
class MetricEstimate:
    """What one metric would ask. Amounts are of what the run and the cache do not hold yet."""

    metric: str
    questions: int
    """Over the samples looked at, answered ones included."""
    held: int
    """Those of them that the run or the cache has answered already."""
    alone: Amount
    """If it were the only metric."""
    added: Amount
    """What it adds to the metrics above it; these add up to the whole."""
    at_most: Amount
    """As many questions as it can ask, each with every re-ask, every reply cut off by its limit."""


@dataclass(frozen=True, slots=True)
class CascadeEstimate:
    """How many questions to a cascade reach its last judge, by what is known before the pilot."""

    name: str
    questions: float
    """Questions that are not answered yet. If no threshold passes, all of them reach the last judge."""
    pilot: float
    """Pilot questions: these reach the last judge in any case."""
    audited: float
    """Audit questions if all others are answered before the last judge."""
    fewest: float
    """Questions that reach the last judge in that case: the pilot, the audit and kinds that it alone answers."""
    alone: Amount
    """What the pilot and the audit add: questions that are packed otherwise, and here are requests of their own."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an evaluation would ask and cost."""

    data: str
    judge: str
    samples: int
    looked_at: int
    """Samples whose plans were run dry; fewer than `samples` where the amounts are scaled up."""
    metrics: tuple[MetricEstimate, ...]
    left_out: Mapping[str, str]
    typical: Amount
    at_most: Amount
    seconds: float | None
    """Of the whole run with so many requests in the air; None where no reply's time is known."""
    concurrency: int
    measured: bool
    """Whether tokens and seconds are means of the run itself, at least for a part of the questions."""
    prices: tuple[Price, ...]
    """The prices behind the amounts."""
    unpriced: tuple[str, ...]
    """Models whose price is unknown."""
    cascades: tuple[CascadeEstimate, ...] = ()


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _texts(request: Request) -> Iterator[str]:
    for message in request.messages:
        yield message.text
    inputs: tuple[str, ...] = getattr(request, "inputs", ())  # of a request for vectors
    yield from inputs
    if request.schema is not None:
        yield _compact(_Same(request.schema))


def charged_tokens(size: int) -> int:
    """Return the output tokens that this many bytes of a reply are charged for if the server does not report them."""
    return -(-size // _BYTES_PER_CHARGED_TOKEN)


def _charged(texts: Iterable[str]) -> int:
    return charged_tokens(sum(map(_bytes, texts)))


def _too_low(tokens: int, texts: Iterable[str]) -> bool:
    """Return True if these texts cannot be this few tokens."""
    most = tokens * _PLAUSIBLE_CHARACTERS_PER_TOKEN + _PLAUSIBLE_CHARACTERS_PER_TOKEN - 1
    return sum(map(len, texts)) > most


def _without_runs(text: str) -> str:
    """Shorten runs of one character. A model reads a run in a few tokens, but it may write it token by token."""
    return _RUN.sub(r"\1", text)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


@lru_cache(maxsize=64)
def _compact(schema: _Same) -> str:
    return json.dumps(schema.value, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Same:
    """A schema, equal to itself only: those of a kind are built once and shared."""

    value: Mapping[str, object]

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value
