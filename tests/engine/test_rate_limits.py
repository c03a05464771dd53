"""The limiter of an endpoint: at once, a minute, after complaints."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, inf
from random import Random
from typing import Any

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

import merilo
from merilo.commands.evaluate.options import Options
from merilo.commands.keywords import keyword_options
from merilo.engine.amounts import max_tokens_of
from merilo.engine.rate_limits import (
    Limiter,
    Permit,
    RequestLimits,
    TokenEstimator,
    asks_no_model,
)
from merilo.judges.splitter import SplitterProvider
from merilo.providers.base import Message, Request, Usage
from merilo.providers.openai import EmbeddingsRequest, OpenAIProvider
from merilo.providers.questions import CallableProvider


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("merilo.engine.rate_limits.time", made)
    return made


def limited(**limits: Any) -> Limiter:
    return Limiter(RequestLimits(**limits))


def permits(limiter: Limiter, count: int, tokens: int = 0) -> list[Permit]:
    """So many permits, all of which must be given."""
    taken = [limiter.take(tokens) for _ in range(count)]
    assert all(isinstance(each, Permit) for each in taken), taken
    return [each for each in taken if isinstance(each, Permit)]


def test_no_more_at_once_than_allowed() -> None:
    """A run gets as many permits as its concurrency, and another when one has landed."""
    limiter = limited(concurrency=3)
    first, *_ = permits(limiter, 3)
    assert limiter.take(0) == inf
    limiter.land(first, good=True)
    permits(limiter, 1)
    assert limiter.take(0) == inf


def refuse(limiter: Limiter, refused: list[Permit], pause_s: float = 0.0) -> None:
    """The endpoint refuses these requests."""
    for permit in refused:
        limiter.limited(permit, pause_s)


@each_case(
    ("share_of", "width"),
    [
        (lambda number: number % 20 == 0, inf),  # 5 of 100
        (lambda number: number % 8 == 0, 88),  # 12 of 100
        (lambda number: number in {7, 8, 40, 41}, inf),
        (lambda number: number in {7, 8, 9}, 97),
        (lambda number: number > 60, 60),  # those sent before the width was reduced show what is accepted
    ],
)
def test_refusals_narrow_if_many_or_in_a_row(share_of: Callable[[int], bool], width: float) -> None:
    """Up to 10 of 100 refusals change nothing; more, or three in a row, leave as many in flight as were accepted."""
    limiter = limited(concurrency=100)
    refuse(limiter, [each for each in permits(limiter, 100) if share_of(each.number)], pause_s=9.0)
    assert limiter.width == width
    assert limiter.paused_s == 0


def after_refusals(limiter: Limiter) -> list[Permit]:
    """The four requests in flight after the refusal of the other four of eight."""
    taken = permits(limiter, 8)
    refuse(limiter, taken[4:])
    assert limiter.width == 4
    return taken[:4]


def test_after_a_wait_one_more_is_tried_then_two_more(clock: Clock) -> None:
    """After 2 s and a full round of replies one more request may be in flight, and more after each further round."""
    widths = []
    limiter = limited(concurrency=8)
    in_flight = after_refusals(limiter)
    for permit in in_flight:
        limiter.land(permit, good=True)
    clock.now += 2.5
    for _ in range(4 + 5 + 7 + 8 + 1):
        limiter.land(permits(limiter, 1)[0], good=True)
        widths.append(limiter.width)
    assert widths == [4] * 4 + [5] * 5 + [7] * 7 + [8] * 8 + [inf]


def test_a_late_refusal_changes_no_free_width(clock: Clock) -> None:
    """A refusal of a request that was sent before the width last changed counts only while the width is limited."""
    limiter = limited(concurrency=4)
    late, *taken = permits(limiter, 4)
    refuse(limiter, taken)
    clock.now += 2.5
    for _ in range(40):
        limiter.land(permits(limiter, 1)[0], good=True)
    assert limiter.width == inf
    refuse(limiter, [late])
    assert limiter.width == inf


@dataclass(frozen=True)
class Server:
    """A server in virtual time: a reply takes a second, a refusal a hundredth of one."""

    accepts: float = inf
    full_speed: float = inf
    """Above this number of requests at once it answers fewer per second than below."""
    retry_after_s: float = 0.0

    def serve(self, clock: Clock, concurrency: int | None, requests: int) -> tuple[float, int]:
        """Answer these requests, of two kinds; return the seconds, and the number of refusals."""
        began, luck = clock.now, Random(1)
        limiter = limited(concurrency=concurrency)
        ends: list[tuple[float, int, Permit | None, str]] = []
        left, at_work, number, refused = requests, 0, 0, 0
        while left or ends:
            while left and isinstance(permit := limiter.take(0), Permit):
                left, number, kind = left - 1, number + 1, luck.choice(("long", "short"))
                if at_work >= self.accepts:
                    heappush(ends, (clock.now + 0.01, -number, permit, kind))
                    continue
                at_work += 1
                seconds = luck.lognormvariate(0.0, 0.3) * (1.0 if kind == "long" else 0.3)
                ends_at = clock.now + seconds * max(1.0, at_work / self.full_speed) ** 1.2
                heappush(ends, (ends_at, number, permit, kind))
            clock.now, which, landed, kind = heappop(ends)
            if landed is None:  # its wait is over
                left += 1
            elif which > 0:
                at_work -= 1
                limiter.land(landed, good=True, kind=kind)
            else:
                refused += 1
                limiter.limited(landed, self.retry_after_s)
                heappush(ends, (clock.now + max(self.retry_after_s, luck.random()), which, None, kind))
        return clock.now - began, refused


@each_case(
    ("server", "best", "requests"),
    [
        *((Server(accepts=8, retry_after_s=wait_s), 8, 1_000) for wait_s in (0.0, 2.0)),
        *((Server(accepts=32, retry_after_s=wait_s), 32, 4_000) for wait_s in (0.0, 2.0)),
        *((Server(accepts=200, retry_after_s=wait_s), 128, 8_000) for wait_s in (0.0, 2.0)),
        (Server(full_speed=32), 32, 4_000),
        (Server(full_speed=100), 100, 8_000),
    ],
)
def test_a_run_finds_the_best_concurrency(clock: Clock, server: Server, best: int, requests: int) -> None:
    """Without a fixed concurrency a run takes at most 1.2 times as long as with the best, and 2 % are refused."""
    least, _ = server.serve(clock, best, requests)
    seconds, refused = server.serve(clock, None, requests)
    assert seconds <= 1.2 * least
    assert refused <= 0.02 * requests


def test_at_least_one_request_is_allowed() -> None:
    """However often an endpoint refuses, one request at a time may be tried."""
    limiter = limited(concurrency=4)
    for _ in range(10):
        refuse(limiter, permits(limiter, 1))
    assert limiter.width == 1


def test_a_pause_holds_for_all_requests(clock: Clock) -> None:
    """If an endpoint accepts none of several requests, none is sent until the longest pause that it named is over."""
    limiter = limited(concurrency=4)
    for permit, pause_s, paused_s in zip(permits(limiter, 4), (5.0, 3.0, 9.0, 4.0), (0.0, 0.0, 0.0, 9.0), strict=True):
        limiter.limited(permit, pause_s)
        assert limiter.paused_s == paused_s
    clock.now += 1.0
    assert limiter.take(0) == pytest.approx(8.0)
    clock.now += 8.0
    permits(limiter, 1)


@given(
    rate=st.floats(1, 600),
    tokens=st.lists(st.integers(1, 50), min_size=1, max_size=60),
    idle=st.lists(st.floats(0, 20), min_size=60, max_size=60),
)
def test_no_minute_is_over(rate: float, tokens: list[int], idle: list[float]) -> None:
    """However requests come, no sixty seconds hold more requests than requests_per_minute allows."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("merilo.engine.rate_limits.time", clock)
        limiter = limited(concurrency=1_000, requests_per_minute=rate)
        sent: list[float] = []
        for weight, pause in zip(tokens, idle, strict=False):
            clock.now += pause
            while not isinstance(given := limiter.take(weight), Permit):
                clock.now += given + 1e-9
            sent.append(clock.now)
    for begin in sent:
        assert sum(begin <= moment < begin + 60 for moment in sent) <= ceil(rate)


