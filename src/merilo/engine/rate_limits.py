"""Rate limits of endpoints: concurrency, and requests and tokens per minute, shared by all runs of the process.

One `Limiter` represents one endpoint (kind of provider, address and model) in the whole process, for all threads and
event loops. Each run joins it with a `LimiterHandle`, a handle with the run's own limits.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.engine.amounts import max_reply_tokens, max_tokens_of, tokens_of
from merilo.engine.leases import LeasedMeter
from merilo.errors import UsageError
from merilo.judging.json_types import as_object
from merilo.providers.base import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.engine.leases import SharedLimits
    from merilo.providers.base import Provider, Request

CONCURRENCY: Final = 16
_FIRST_OUTPUT_TOKENS: Final = 256
_MINUTE_S: Final = 60.0
PRICED: Final = Usage(1_000, 1_000, 0)
"""A usage that has a price above 0 at any provider that is not free."""
_BURST_S: Final = 1.0
"""Seconds within which unused rate may be used up later. The rate is reduced so that no minute exceeds the limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestLimits:
    """A run's limits for each endpoint; None for no limit. Raises UsageError for values that are not positive."""

    concurrency: int = CONCURRENCY
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout_s: float | None = None
    """Seconds until a request is cancelled; None: the provider's own timeout."""

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise UsageError(f"concurrency must be at least 1, got {self.concurrency}.")
        for name in ("requests_per_minute", "tokens_per_minute", "timeout_s"):
            value: float | None = getattr(self, name)
            if value is not None and not 0 < value < inf:
                raise UsageError(f"{name} must be more than 0, got {value}.")


class Permit(NamedTuple):
    """Permission to send one request; `number` counts the requests of the endpoint."""

    number: int
    tokens: int


