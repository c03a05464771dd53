"""What asking takes, in requests, tokens, money and time: the parts of an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.providers.prices import Price

LOOKED_AT: Final = 2_000
"""Samples whose plans an estimate runs dry, spread evenly over a larger data set."""
_CHARACTERS_PER_TOKEN: Final = 4


def tokens_in(characters: int) -> int:
    """About how many tokens a text of so many characters is, where nothing was measured."""
    return -(-characters // _CHARACTERS_PER_TOKEN)


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
