"""What asking takes, in requests, tokens, money and time: the parts of an estimate."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from merilo.providers.base import REPLY_LIMITS, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from merilo.providers.base import Request
    from merilo.providers.prices import Price

LOOKED_AT: Final = 2_000
"""Samples whose plans an estimate runs dry, spread evenly over a larger data set."""
_CHARACTERS_PER_TOKEN: Final = 4
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


def most_tokens_of(request: Request, body: Mapping[str, object] = _NOTHING) -> Usage:
    """What a request can take: a token a byte in, what a provider puts around it included, and its limit out.

    No tokenizer in use makes more tokens of a text than it has bytes. `body`: what the user has the provider send
    besides, which may set another limit. A request without a limit is taken to get at most 4,096 tokens, one for
    vectors none.
    """
    texts = [*_texts(request), json.dumps(body, default=str)] if body else [*_texts(request)]
    read = sum(map(_bytes, texts)) + _AROUND_TEXT_TOKENS * len(texts) + _AROUND_TOKENS
    if request.schema is not None:
        read += sum(map(_compact(_Same(request.schema)).count, ",:"))  # where it is written with blanks
    limits = [body[name] for name in REPLY_LIMITS if name in body] or [request.max_tokens]
    limit = max((each for each in limits if isinstance(each, int)), default=_UNLIMITED_TOKENS)
    replies = body.get("n", request.samples)
    written = limit * replies if isinstance(replies, int) and request.messages else 0
    return Usage(read, written, 0)


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
    """What is likely to become of the questions to a cascade, by what its judges answered of held-out records."""

    name: str
    questions: float
    answered: float
    """Those that are answered before the last judge."""
    checked: float
    """Those of them about which the last judge is asked too."""


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