class Limiter:
    """State of one endpoint in this process; use it through `join`. Thread-safe.

    A "too many requests" reply (429) halves the requests that may be in flight, once for all requests sent before it.
    Each full round of successes adds one, until every run is back at its own limit.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._lock = threading.Lock()
        self._shares: list[LimiterHandle] = []
        self._meters: dict[tuple[str, float], Meter | LeasedMeter] = {}
        self._in_flight = 0
        self._number = 0
        self._cut_at = 0
        self._width = inf
        self._good = 0
        self._paused_until = 0.0

    def join(
        self, limits: RequestLimits, wake: Callable[[], None], shared: SharedLimits | None = None
    ) -> LimiterHandle:
        """Return a handle for a run. `wake` is called, from any thread, when a request that had to wait may be sent.

        `shared`: the rates are limits of several processes together; None: of this process.
        """
        share = LimiterHandle(self, limits, wake)
        with self._lock:
            for kind, rate in (("requests", limits.requests_per_minute), ("tokens", limits.tokens_per_minute)):
                if rate is not None:
                    new = Meter(rate) if shared is None else LeasedMeter(shared, self.title, kind, rate)
                    share.meters.append((kind, self._meters.setdefault((kind, rate), new)))
            self._shares.append(share)
        return share

    @property
    def in_flight(self) -> int:
        """Requests in flight, of all runs."""
        return self._in_flight

    @property
    def width(self) -> float:
        """Estimated number of requests that the endpoint accepts at once; infinite until it answers "too many
        requests".
        """
        return self._width

    @property
    def paused_s(self) -> float:
        """Seconds until the endpoint may receive requests again; 0 if it may now."""
        return max(0.0, self._paused_until - time.monotonic())

    def take(self, share: LimiterHandle, tokens: int) -> Permit | float:
        """See `LimiterHandle.take`."""
        with self._lock:
            now = time.monotonic()
            if now < self._paused_until:
                return self._paused_until - now
            if self._in_flight >= self._room(share) or self._exceeds_fair_share(share):
                share.waiting = True
                return inf
            if share.meters:
                wait = max(meter.wait_s(now, _weight(kind, tokens)) for kind, meter in share.meters)
                if wait > 0:
                    return wait
            # the meters of all runs, since each run's rate limits what the endpoint receives in total
            for (kind, _), meter in self._meters.items():
                meter.charge(now, _weight(kind, tokens))
            share.waiting = False
            share.in_flight += 1
            self._in_flight += 1
            self._number += 1
            return Permit(self._number, tokens)

    def land(self, share: LimiterHandle, permit: Permit, *, good: bool, tokens: int | None) -> None:
        """See `LimiterHandle.land`."""
        with self._lock:
            self._landed(share)
            if tokens is not None:
                for (kind, _), meter in self._meters.items():
                    if kind == "tokens":
                        meter.adjust(tokens - permit.tokens)
            if good and self._width < inf:
                self._good += 1
                if self._good >= self._width:
                    self._good = 0
                    self._width += 1
                # no run is restricted by it any longer
                if self._width >= max((each.limits.concurrency for each in self._shares), default=1):
                    self._width = inf
        self._wake_others(share)

    def limited(self, share: LimiterHandle, permit: Permit, pause_s: float) -> None:
        """See `LimiterHandle.limited`."""
        with self._lock:
            if permit.number > self._cut_at:  # requests sent before the last reduction do not count against it
                self._width = max(1.0, min(self._width, self._in_flight) // 2)
                self._cut_at = self._number
                self._good = 0
            self._landed(share)
            self._paused_until = max(self._paused_until, time.monotonic() + pause_s)
        self._wake_others(share)

    def leave(self, share: LimiterHandle) -> None:
        """See `LimiterHandle.leave`."""
        with self._lock:
            self._in_flight -= share.in_flight
            share.in_flight = 0
            if share in self._shares:
                self._shares.remove(share)
            if not self._shares:  # the next run measures the width again; rates and pauses stay in force
                self._width, self._good = inf, 0
        self._wake_others(share)

    def _room(self, share: LimiterHandle) -> float:
        return min(share.limits.concurrency, self._width)

    def _exceeds_fair_share(self, share: LimiterHandle) -> bool:
        """Return True if this run has its fair share of the endpoint and another run waits that could send now."""
        if len(self._shares) == 1:
            return False
        if not any(each.waiting and each is not share and self._in_flight < self._room(each) for each in self._shares):
            return False
        active = sum(each.waiting or each.in_flight > 0 or each is share for each in self._shares)
        return share.in_flight >= max(1, self._room(share) // active)

    def _landed(self, share: LimiterHandle) -> None:
        if share.in_flight:  # not after `leave`
            share.in_flight -= 1
            self._in_flight -= 1

    def _wake_others(self, share: LimiterHandle) -> None:
        for each in [each for each in self._shares if each.waiting and each is not share]:
            each.wake()


class LimiterHandle:
    """One run's handle of a limiter; its methods may be called from the run's thread only."""

    def __init__(self, limiter: Limiter, limits: RequestLimits, wake: Callable[[], None]) -> None:
        self.limits = limits
        self.wake = wake
        self.meters: list[tuple[str, Meter | LeasedMeter]] = []
        self.in_flight = 0
        self.waiting = False
        self._limiter = limiter

    def take(self, tokens: int) -> Permit | float:
        """Return a permit to send a request of this many tokens now, or the seconds after which to ask again.

        The seconds are infinite if a request has to finish first. `wake` is called when another run's request finishes.
        """
        return self._limiter.take(self, tokens)

    def land(self, permit: Permit, *, good: bool, tokens: int | None = None) -> None:
        """Record the end of a request, with a reply (`good`) or not. `tokens` is its usage, if it was reported."""
        self._limiter.land(self, permit, good=good, tokens=tokens)

    def limited(self, permit: Permit, pause_s: float) -> None:
        """Record a "too many requests" reply. No run sends to the endpoint for `pause_s` seconds."""
        self._limiter.limited(self, permit, pause_s)

    def leave(self) -> None:
        """Leave the limiter. The run's requests in flight count as finished."""
        self._limiter.leave(self)


