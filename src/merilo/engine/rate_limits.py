"""Rate limits of an endpoint in one run: concurrency, and requests and tokens per minute.

And what follows a failure: waits before a retry, and the circuit breaker, which distinguishes an endpoint that fails
from requests that are invalid, so that a run stops early. A run stops if the first requests to an endpoint all fail, or
if many consecutive requests fail for temporary reasons. These failures are withheld: they are not recorded for their
questions, and resuming the run retries them. Before the run stops, a few requests from further back in the queue are
tried or, after a reply, the answered request is repeated: if there is a reply, the failures belong to their questions.
A request that is invalid in itself (too long, for instance) never stops a run that got other replies. Otherwise each
resumed run would stop at it again.
"""

from __future__ import annotations

import random
import time
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from math import ceil, exp, inf, log
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from merilo.engine.amounts import max_reply_tokens, max_tokens_of, tokens_of
from merilo.judging.json_types import as_object
from merilo.providers.base import Provider, Reply, Request, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from merilo.errors import RateLimited
    from merilo.judges.base import OutgoingRequest
    from merilo.judging.verdicts import Failure
    from merilo.runs.ledger import Charge

CONCURRENCY: Final = 16
"""Number of requests in flight at the start of a run that does not fix it."""
MAX_CONCURRENCY: Final = 128
_SLOWER: Final = 1.5
"""A wider round whose replies take longer than this multiple of the last round's is not worth its width."""
_LEAST_S: Final = 0.001
_FIRST_OUTPUT_TOKENS: Final = 256
_IN_A_ROW: Final = 3
_SOME: Final = 10
"""Number of refusals among the last 100 requests that do not narrow a width that lasted a round."""
_MAX_HOLD_S: Final = 60.0
_MINUTE_S: Final = 60.0
_BURST_S: Final = 1.0
"""Seconds within which unused rate may be used up later. The rate is reduced so that no minute exceeds the limit."""
PRICED: Final = Usage(1_000, 1_000, 0)
"""A usage that has a price above 0 at any provider that is not free."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestLimits:
    """A run's limits for each endpoint, more than 0; None for no limit."""

    concurrency: int | None = None
    """Maximum requests in flight; None: from 16 to 128, as many as the endpoint accepts without slowing down."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout_s: float | None = None
    """Seconds until a request is cancelled; None: the provider's own timeout."""

    @property
    def max_in_flight(self) -> int:
        """Maximum requests in flight to one endpoint."""
        return MAX_CONCURRENCY if self.concurrency is None else self.concurrency


class Meter:
    """Meter for a rate per minute that no minute exceeds: requests are spaced, with bursts of up to a second."""

    def __init__(self, per_minute: float) -> None:
        self._apart_s = (_MINUTE_S + _BURST_S) / per_minute
        self._free_at = 0.0

    def wait_s(self, now: float, weight: float) -> float:
        """Return the seconds until this weight may be sent; 0 or less if now. Large ones wait for all earlier ones."""
        takes_s = weight * self._apart_s
        return max(self._free_at - now, 0.0) + min(0.0, takes_s - _BURST_S)

    def charge(self, now: float, weight: float) -> None:
        """Count a request of this weight that is sent now."""
        self._free_at = max(self._free_at, now) + weight * self._apart_s

    def adjust(self, weight: float) -> None:
        """Correct an earlier charge by the difference to the actual usage."""
        self._free_at += weight * self._apart_s


class Permit(NamedTuple):
    """Permission to send one request; `number` counts the requests of the endpoint."""

    number: int
    tokens: int
    sent_at: float = 0.0


