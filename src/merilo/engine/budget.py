"""What one call may spend: money, requests, seconds. It holds for this call; earlier parts of a run are not counted."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import ceil, floor, inf, log10
from typing import TYPE_CHECKING

from merilo.errors import UsageError
from merilo.judges.cascade import each_judge
from merilo.providers.base import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from merilo.judges.base import Judge
    from merilo.providers.base import Provider

    Pricer = Callable[[Provider, Usage], float | None]
    """What so much costs at a provider, in USD; None when nobody knows."""

_ROUNDING = 1e-9
_CENT = 0.01
_UNSEEN = 1e-6
_PRICED = Usage(1_000, 1_000, 0)
UNPAID = Usage(0, 0, 0)
"""The usage of a request that brought no reply: providers bill replies."""


def own_price(provider: Provider, usage: Usage) -> float | None:
    """What the provider itself says that so much costs."""
    return provider.price_usd(usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Limits of one call, None for none; a request that could pass one is not begun. Raises UsageError below 0."""

    max_cost_usd: float | None = None
    max_requests: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_cost_usd", "max_requests", "max_seconds"):
            value: float | None = getattr(self, name)
            if value is not None and not 0 <= value < inf:
                raise UsageError(f"{name} must be at least 0, got {value}.")


def check_prices(budget: Budget, judges: Iterable[Judge], price: Pricer) -> None:
    """Raises UsageError when a cost is to be held that cannot be known for one of these judges."""
    if budget.max_cost_usd is None:
        return
    for judge in each_judge(judges):
        provider: Provider | None = getattr(judge, "provider", None)
        if provider is not None and price(provider, _PRICED) is None:
            raise UsageError(_unpriced(judge.name))


def _unpriced(name: str) -> str:
    return (
        f"What {name} costs is not known, so max_cost_usd (--max-cost) cannot be held; give its price (--prices), "
        "or limit max_requests (--max-requests) instead."
    )


@dataclass(frozen=True, slots=True)
class Over:
    """A limit that the next request would pass, as a sentence."""

    sentence: str
    may_pass: bool = False
    """True when what is set aside for requests in the air may turn out to be enough for it."""


class Spending:
    """What a call has used of its budget, with what is set aside for requests in the air."""

    def __init__(self, budget: Budget, price: Pricer) -> None:
        self.cost_usd = 0.0
        self.sent = 0
        self.needs_price = budget.max_cost_usd is not None
        self._budget = budget
        self._price = price
        self._aside_usd = 0.0
        self._began = time.monotonic()

    @property
    def seconds_left(self) -> float:
        """Until the time is up; infinite without such a limit."""
        most = self._budget.max_seconds
        return inf if most is None else self._began + most - time.monotonic()

    @property
    def time_is_up(self) -> Over:
        """The limit of time, passed."""
        return Over(f"The limit of {self._budget.max_seconds or 0:g} seconds (max_seconds, --max-seconds) is reached.")

    def most_usd(self, provider: Provider, most: Usage) -> float:
        """The most that a request can cost which takes no more than this. Raises UsageError when it is not known.

        All of its input may be written to the provider's prompt cache, which may cost more, or none.
        """
        costs = [self._price(provider, usage) for usage in (most, replace(most, written_tokens=most.input_tokens))]
        known = [cost for cost in costs if cost is not None]
        if not known:
            marks = provider.fingerprint()
            raise UsageError(_unpriced(str(marks.get("model") or marks.get("provider") or "a provider")))
        return max(known)

    def over(self, cost_usd: float, *, free: bool = False) -> Over | None:
        """The limit that one more request, of this cost at most, could pass; None when it passes none.

        `free`: it is no request to a model, so only the time counts.
        """
        budget = self._budget
        if self.seconds_left <= 0:
            return self.time_is_up
        if free:
            return None
        if budget.max_requests is not None and self.sent >= budget.max_requests:
            return Over(f"The limit of {budget.max_requests:,} requests (max_requests, --max-requests) is reached.")
        most = budget.max_cost_usd
        if most is not None and self.cost_usd + self._aside_usd + cost_usd > most + _ROUNDING:
            said = (
                f"The limit of {_dollars(most)} (max_cost_usd, --max-cost) is reached: {_dollars(self.cost_usd)} is "
                f"spent, and the next request can cost up to {_dollars(cost_usd)}."
            )
            return Over(said, may_pass=self._aside_usd > _ROUNDING)
        return None

    def begin(self, aside_usd: float) -> None:
        """A request is begun, and so much set aside for it."""
        self.sent += 1
        self._aside_usd += aside_usd

    def end(self, aside_usd: float, cost_usd: float) -> None:
        """A request has ended; `cost_usd` is what it cost."""
        self._aside_usd = max(0.0, self._aside_usd - aside_usd)
        self.cost_usd += cost_usd


def _dollars(usd: float) -> str:
    """At least four digits behind the point, two that count where it is less, rounded up: `$1.2000`, `$0.0000032`."""
    digits = 4 if usd <= 0 or usd >= _CENT else 1 - floor(log10(usd))
    return f"${ceil(usd * 10**digits - _UNSEEN) / 10**digits:.{digits}f}"