class TokenEstimator:
    """Expected and maximum usage of a request to one endpoint, corrected by the usage of earlier replies."""

    def __init__(self) -> None:
        self._replies = 0
        self._output = 0
        self._input_excess = self._output_excess = 1.0

    def tokens(self, request: Request) -> int:
        """Return the expected tokens of a request: characters / 4 of its input, plus the mean output of the replies so
        far.

        Before the first reply the output is estimated as 256 tokens, or the request's own limit if that is lower.
        """
        mean = -(-self._output // self._replies) if self._replies else _first_output(request)
        return tokens_of(request) + mean

    def most(self, provider: Provider, request: Request) -> Usage:
        """Return the usage to reserve for a request, see `max_tokens_of`. Scaled up if an earlier reply exceeded its
        estimate.
        """
        most = max_tokens_of(request, _body(provider))
        read, written = most.input_tokens or 0, most.output_tokens or 0
        return Usage(ceil(read * self._input_excess), ceil(written * self._output_excess), 0)

    def max_reply(self, provider: Provider, request: Request) -> int:
        """Return the maximum output tokens of a request; more if earlier replies exceeded theirs."""
        return ceil(max_reply_tokens(request, _body(provider)) * self._output_excess)

    def learn(self, provider: Provider, request: Request, usage: Usage) -> None:
        """Update the estimates with the usage of a reply, as far as it reports one."""
        if usage.output_tokens is not None:
            self._replies += 1
            self._output += usage.output_tokens
        most = max_tokens_of(request, _body(provider))
        self._input_excess = max(self._input_excess, _share(usage.input_tokens, most.input_tokens))
        self._output_excess = max(self._output_excess, _share(usage.output_tokens, most.output_tokens))


def asks_no_model(provider: Provider) -> bool:
    """Return True for a provider that runs on this machine and is free; rate limits and budgets do not apply to it."""
    return "base_url" not in provider.fingerprint() and provider.price_usd(PRICED) == 0.0


_limiters: dict[str, Limiter] = {}
_limiters_lock = threading.Lock()


def limiter_for(provider: Provider) -> Limiter:
    """Return the process's limiter of an endpoint; a new one for a provider without an address (a callable, a local
    process).
    """
    title = title_of(provider)
    if "base_url" not in provider.fingerprint():
        return Limiter(title)
    with _limiters_lock:
        return _limiters.setdefault(title, Limiter(title))


def title_of(provider: Provider) -> str:
    """Return the name of an endpoint: the text values of its fingerprint, such as its kind, address and model."""
    return " ".join(value for value in provider.fingerprint().values() if isinstance(value, str) and value)


class Meter:
    """Meter for a rate per minute that no minute exceeds: requests are spaced, with bursts of up to a second."""

    def __init__(self, per_minute: float) -> None:
        self._apart_s = (_MINUTE_S + _BURST_S) / per_minute
        self._free_at = 0.0

    def wait_s(self, now: float, weight: float) -> float:
        """Return the seconds until this weight may be sent; 0 or less if now. A weight of more than a second waits
        until all earlier ones are paid off.
        """
        takes_s = weight * self._apart_s
        return max(self._free_at - now, 0.0) + min(0.0, takes_s - _BURST_S)

    def charge(self, now: float, weight: float) -> None:
        """Count a request of this weight that is sent now."""
        self._free_at = max(self._free_at, now) + weight * self._apart_s

    def adjust(self, weight: float) -> None:
        """Correct an earlier charge by the difference to the actual usage."""
        self._free_at += weight * self._apart_s


def _weight(kind: str, tokens: int) -> int:
    return tokens if kind == "tokens" else 1


def _first_output(request: Request) -> int:
    return _FIRST_OUTPUT_TOKENS if request.max_tokens is None else min(request.max_tokens, _FIRST_OUTPUT_TOKENS)


def _share(part: int | None, whole: int | None) -> float:
    return part / whole if part and whole else 0.0


def _body(provider: Provider) -> Mapping[str, object]:
    """Return the request fields that the user adds to a provider's requests."""
    holder: object = getattr(provider, "endpoint", provider)  # an embedder's is its endpoint's
    return as_object(getattr(holder, "body", None)) or {}
