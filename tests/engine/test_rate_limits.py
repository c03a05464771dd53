"""The limiter of an endpoint: at once, a minute, after complaints; between runs and threads."""

import threading
import time
from collections.abc import Callable
from math import ceil, inf
from typing import Any

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

import merilo
from merilo.engine.amounts import max_tokens_of
from merilo.engine.rate_limits import (
    Limiter,
    LimiterHandle,
    Permit,
    RequestLimits,
    TokenEstimator,
    asks_no_model,
    limiter_for,
)
from merilo.providers.base import Message, Request, Usage
from merilo.providers.openai import OpenAIProvider
from merilo.providers.openai_embeddings import EmbeddingsRequest
from merilo.providers.questions import CallableProvider
from merilo.providers.splitter import SplitterProvider


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


def joined(limiter: Limiter, wake: Callable[[], None] = lambda: None, **limits: Any) -> LimiterHandle:
    return limiter.join(RequestLimits(**limits), wake)


def permits(share: LimiterHandle, count: int, tokens: int = 0) -> list[Permit]:
    """So many permits, all of which must be given."""
    taken = [share.take(tokens) for _ in range(count)]
    assert all(isinstance(each, Permit) for each in taken), taken
    return [each for each in taken if isinstance(each, Permit)]


def test_no_more_at_once_than_allowed() -> None:
    """A run gets as many permits as its concurrency, and another when one has landed."""
    share = joined(Limiter("x"), concurrency=3)
    first, *_ = permits(share, 3)
    assert share.take(0) == inf
    share.land(first, good=True)
    permits(share, 1)
    assert share.take(0) == inf


def test_each_run_counts_all_that_is_in_the_air() -> None:
    """A run sends only while fewer than its own concurrency are in the air, whoever sent them."""
    limiter = Limiter("x")
    wide, narrow = joined(limiter, concurrency=8), joined(limiter, concurrency=2)
    taken = permits(wide, 2)
    assert narrow.take(0) == inf
    for permit in taken:
        wide.land(permit, good=True)
    permits(narrow, 2)
    permits(wide, 6)
    assert limiter.in_flight == 8


def test_runs_share_fairly() -> None:
    """A run that waits gets its part of what lands, though the other run would take it all."""
    limiter = Limiter("x")
    woken: list[int] = []
    greedy = joined(limiter, concurrency=4)
    late = joined(limiter, lambda: woken.append(1), concurrency=4)
    held = permits(greedy, 4)
    assert late.take(0) == inf
    for _ in range(2):
        greedy.land(held.pop(), good=True)
        assert greedy.take(0) == inf
        assert woken
        permits(late, 1)
        late.take(0)
    assert (greedy.in_flight, late.in_flight) == (2, 2)
    greedy.land(held.pop(), good=True)
    permits(greedy, 1)


def test_a_run_that_leaves_gives_back_what_it_held() -> None:
    """Requests of a run that has ended do not count, and who waits is woken."""
    limiter = Limiter("x")
    woken: list[int] = []
    first, second = joined(limiter, concurrency=1), joined(limiter, lambda: woken.append(1), concurrency=1)
    (permit,) = permits(first, 1)
    assert second.take(0) == inf
    first.leave()
    assert woken == [1]
    permits(second, 1)
    first.land(permit, good=True)  # it lands late
    assert limiter.in_flight == 1


def test_complaints_halve_once_for_all_that_were_sent_before() -> None:
    """Of sixteen requests in the air, however many are limited, the width is halved once; later ones cut again."""
    limiter = Limiter("x")
    share = joined(limiter, concurrency=16)
    for permit in permits(share, 16):
        share.limited(permit, 0.0)
    assert limiter.width == 8
    again = permits(share, 8)
    assert share.take(0) == inf
    share.limited(again[0], 0.0)
    share.limited(again[1], 0.0)
    assert limiter.width == 4


def test_each_full_round_of_successes_adds_one() -> None:
    """After a cut to 2, two successes allow 3, three more 4, and so on until all is allowed again."""
    limiter = Limiter("x")
    share = joined(limiter, concurrency=4)
    taken = permits(share, 4)
    share.limited(taken.pop(), 0.0)
    assert limiter.width == 2
    widths = []
    for _ in range(5):
        share.land(taken.pop(), good=True)
        widths.append(limiter.width)
        taken += permits(share, 1) if share.in_flight < 2 else []
    assert widths == [2, 3, 3, 3, inf]