@given(rate=st.integers(200, 5_000), tokens=st.lists(st.integers(1, 150), min_size=1, max_size=80))
def test_no_minute_takes_more_tokens(rate: int, tokens: list[int]) -> None:
    """No sixty seconds hold more tokens than tokens_per_minute allows."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("merilo.engine.rate_limits.time", clock)
        limiter = limited(concurrency=1_000, tokens_per_minute=rate)
        sent: list[tuple[float, int]] = []
        for weight in tokens:
            while not isinstance(given := limiter.take(weight), Permit):
                clock.now += given + 1e-9
            sent.append((clock.now, weight))
    for begin, _ in sent:
        assert sum(weight for moment, weight in sent if begin <= moment < begin + 60) <= rate + max(tokens)


def test_the_rate_is_reached(clock: Clock) -> None:
    """Asked without pause, an endpoint gets its requests a minute, but for the second that is kept back."""
    limiter, sent, begun = limited(concurrency=10_000, requests_per_minute=600), 0, clock.now
    while clock.now < begun + 300:
        given = limiter.take(0)
        if isinstance(given, Permit):
            sent += 1
        else:
            clock.now += given + 1e-9
    assert 2_900 <= sent <= 3_000


def test_tokens_are_mended_by_what_was_told(clock: Clock) -> None:
    """What a reply took, instead of what was expected, decides when the next may go."""
    waits = []
    for took in (None, 10, 1_000):
        limiter = limited(concurrency=100, tokens_per_minute=6_000)
        (permit,) = permits(limiter, 1, tokens=500)
        limiter.land(permit, good=True, tokens=took)
        given = limiter.take(500)
        waits.append(0.0 if isinstance(given, Permit) else given)
    unknown, less, more = waits
    assert less < unknown < more


def test_a_free_local_process_asks_no_model() -> None:
    """The splitter is under no rate and no budget; a callable, which may ask anybody, is."""
    assert asks_no_model(SplitterProvider())
    assert not asks_no_model(CallableProvider(print))
    assert not asks_no_model(OpenAIProvider("m", base_url="http://localhost:1/v1"))


def test_what_a_request_is_expected_to_take() -> None:
    """Characters / 4 and the mean output so far."""
    provider = OpenAIProvider("m", base_url="http://localhost:1/v1")
    expected, request = TokenEstimator(), Request((Message("user", "x" * 400),), max_tokens=100)
    assert expected.tokens(request) == 200
    for output in (10, 30, None):
        expected.learn(provider, request, Usage(1, output))
    assert expected.tokens(request) == 120


def test_what_a_request_takes_at_most() -> None:
    """A token a byte and the limit of the reply, whatever replies took so far, unless they took more."""
    provider = OpenAIProvider("m", base_url="http://localhost:1/v1")
    expected, request = TokenEstimator(), Request((Message("user", "x" * 492),), max_tokens=100)
    assert expected.most(provider, request) == Usage(1_000, 100, 0)
    expected.learn(provider, request, Usage(10, 10))
    expected.learn(provider, request, Usage(None, None))
    assert expected.most(provider, request) == Usage(1_000, 100, 0)
    expected.learn(provider, request, Usage(2_000, 150))
    assert expected.most(provider, request) == Usage(2_000, 150, 0)


def test_what_a_user_has_sent_besides_counts() -> None:
    """A limit of replies or a number of them in `body` goes before the request's own; texts there are read too."""
    request = Request((Message("user", "x" * 492),), max_tokens=100)
    provider = OpenAIProvider("m", base_url="http://localhost:1/v1", body={"max_tokens": 5_000, "n": 3})
    most = TokenEstimator().most(provider, request)
    assert most.output_tokens == 15_000
    assert (most.input_tokens or 0) > 1_000


@each_case(
    ("request_", "most"),
    [
        (Request((Message("user", "ä" * 246),), max_tokens=100, samples=3), Usage(1_000, 300, 0)),
        (Request((Message("user", "x" * 492),)), Usage(1_000, 4_096, 0)),
        (EmbeddingsRequest((), inputs=("x" * 242, "x" * 242)), Usage(1_000, 0, 0)),
        (Request((Message("user", "x" * 468),), {"a": 1, "b": 2}, max_tokens=1), Usage(1_000, 1, 0)),
    ],
)
def test_texts_replies_and_limits_count(request_: Request, most: Usage) -> None:
    """Bytes, not characters; each of several replies; 4,096 tokens without a limit; none where vectors are wanted."""
    assert max_tokens_of(request_) == most


@each_case(
    "wrong",
    [{"concurrency": 0}, {"requests_per_minute": 0}, {"tokens_per_minute": -1}, {"timeout_s": 0}, {"timeout_s": inf}],
)
def test_limits_of_nothing_are_refused(wrong: dict[str, Any]) -> None:
    """A limit that would let nothing through is a mistake."""
    with pytest.raises(merilo.UsageError, match=next(iter(wrong))):
        keyword_options(Options, {"limits": wrong})
