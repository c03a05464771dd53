"""Budget of a run: money and requests over its whole directory, seconds in each call.

The maximum cost of a request is reserved and entered in the ledger before it is sent. Its reply settles the entry: at
the usage that the server reports, or at an estimate if that is missing. A request without a usable reply stays charged
for its input and for the bytes received. The price of the longest reply also stays reserved for it. design/engine.md
explains why.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil, floor, inf, log10
from typing import TYPE_CHECKING, Final, Literal, get_args

from merilo.engine.amounts import Settled, charged_tokens, charged_tokens_of
from merilo.engine.rate_limits import PRICED
from merilo.errors import ProviderError, Refused, Temporary, UsageError
from merilo.judges.routed import each_judge
from merilo.providers.base import Provider, Request, Usage
from merilo.providers.problems import OK
from merilo.runs.ledger import Balance, Charge, Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from merilo.judges.base import Judge

    Pricer = Callable[[Provider, Usage], float | None]
    """Returns the price of a usage at a provider, in USD; None if it is unknown."""

Unanswered = Literal["charged", "free"]
"""Treatment of requests that were sent and got no usable reply: charged, or free."""

_ROUNDING = 1e-9
_CENT = 0.01
_UNSEEN = 1e-6
_MUCH = 1e9
_REDIRECTS: Final = 300
_MAY_BE_BILLED: Final = frozenset({*range(OK, _REDIRECTS), 408, 499, 502, 504, 520, 524})
"""Statuses after which a model may have run and be billed: unusable replies, and timeouts reported by a gateway."""
UNPAID = Usage(0, 0, 0)
"""The usage of a request that brought no reply: providers bill replies."""


def own_price(provider: Provider, usage: Usage) -> float | None:
    """Return the price of this usage as the provider itself states it; None if unknown."""
    return provider.price_usd(usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """The limits of a run, None for no limit. A request that could exceed one is not sent.

    `max_cost_usd` and `max_requests` count the whole run directory, earlier calls included; `max_seconds` counts this
    call. `unanswered`: how to count requests that were sent and got no usable reply.
    """

    max_cost_usd: float | None = None
    max_requests: int | None = None
    max_seconds: float | None = None
    unanswered: Unanswered = "charged"

    def __post_init__(self) -> None:
        if self.unanswered not in get_args(Unanswered):
            raise UsageError(f"unanswered must be charged or free, got {self.unanswered!r:.60}.")


def check_prices(budget: Budget, judges: Iterable[Judge], price: Pricer) -> None:
    """Raise UsageError if the cost is limited and the price of one of these judges is unknown."""
    if budget.max_cost_usd is None:
        return
    for name, provider in providers_of(judges):
        if price(provider, PRICED) is None:
            raise UsageError(_unpriced(name))


def providers_of(judges: Iterable[Judge]) -> list[tuple[str, Provider]]:
    """Return the providers that these judges send to, each with its judge's name."""
    found = ((judge.name, getattr(judge, "provider", None)) for judge in each_judge(judges))
    return [(name, provider) for name, provider in found if provider is not None]


def _unpriced(name: str) -> str:
    return (
        f"The price of {name} is unknown, so max_cost_usd (--max-cost) cannot be enforced. Give its price (--prices), "
        "or limit max_requests (--max-requests) instead."
    )


def check_spent(path: Path, balance: Balance, budget: Budget) -> None:
    """Raise UsageError if the cost is limited and the amount that this run has already spent is unknown."""
    if budget.max_cost_usd is None or not (balance.answered.unpriced or balance.unanswered.unpriced):
        return
    raise UsageError(
        f"{path} holds requests of unknown price, so max_cost_usd (--max-cost) cannot be enforced. Limit max_requests "
        "(--max-requests) instead, or start a new run (--out): answers in the verdict cache are not paid for again."
    )


class BudgetDecision(Enum):
    """Decision of the cost limit on a request that may not be sent now."""

    LATER = "later"
    """It may fit once requests in flight have cost less than was reserved for them."""
    EXPENSIVE = "expensive"
    """It alone could exceed the cost limit; a cheaper request may fit."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The reason why no more requests are sent."""

    sentence: str
    limit: Literal["max_cost_usd", "max_requests"] | None = None
    """The limit of the run directory that was reached; None if it was another one, such as the time limit."""
    used: float = 0.0
    """The amount of the limit that is used, in USD or requests."""
    next: float = 0.0
    """The amount of the limit that the next request needs."""

    def raise_to(self, done: float) -> dict[str, float] | None:
        """Return the limit with which the run probably finishes, if it reached one with this fraction of samples done.

        It suffices for the next request, and for the remaining samples if they use as much as those that are done.
        """
        if self.limit is None:
            return None
        whole = (self.used / done if done else self.used) + self.next
        return {self.limit: ceil(whole) if self.limit == "max_requests" else _rounded_up(whole)}


