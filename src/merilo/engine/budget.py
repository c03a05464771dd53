"""What one call may spend: money, requests, seconds. It holds for this call; earlier parts of a run are not counted."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil, floor, inf, log10
from typing import TYPE_CHECKING

from merilo.engine.limits import PRICED
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
_MUCH = 1e9
_LARGEST = 1e15
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
            value: object = getattr(self, name)
            if value is None or (isinstance(value, float | int) and value is not True and 0 <= value <= _LARGEST):
                continue
            raise UsageError(f"{name} must be a number from 0 to {_LARGEST:g}, got {value!r:.60}.")


def check_prices(budget: Budget, judges: Iterable[Judge], price: Pricer) -> None:
    """Raises UsageError when a cost is to be held that cannot be known for one of these judges."""
    if budget.max_cost_usd is None:
        return
    for judge in each_judge(judges):
        provider: Provider | None = getattr(judge, "provider", None)
        if provider is not None and price(provider, PRICED) is None:
            raise UsageError(_unpriced(judge.name))


def _unpriced(name: str) -> str:
    return (
        f"What {name} costs is not known, so max_cost_usd (--max-cost) cannot be held; give its price (--prices), "
        "or limit max_requests (--max-requests) instead."
    )


class Limited(Enum):
    """What a limit means for a request that may not go now."""

    LATER = "later"
    """It may fit once what is in the air has turned out cheaper than what was set aside for it."""
    DEAR = "dear"
    """It alone could pass the limit of cost; a cheaper one may fit."""
    OVER = "over"
    """Nothing may be sent any more."""


@dataclass(frozen=True, slots=True)
class Over:
    """A limit that the next request would pass."""

    limited: Limited
    sentence: str = ""
    """Says so, where nothing may be sent any more."""


class Spending:
    """What a call has used of its budget, with what is set aside for requests in the air."""

    def __init__(self, budget: Budget, price: Pricer) -> None:
        self.cost_usd = 0.0
        self.sent = 0
        self.needs_price = budget.max_cost_usd is not None
        self._budget = budget
        self._price = price
        self._aside_usd = 0.0
        self._flying = 0
        self._began = time.monotonic()

    @property
    def seconds_left(self) -> float:
        """Until the time is up; infinite without such a limit."""
        most = self._budget.max_seconds
        return inf if most is None else self._began + most - time.monotonic()

    @property
    def time_is_up(self) -> str:
        """The limit of time, passed."""
        return f"The limit of {self._budget.max_seconds or 0:g} seconds (max_seconds, --max-seconds) is reached."

    def too_dear(self, cost_usd: float) -> str:
        """The limit of cost, of which too little is left for a request of this cost at most."""
        most = _dollars(self._budget.max_cost_usd or 0.0)
        sent = "." if self.sent else "; with less, nothing is sent."
        return (
            f"The limit of {most} (max_cost_usd, --max-cost) is reached: {_dollars(self.cost_usd)} is spent, "
            f"and the next request can cost up to {_dollars(cost_usd)}{sent}"
        )

    def most_usd(self, provider: Provider, most: Usage) -> float:
        """The most that a request can cost which takes no more than this. Raises UsageError when it is not known.

        Its input may be read from the provider's prompt cache or be written to it, which has prices of its own.
        """
        usages = (most, *(replace(most, **{name: most.input_tokens}) for name in ("cached_tokens", "written_tokens")))
        known = [cost for usage in usages if (cost := self._price(provider, usage)) is not None]
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
            return Over(Limited.OVER, self.time_is_up)
        if free:
            return None
        if budget.max_requests is not None and self.sent >= budget.max_requests:
            said = f"The limit of {budget.max_requests:,} requests (max_requests, --max-requests) is reached."
            return Over(Limited.OVER, said)
        if budget.max_cost_usd is None:
            return None
        left = budget.max_cost_usd * (1 + _ROUNDING) - self.cost_usd - cost_usd
        if left < 0:
            return Over(Limited.DEAR)
        return Over(Limited.LATER) if self._aside_usd > left else None

    def begin(self, aside_usd: float) -> None:
        """A request is begun, and so much set aside for it."""
        self.sent += 1
        self._flying += 1
        self._aside_usd += aside_usd

    def end(self, aside_usd: float, cost_usd: float) -> None:
        """A request has ended; `cost_usd` is what it cost."""
        self._flying -= 1
        self._aside_usd = max(0.0, self._aside_usd - aside_usd) if self._flying else 0.0  # no rest of rounding
        self.cost_usd += cost_usd


def _dollars(usd: float) -> str:
    """At least four digits behind the point, two that count where it is less, rounded up: `$1.2000`, `$0.0000032`."""
    if not _UNSEEN**2 <= usd < _MUCH:
        return f"${usd:.4f}" if usd < 1 else f"${usd:.4g}"
    digits = 4 if usd >= _CENT else 1 - floor(log10(usd))
    return f"${ceil(usd * 10**digits - _UNSEEN) / 10**digits:.{digits}f}"
