"""Limits that several processes share: leases of a rate, and grants of a budget."""

import random
from dataclasses import dataclass
from math import floor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merilo.engine.budget import Budget, BudgetDecision, Spending, own_price
from merilo.engine.leases import LeaseBook, LeasedMeter, SharedLimit
from merilo.runs.ledger import Charge

MINUTE_S = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Worker:
    """One of several processes that share a book; it is called without any network between."""

    book: LeaseBook
    workers: int
    number: int = 1
    calls: int = 0

    def reserve(self, endpoint: str, kind: str, per_minute: float, amount: float) -> float:
        self.calls += 1
        return self.book.reserve(endpoint, kind, per_minute, amount)

    def grant(self, name: SharedLimit, used: float, more: float) -> float:
        self.calls += 1
        return self.book.grant(self.number, name, used, more)


def sent(rate: float, workers: int, weights: list[float], seconds: float) -> tuple[list[tuple[float, float]], int]:
    """Times and weights of what workers send that always have something to send, and the calls that this took."""
    clock = Clock()
    book = LeaseBook({}, workers, {}, clock)
    shared = [Worker(book, workers) for _ in range(workers)]
    meters = [LeasedMeter(each, "x", "tokens", rate) for each in shared]
    found, due = list[tuple[float, float]](), [(0.0, number) for number in range(workers)]
    drawn = random.Random(1)
    while due:
        clock.now, number = min(due)
        due.remove((clock.now, number))
        weight = drawn.choice(weights)
        while (wait_s := meters[number].wait_s(clock.now, weight)) <= 0:
            meters[number].charge(clock.now, weight)
            found.append((clock.now, weight))
        if clock.now + wait_s <= seconds:
            due.append((clock.now + wait_s, number))
    return found, sum(each.calls for each in shared)


@settings(max_examples=10)
@given(
    rate=st.sampled_from([60.0, 600.0, 3_000.0]),
    workers=st.integers(1, 12),
    weights=st.sampled_from([[1.0], [1.0, 2.0, 3.0]]),
)
def test_all_workers_together_keep_a_rate_within_two_percent(rate: float, workers: int, weights: list[float]) -> None:
    """No minute has more than the limit, one lease and one request, and the mean is at least 98 % of the limit.

    A worker whose next request is smaller than the one that it took a lease for may use the difference later.
    """
    found, _ = sent(rate, workers, weights, 100.0)
    one = max(weights)
    for start in range(0, 41, 5):
        within = sum(weight for time, weight in found if start <= time < start + MINUTE_S)
        assert within <= rate * 1.005 + one + workers * (one - min(weights))
    total = sum(weight for _, weight in found)
    assert total >= 0.98 * rate * found[-1][0] / MINUTE_S - workers * one


def test_few_calls_are_needed_for_many_requests() -> None:
    """A lease of four workers at 60,000 requests per minute covers 62 of them."""
    found, calls = sent(60_000.0, 4, [1.0], 5.0)
    assert len(found) > 4_000
    assert calls <= len(found) / 50


def test_usage_that_differs_from_its_estimate_corrects_the_lease() -> None:
    """Tokens that a reply did not use pay for the next request, and those above its estimate are reserved later."""
    book = LeaseBook({}, 1, {}, Clock())
    worker = Worker(book, 1)
    meter = LeasedMeter(worker, "x", "tokens", 600.0)
    assert meter.wait_s(0.0, 100) <= 0
    meter.charge(0.0, 100)
    meter.adjust(-100)
    assert meter.wait_s(0.0, 100) <= 0
    assert worker.calls == 1


calls = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 30), st.integers(1, 20), st.booleans()), min_size=1, max_size=60
)


@given(limit=st.integers(0, 400), workers=st.integers(1, 8), asked=calls)
def test_the_sum_of_grants_never_exceeds_the_limit(
    limit: int, workers: int, asked: list[tuple[int, int, int, bool]]
) -> None:
    """The sum stays below the limit for any requests, uses and returns. A request that fits is granted."""
    book = LeaseBook({"max_requests": limit}, workers, {})
    used, granted = dict.fromkeys(range(1, 5), 0), dict.fromkeys(range(1, 5), 0.0)
    for holder, use, more, gives_back in asked:
        used[holder] = min(used[holder] + use, floor(granted[holder]))
        left = limit - sum(granted.values()) + granted[holder] - used[holder]
        granted[holder] = book.grant(holder, "max_requests", used[holder], more)
        assert sum(granted.values()) <= limit
        assert (granted[holder] >= used[holder] + more) is (left >= more)
        if gives_back:
            book.release(holder, {"max_requests": used[holder]})
            granted[holder] = used[holder]


def test_what_was_used_before_counts() -> None:
    """An evaluation that is resumed has only the rest of its limit."""
    book = LeaseBook({"max_cost_usd": 1.0}, 2, {"max_cost_usd": {1: 0.6, 2: 0.3}})
    assert book.grant(3, "max_cost_usd", 0.0, 0.2) == 0.0
    assert book.refused == {"max_cost_usd": 0.2}
    assert book.grant(3, "max_cost_usd", 0.0, 0.1) == pytest.approx(0.1)


@pytest.mark.parametrize("limits", [{"max_requests": 40}, {"max_cost_usd": 0.04}])
def test_spending_of_several_processes_stops_at_the_shared_limit(limits: dict[str, Any]) -> None:
    """Four run directories, each with its own account, together send exactly what the limit allows."""
    budget = Budget(**limits)
    book = LeaseBook(limits, 4, {})
    accounts = [Spending(budget, own_price, shared=Worker(book, 4, number)) for number in range(4)]
    requests, open_accounts = 0, list(accounts)
    while open_accounts:
        account = random.Random(requests).choice(open_accounts)
        if (refusal := account.check(0.001)) is not None:
            assert refusal.limited in {BudgetDecision.OVER, BudgetDecision.EXPENSIVE}
            open_accounts.remove(account)
            continue
        entry = account.begin(0.001, Charge(1, 0, 0.001))
        account.ledger.replied(entry, Charge(1, 1, 0.001))
        account._release(0.001)
        requests += 1
    assert requests == 40