def test_at_least_one_request_is_allowed() -> None:
    """However often an endpoint complains, one request at a time may be tried."""
    limiter = Limiter("x")
    share = joined(limiter, concurrency=4)
    for _ in range(10):
        (permit,) = permits(share, 1)
        share.limited(permit, 0.0)
    assert limiter.width == 1


def test_nothing_is_held_against_an_endpoint_that_nobody_asks() -> None:
    """When the last run has left, what the endpoint bore is forgotten."""
    limiter = Limiter("x")
    share = joined(limiter, concurrency=4)
    share.limited(permits(share, 4)[0], 0.0)
    assert limiter.width == 2
    share.leave()
    assert limiter.width == inf


def test_a_pause_holds_for_everybody(clock: Clock) -> None:
    """After a Retry-After no run sends until the time is over; the longest pause wins."""
    limiter = Limiter("x")
    first, second = joined(limiter, concurrency=4), joined(limiter, concurrency=4)
    taken = permits(first, 2)
    first.limited(taken[0], 5.0)
    first.limited(taken[1], 2.0)
    clock.now += 1.0
    assert second.take(0) == pytest.approx(4.0)
    assert limiter.paused_s == pytest.approx(4.0)
    clock.now += 4.0
    permits(second, 1)


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
        share = joined(Limiter("x"), concurrency=1_000, requests_per_minute=rate)
        sent: list[float] = []
        for weight, pause in zip(tokens, idle, strict=False):
            clock.now += pause
            while not isinstance(given := share.take(weight), Permit):
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
        share = joined(Limiter("x"), concurrency=1_000, tokens_per_minute=rate)
        sent: list[tuple[float, int]] = []
        for weight in tokens:
            while not isinstance(given := share.take(weight), Permit):
                clock.now += given + 1e-9
            sent.append((clock.now, weight))
    for begin, _ in sent:
        assert sum(weight for moment, weight in sent if begin <= moment < begin + 60) <= rate + max(tokens)


def test_the_rate_is_reached(clock: Clock) -> None:
    """Asked without pause, an endpoint gets its requests a minute, but for the second that is kept back."""
    share, sent, begun = joined(Limiter("x"), concurrency=10_000, requests_per_minute=600), 0, clock.now
    while clock.now < begun + 300:
        given = share.take(0)
        if isinstance(given, Permit):
            sent += 1
        else:
            clock.now += given + 1e-9
    assert 2_900 <= sent <= 3_000


def test_a_rate_counts_what_other_runs_sent(clock: Clock) -> None:
    """A run with a rate waits for the requests of a run that has none."""
    limiter = Limiter("x")
    limited, free = joined(limiter, concurrency=100, requests_per_minute=60), joined(limiter, concurrency=100)
    permits(free, 10)
    wait = limited.take(0)
    assert isinstance(wait, float)
    assert wait > 5


def test_tokens_are_mended_by_what_was_told(clock: Clock) -> None:
    """What a reply took, instead of what was expected, decides when the next may go."""
    waits = []
    for took in (None, 10, 1_000):
        share = joined(Limiter("x"), concurrency=100, tokens_per_minute=6_000)
        (permit,) = permits(share, 1, tokens=500)
        share.land(permit, good=True, tokens=took)
        given = share.take(500)
        waits.append(0.0 if isinstance(given, Permit) else given)
    unknown, less, more = waits
    assert less < unknown < more


def test_threads_never_get_more_than_allowed() -> None:
    """Eight threads that take and land as fast as they can never have more than three in the air."""
    limiter, most, lock = Limiter("x"), [0, 0], threading.Lock()

    def work() -> None:
        share, done = joined(limiter, concurrency=3), 0
        while done < 200:
            permit = share.take(0)
            if isinstance(permit, Permit):
                with lock:
                    most[0] += 1
                    most[1] = max(most)
                time.sleep(0)
                with lock:
                    most[0] -= 1
                share.land(permit, good=True)
                done += 1
            else:
                time.sleep(0.0005)
        share.leave()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 < most[1] <= 3
    assert limiter.in_flight == 0


def test_one_limiter_an_endpoint() -> None:
    """Kind, address and model make the endpoint, wherever they are named; another model has its own limiter."""
    first = OpenAIProvider("m", base_url="http://localhost:1/v1")
    same = OpenAIProvider("m", base_url="http://localhost:1/v1", body={"top_k": 1}, timeout_s=3.0)
    assert limiter_for(first) is limiter_for(same)
    assert limiter_for(first) is not limiter_for(OpenAIProvider("n", base_url="http://localhost:1/v1"))
    assert limiter_for(CallableProvider(print)) is not limiter_for(CallableProvider(print))


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
        RequestLimits(**wrong)
