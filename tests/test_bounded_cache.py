"""The cache that is bounded by the size of what it holds."""

import threading

import pytest

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import Cancelled, cancelled_by, check_cancelled


def cache(made: list[int], *, max_size: int) -> BoundedCache[int, str]:
    """Return a cache of texts by their length that notes each length that it makes."""

    def make(length: int) -> str:
        made.append(length)
        return "a" * length

    return BoundedCache(make, size=lambda key, value: key - key + len(value), max_size=max_size)


def test_a_value_larger_than_the_cache_stays_until_the_next_is_made() -> None:
    """It is made once however often it is wanted in turn, and is dropped with the next one."""
    made: list[int] = []
    kept = cache(made, max_size=10)
    for length in (20, 20, 3, 20):
        assert len(kept[length]) == length
    assert made == [20, 3, 20]


def test_the_values_used_longest_ago_are_dropped() -> None:
    """As many as make room for the new one, and no others."""
    made: list[int] = []
    kept = cache(made, max_size=10)
    for length in (2, 3, 5, 2, 4, 2, 5):
        assert len(kept[length]) == length
    assert made == [2, 3, 5, 4, 5]


def test_a_thread_that_waits_is_not_cancelled_with_the_one_that_makes() -> None:
    """Two runs share the caches: if one is cancelled while it makes a value, the other makes it itself."""
    cancel, begun, go = threading.Event(), threading.Event(), threading.Event()

    def make(key: str) -> str:
        begun.set()
        assert go.wait(60)
        check_cancelled()
        return key.upper()

    kept = BoundedCache(make, size=lambda _, value: len(value), max_size=10)
    ended: list[str] = []

    def cancelled() -> None:
        with cancelled_by(cancel), pytest.raises(Cancelled):
            kept["a"]
        ended.append("cancelled")

    def other() -> None:
        ended.append(kept["a"])

    first, second = threading.Thread(target=cancelled), threading.Thread(target=other)
    first.start()
    assert begun.wait(60)
    second.start()
    cancel.set()
    go.set()
    first.join(60)
    second.join(60)
    assert sorted(ended) == ["A", "cancelled"]