class Spending:
    """The part of its budget that a run directory has used, with the amounts reserved for requests in flight."""

    def __init__(
        self, budget: Budget, price: Pricer, ledger: Ledger | None = None, *, elsewhere: Balance | None = None
    ) -> None:
        """`elsewhere`: what other run directories have spent of the same budget."""
        self.needs_price = budget.max_cost_usd is not None
        self.ledger = ledger or Ledger()
        self._elsewhere = elsewhere or Balance()
        self._budget = budget
        self.price = price
        self._where = "by these runs" if self._elsewhere.requests else "in this run directory"
        self._earlier = self.ledger.requests
        self.earlier_usd = self.cost_usd
        self._reserved_usd = 0.0
        self._in_flight = 0
        self._began = time.monotonic()

    @property
    def sent(self) -> int:
        """Requests that this call has sent."""
        return self.ledger.requests - self._earlier

    @property
    def requests(self) -> int:
        """Requests that count against the limit: all that were ever sent."""
        return self.ledger.requests + self._elsewhere.requests

    @property
    def cost_usd(self) -> float:
        """Amount spent so far in USD, without requests in flight."""
        spent = self.ledger.answered.usd + self._elsewhere.answered.usd
        if self._budget.unanswered == "charged":
            spent += self.ledger.unanswered.usd + self._elsewhere.unanswered.usd
        return spent

    @property
    def unanswered_usd(self) -> float:
        """Amount reserved for replies that were not received, but that the server may have written and billed."""
        if self._budget.unanswered == "free":
            return 0.0
        return self.ledger.unanswered.reply_usd + self._elsewhere.unanswered.reply_usd

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit; infinite without one."""
        most = self._budget.max_seconds
        return inf if most is None else self._began + most - time.monotonic()

    @property
    def time_limit_message(self) -> Reached:
        """The message for the time limit."""
        return Reached(f"Time limit of {self._budget.max_seconds or 0:g} s reached (--max-seconds).")

    def cost_reached(self, cost_usd: float) -> Reached:
        """Return the message for a cost limit that leaves too little for a request of at most this cost."""
        reserved, needed = self.unanswered_usd, self.cost_usd + self.unanswered_usd + cost_usd
        also = advice = ""
        if reserved:
            unanswered = self.ledger.unanswered.requests + self._elsewhere.unanswered.requests
            also = f" and up to {_dollars(reserved)} reserved for replies to {requests_text(unanswered, 'unanswered ')}"
            advice = ", or use --unanswered free if your server does not bill unanswered requests"
        return Reached(
            f"Cost limit of {_dollars(self._budget.max_cost_usd or 0.0)} reached (--max-cost): "
            f"{_dollars(self.cost_usd)} spent {self._where} so far{also}; "
            f"the next request can cost up to {_dollars(cost_usd)}. "
            f"Raise --max-cost to at least {_dollars(needed)} to continue{advice}.",
            "max_cost_usd",
            used=self.cost_usd + reserved,
            next=cost_usd,
        )

    @property
    def requests_reached(self) -> Reached:
        """The message for the limit of requests."""
        limit = self._budget.max_requests or 0
        return Reached(
            f"Limit of {requests_text(limit)} reached (--max-requests): {self.requests:,} sent {self._where} so far. "
            "Raise --max-requests to continue.",
            "max_requests",
            used=self.requests,
            next=1,
        )

    def max_cost_usd(self, provider: Provider, most: Usage) -> float:
        """Return the maximum cost of a request with at most this usage. Raises UsageError if it is unknown."""
        cost = self.highest_usd(provider, most)
        if cost is None:
            marks = provider.fingerprint()
            raise UsageError(_unpriced(str(marks.get("model") or marks.get("provider") or "a provider")))
        return cost

    def highest_usd(self, provider: Provider, usage: Usage) -> float | None:
        """Return the price of this usage if its input is charged at the provider's highest rate; None if unknown.

        Input may be read from the provider's prompt cache or written to it, which have separate prices.
        """
        names = ("cached_tokens", "written_tokens")
        usages = (usage, *(replace(usage, **{name: usage.input_tokens}) for name in names))
        return max((cost for each in usages if (cost := self.price(provider, each)) is not None), default=None)

    def check(self, cost_usd: float, *, free: bool = False) -> BudgetDecision | Reached | None:
        """Return what forbids one more request of at most this cost: the limit reached, if nothing more may be sent.

        `free`: it is not a request to a model, so only the time limit applies.
        """
        budget = self._budget
        if self.seconds_left <= 0:
            return self.time_limit_message
        if free:
            return None
        if (most := budget.max_requests) is not None and self.requests >= most:
            return self.requests_reached
        if budget.max_cost_usd is None:
            return None
        used, limit = self.cost_usd + self.unanswered_usd, budget.max_cost_usd
        left = limit * (1 + _ROUNDING) - used - cost_usd
        if left < 0:
            return BudgetDecision.EXPENSIVE
        return BudgetDecision.LATER if self._reserved_usd > left else None

    def charge(self, provider: Provider, request: Request, reply_tokens: int, *, priced: bool) -> Charge:
        """Return the charge for a request that is sent and not answered; `reply_tokens`: of its longest reply."""
        tokens, usd, whole_usd = charged_tokens_of(request), None, None
        if priced:
            usd = self.highest_usd(provider, Usage(tokens, 0, 0))
            whole_usd = self.highest_usd(provider, Usage(tokens, reply_tokens, 0))
        reply_usd = 0.0 if usd is None or whole_usd is None else whole_usd - usd
        return Charge(tokens, 0, usd, estimated=True, reply_tokens=reply_tokens, reply_usd=reply_usd)

    def begin(self, reserved_usd: float, charge: Charge) -> int:
        """Reserve this amount for a request, enter its charge if it is not answered, and return its entry."""
        entry = self.ledger.sent(charge)
        self._in_flight += 1
        self._reserved_usd += reserved_usd
        return entry

    def resume(self, reserved_usd: Iterable[float]) -> None:
        """Reserve these amounts for requests that an earlier call has sent and whose replies may still come."""
        for amount in reserved_usd:
            self._in_flight += 1
            self._reserved_usd += amount

    def replied(self, entry: int, reserved_usd: float, provider: Provider, settled: Settled) -> float | None:
        """Settle a request that was answered; return its cost, None if unknown."""
        usage = settled.usage
        price = self.highest_usd if settled.input_estimated else self.price
        cost, estimated = price(provider, usage), settled.estimated
        if cost is None and self.needs_price:  # a provider may know the price of one usage and not of another
            cost, estimated = reserved_usd, True
        self.ledger.replied(
            entry,
            Charge(usage.input_tokens, usage.output_tokens, cost, estimated, cached_tokens=usage.cached_tokens or 0),
        )
        self._release(reserved_usd)
        return cost

    def failed(self, entry: int, reserved_usd: float, error: ProviderError) -> None:
        """Settle a request without a usable reply. The charge depends on whether it was sent and may be billed."""
        if not error.sent:
            self.ledger.not_sent(entry)
        elif error.received_bytes:
            self.ledger.lost(entry, charged_tokens(error.received_bytes))
        elif isinstance(error, Refused):
            self.ledger.lost(entry, complete=True)  # a content filter reads the input, and no model has run
        # a model may have run; providers do not bill a request that was refused before, or failed
        elif isinstance(error, Temporary) if error.status is None else error.status in _MAY_BE_BILLED:
            self.ledger.leave(entry)
        else:
            self.ledger.not_billed(entry)
        self._release(reserved_usd)

    def refused(self, entry: int, reserved_usd: float) -> None:
        """Settle a request that was answered with an error that providers do not bill."""
        self.ledger.not_billed(entry)
        self._release(reserved_usd)

    def cancelled(self, entry: int, reserved_usd: float) -> None:
        """Remove a request that was not sent after all."""
        self.ledger.not_sent(entry)
        self._release(reserved_usd)

    def _release(self, reserved_usd: float) -> None:
        self._in_flight -= 1
        # exactly 0 without requests in flight, so that rounding errors do not accumulate
        self._reserved_usd = max(0.0, self._reserved_usd - reserved_usd) if self._in_flight else 0.0


def spent_record(balance: Balance, unanswered: Unanswered) -> dict[str, object]:
    """Return the spending of a run as it is written to `usage.json`; None for unknown amounts."""
    charged = balance.answered + balance.unanswered if unanswered == "charged" else balance.answered
    known = not charged.uncounted
    return {
        "requests": balance.requests,
        "input_tokens": charged.input_tokens if known else None,
        "output_tokens": charged.output_tokens if known else None,
        "cached_tokens": charged.cached_tokens,
        "cost_usd": None if charged.unpriced else charged.usd,
        "estimated_usd": None if charged.unpriced else charged.estimated_usd,
        "unanswered": balance.unanswered.requests,
        "unanswered_usd": balance.unanswered.reply_usd if unanswered == "charged" else 0.0,
    }


def requests_text(number: int, kind: str = "") -> str:
    """Return a number of requests as text: `1 request`, `2,000 requests`."""
    return f"{number:,} {kind}request{'s' * (number != 1)}"


def _dollars(usd: float) -> str:
    """Return an amount as text: two to four decimals, or two digits below a cent, rounded up: `$1.25`, `$0.0000032`."""
    if not _UNSEEN**2 <= usd < _MUCH:
        return f"${usd:.2f}" if usd < 1 else f"${usd:.4g}"
    text = f"{_rounded_up(usd):.{_decimals(usd)}f}"
    whole, _, decimals = text.partition(".")
    return f"${whole}.{decimals.rstrip('0'):0<2}"


def _rounded_up(usd: float) -> float:
    """Return the amount with four decimals, or with two digits if it is less than a cent, rounded up."""
    if not _UNSEEN**2 <= usd < _MUCH:
        return usd
    digits = _decimals(usd)
    return ceil(usd * 10.0**digits - _UNSEEN) / 10.0**digits


def _decimals(usd: float) -> int:
    return 4 if usd >= _CENT else 1 - floor(log10(usd))