class Limiter:
    """The requests of one run to one endpoint.

    The width, the number of requests in flight, is 16 at first unless a run fixes it. After each round of replies it
    doubles, until a wider round is refused or takes longer. Such a round ends at its first refusal, and no more are in
    flight than the endpoint has accepted; if it is slower, at its end, and the former width returns.

    At a width that lasted a round, a "too many requests" reply (429) delays its own request only, unless three requests
    sent one after another are refused, or more than 10 of the last 100. If the endpoint accepts none, nothing is sent
    until the pause that it named is over.

    A refusal is followed by a wait, which doubles each time that it was too short. Then the last good width is tried
    again, or one request more, then two more, then four.
    """

    def __init__(self, limits: RequestLimits) -> None:
        self.most = limits.max_in_flight
        rates = (("requests", limits.requests_per_minute), ("tokens", limits.tokens_per_minute))
        self._meters = [(kind, Meter(rate)) for kind, rate in rates if rate is not None]
        self.in_flight = 0
        self.number = 0
        """Number of requests ever sent."""
        self.changed_at = 0
        """The value of `number` when the width last changed."""
        self.width = inf
        """Maximum requests in flight; infinite if only the run's own limit applies."""
        self.trying = False
        """True until the present width has lasted a round of replies."""
        self.before = 0.0
        """The width before the present one is tried."""
        self.step = inf
        """Requests to add after the next round; at most the width itself."""
        self.last_good = 0.0
        """The width before the last reduction if it was good for long; otherwise 0."""
        self.good = 0
        """Number of replies to requests sent since the width last changed."""
        self.took: dict[str, tuple[int, float]] = {}
        """Number of these replies, and the mean of the logarithm of their seconds, by kind."""
        self.usual: dict[str, tuple[int, float]] = {}
        """The same for the last rounds that were not slower."""
        self.refused: deque[int] = deque(maxlen=_SOME + 1)
        """Numbers of the last requests that were refused."""
        self.hold_s = 0.0
        self.widen_at = inf
        """When the width may increase again, `hold_s` after its last reduction."""
        self.asked_until = 0.0
        """The latest time that a refusal has named; it holds for all requests if several are refused in a row."""
        self.paused_until = 0.0
        if limits.concurrency is None:
            self._try(CONCURRENCY)
            self.widen_at = 0.0

    def take(self, tokens: int) -> Permit | float:
        """Return a permit to send a request of this many tokens now, or the seconds after which to ask again.

        The seconds are infinite if a request has to finish first.
        """
        now = time.monotonic()
        if now < self.paused_until:
            return self.paused_until - now
        if now >= self.widen_at:
            self._widen()
        if self.in_flight >= self.most or self.in_flight >= self.width:
            return self.widen_at - now if self.widen_at > now else inf
        if self._meters:
            wait = max(meter.wait_s(now, _weight(kind, tokens)) for kind, meter in self._meters)
            if wait > 0:
                return wait
            for kind, meter in self._meters:
                meter.charge(now, _weight(kind, tokens))
        self.in_flight += 1
        self.number += 1
        return Permit(self.number, tokens, now)

    def land(self, permit: Permit, *, good: bool, tokens: int | None = None, kind: str = "") -> None:
        """Record the end of a request, with a reply (`good`) or not. `tokens` is its usage, if it was reported.

        `kind`: a name that requests with replies of similar length share.
        """
        self.in_flight -= 1
        if tokens is not None:
            for unit, meter in self._meters:
                if unit == "tokens":
                    meter.adjust(tokens - permit.tokens)
        if good:
            self._replied(permit, kind)

    def limited(self, permit: Permit, pause_s: float) -> None:
        """Record a "too many requests" reply that asks for this pause."""
        self.in_flight -= 1
        self._refuse(permit, pause_s)

    @property
    def room(self) -> float:
        """The number of requests that may be in flight at once."""
        return min(self.most, self.width)

    @property
    def paused_s(self) -> float:
        """Seconds until the endpoint may receive requests again; 0 if it may now."""
        return max(0.0, self.paused_until - time.monotonic())

    def _widen(self) -> None:
        """Try a greater width after a full round of replies, or the former one again if they became slower.

        Try one more request if none was sent since the last change: those in flight may take long.
        """
        if self.good < self.width:
            if self.number == self.changed_at and self.in_flight == self.width:
                self.width += 1
        elif self.trying and self._slower > _SLOWER:
            self._hold(self.before)
        else:
            most = self.most
            self.usual |= self.took
            if self.width >= most:  # the run is not restricted by it any longer
                self.width, self.widen_at, self.trying = inf, inf, False
            else:
                self.step *= 1 + self.trying
                self._try(min(most, max(self.width + min(self.step, self.width), self.last_good)))
                self.last_good = 0.0

    def _refuse(self, permit: Permit, pause_s: float) -> None:
        """Narrow the width, and pause, if this refusal shows that too much is sent. `permit` is no longer in flight."""
        self.refused.append(permit.number)
        refused, now, accepted = list(self.refused), time.monotonic(), max(1, self.in_flight)
        self.asked_until = max(self.asked_until, now + pause_s)
        in_a_row = len(refused) >= _IN_A_ROW and max(refused[-_IN_A_ROW:]) - min(refused[-_IN_A_ROW:]) < _IN_A_ROW
        many = len(refused) > _SOME and refused[0] > max(self.changed_at, self.number - 10 * _SOME)
        if permit.number <= self.changed_at and self.width < inf:  # sent before the last change
            self.width = min(self.width, accepted)
        elif in_a_row or many or self.trying:
            self.last_good = min(self.width, self.in_flight + 1) if self.good >= 10 * _SOME else 0.0
            self.step = 1
            self._hold(accepted, pause_s)
        if in_a_row and not self.in_flight:
            self.paused_until = self.asked_until

    def _replied(self, permit: Permit, kind: str) -> None:
        if permit.number <= self.changed_at:
            return
        self.good += 1
        count, mean = self.took.get(kind, (0, 0.0))
        seconds = max(time.monotonic() - permit.sent_at, _LEAST_S)
        self.took[kind] = count + 1, mean + (log(seconds) - mean) / (count + 1)

    @property
    def _slower(self) -> float:
        """How many times as long the replies of this round take as those of earlier rounds, compared by kind."""
        both = [(*self.took[kind], self.usual[kind][1]) for kind in self.took.keys() & self.usual.keys()]
        count = sum(count for count, *_ in both)
        return exp(sum(count * (mean - usual) for count, mean, usual in both) / count) if count else 1.0

    def _hold(self, width: float, pause_s: float = 0.0) -> None:
        """Narrow to this width, and wait before a greater one is tried."""
        lasted = self.good >= 10 * _SOME and not self.trying
        self._try(width)
        self.trying = False
        self.hold_s = max(2 * max(pause_s, 1.0), 0.0 if lasted else min(2 * self.hold_s, _MAX_HOLD_S))
        self.widen_at = time.monotonic() + self.hold_s

    def _try(self, width: float) -> None:
        self.before, self.width, self.trying = self.width, width, True
        self.good, self.took, self.changed_at = 0, {}, self.number


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
        if self._replies:
            return tokens_of(request) - (-self._output // self._replies)
        first = _FIRST_OUTPUT_TOKENS if request.max_tokens is None else min(request.max_tokens, _FIRST_OUTPUT_TOKENS)
        return tokens_of(request) + first

    def most(self, provider: Provider, request: Request) -> Usage:
        """Return the usage to reserve, see `max_tokens_of`; more if an earlier reply exceeded its estimate."""
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


def title_of(provider: Provider) -> str:
    """Return the name of an endpoint: the text values of its fingerprint, such as its kind, address and model."""
    return " ".join(value for value in provider.fingerprint().values() if isinstance(value, str) and value)


def _weight(kind: str, tokens: int) -> int:
    return tokens if kind == "tokens" else 1


def _share(part: int | None, whole: int | None) -> float:
    return part / whole if part and whole else 0.0


def _body(provider: Provider) -> Mapping[str, object]:
    """Return the request fields that the user adds to a provider's requests."""
    holder: object = getattr(provider, "endpoint", provider)  # an embedder's is its endpoint's
    return as_object(getattr(holder, "body", None)) or {}


# -- pending requests, their waits before a retry, and the circuit breaker ---------------------------------

RETRIES = 5
"""Maximum retries of a request after temporary failures."""
LIMITED_RETRIES = 20
"""Maximum retries after "too many requests". It is higher because the endpoint works and names a time to come back."""
FIRST_WAIT_S = 0.5
MAX_WAIT_S = 30.0
MAX_PAUSE_S = 600.0
"""Longest pause in seconds that an endpoint may ask for; a longer one ends the run."""
LEAST_DEADLINE_S = 10.0
_ENOUGH_REPLIES: Final = 20
_NONE_YET: Final = Permit(0, 0)
_BELIEVED: Final = 3
"""Number of retries in a row that wait exactly as long as the endpoint asked."""

Order = tuple[int, int, str, str]
"""Sort key in the queue: block of samples, 0 for retries and re-asks or 1 for first requests, rubric text, rest of
the prompt."""
FIRST = 5
"""Number of failures before any reply that trip the breaker."""
IN_A_ROW = 20
"""Number of consecutive requests, without a reply between them, that fail after all retries and so trip the breaker."""
PROBES = 3
"""Number of requests from further back in the queue that are tried before the first failures are blamed on the
endpoint."""


class ReplyListener(Protocol):
    """Listener for replies."""

    def on_reply(self, place: int, reply: Reply | Failure) -> Callable[[], None] | None:
        """Receive the reply to the request with this index. Return what to call once for all replies of a turn."""
        ...


class PendingRequest:
    """A request that is queued or in flight."""

    def __init__(self, send: OutgoingRequest, to: ReplyListener, place: int, order: Order, *, proven: bool) -> None:
        self.send = send
        self.to = to
        self.place = place
        self.order = order
        self.proven = proven
        self.tries = self.limited = self.unreached = 0
        self.replies_before = 0
        """Number of replies of its endpoint when it could not be sent for the first time."""
        self.cut = False
        """True once it was cancelled at a deadline learnt from the run. Only the timeout cancels its later tries."""
        self.permit = _NONE_YET
        self.reserved_usd = 0.0
        self.entry = 0
        """Its number in the ledger while it is in flight."""
        self.charge: Charge | None = None
        """The charge if it is not answered; set each time it is sent."""

    def limited_again_s(self, error: RateLimited) -> float | None:
        """Count a "too many requests" reply. Return the seconds to wait in addition to the endpoint's own pause; None
        after too many.

        Each of the first three replies adds nothing if it names a pause. Later waits grow with each reply.
        """
        self.limited += 1
        if self.limited > LIMITED_RETRIES:
            return None
        free_retries = 0 if error.retry_after_s is None else _BELIEVED
        return jitter_s(self.limited - free_retries, MAX_WAIT_S) if self.limited > free_retries else 0.0


def jitter_s(tries: int, max_s: float) -> float:
    """Return a random wait below a bound that doubles with each try, so that failed requests spread out."""
    return random.uniform(0, min(max_s, FIRST_WAIT_S * 2.0 ** (tries - 1)))  # noqa: S311  no secret


def deadline_s(answered: Collection[tuple[float, Charge]], charge: Charge) -> float:
    """Return the seconds after which a request is cancelled; infinite if fewer than 20 replies are known.

    Ten times the slowest of the last replies (of 100, about the 99th percentile), at least 10 s. Proportionally longer
    for a request that is longer than the median, or whose longest reply is.

    `answered`: the seconds and the charge of each reply.
    """
    if len(answered) < _ENOUGH_REPLIES:
        return inf
    median = len(answered) // 2
    read = sorted(each.input_tokens or 0 for _, each in answered)[median]
    written = sorted(each.reply_tokens for _, each in answered)[median]
    longer = max(1.0, (charge.input_tokens or 0) / max(read, 1), charge.reply_tokens / max(written, 1))
    return longer * max(LEAST_DEADLINE_S, 10 * max(seconds for seconds, _ in answered))


class BreakerAction(Enum):
    """Action once no request is in flight: continue (NONE), send a probe, or stop."""

    NONE = auto()
    PROBE = auto()
    STOP = auto()


class CircuitBreaker:
    """Withholds failures that the endpoint may have caused."""

    def __init__(self) -> None:
        self.reached = False
        """True once there was a reply."""
        self._held: list[tuple[PendingRequest, Failure]] = []
        self.count = 0
        """Number of requests since the last reply that failed after all retries."""
        self.probes = PROBES
        """Number of probes that may still be sent."""
        self.last = ""
        """Error message of the last failed request."""

    @property
    def action(self) -> BreakerAction:
        """Action to take: continue, try a few other requests, or stop."""
        if self.count >= (IN_A_ROW if self.reached else FIRST):
            return BreakerAction.PROBE if not self.reached and self.probes else BreakerAction.STOP
        return BreakerAction.NONE

    def good(self) -> list[tuple[PendingRequest, Failure]]:
        """Record a reply: the endpoint works. Return the withheld failures, which now belong to their questions."""
        self.reached = True
        self.count = 0
        return self.release() if self._held else self._held

    def bad(self, waiting: PendingRequest, failure: Failure, *, wrong: bool, proven: bool) -> bool:
        """Record a permanently failed request. Return True if the failure is withheld because the endpoint may be at
        fault.

        False means that the failure belongs to its question. `wrong`: the request itself is invalid. `proven`: the same
        judge has answered other questions.
        """
        if wrong and (self.reached or proven):
            return False
        self.count += 1
        self.last = failure.message
        self._held.append((waiting, failure))
        return True

    def trip(self) -> None:
        """Withhold failures until the next reply, since the endpoint seems to be gone."""
        self.count = max(self.count, IN_A_ROW)

    def release(self) -> list[tuple[PendingRequest, Failure]]:
        """Return the withheld failures and withhold them no longer, since no further request can show the cause."""
        held, self._held = self._held, []
        return held
