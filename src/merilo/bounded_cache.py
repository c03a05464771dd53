"""A cache limited by the size of its keys and values, not by their number."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from merilo.cancellation import Cancelled, check_cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """The most recently used values. Threads may share it; each value is computed by one thread at a time."""

    def __init__(self, make: Callable[[K], V], *, size: Callable[[K, V], int], max_size: int) -> None:
        """`make` returns the value of a key; `max_size` limits the sum of the sizes of all entries.

        An entry larger than `max_size` stays until the next one is made, since it is often used again at once.
        """
        self._make = make
        self._size = size
        self._max_size = max_size
        self._lock = Lock()
        self._values: OrderedDict[K, V] = OrderedDict()
        self._making: dict[K, Future[V]] = {}
        self._total = 0

    def __getitem__(self, key: K) -> V:
        """Return the value of a key. Raises the error of `make`; the next call tries again."""
        while True:
            with self._lock:
                if key in self._values:
                    self._values.move_to_end(key)
                    return self._values[key]
                own = key not in self._making
                made = self._making.setdefault(key, Future())
            if own:
                return self._fill(key, made)
            try:
                return made.result()
            except Cancelled:  # the thread that computed it was cancelled; this thread may not be
                check_cancelled()

    def _fill(self, key: K, made: Future[V]) -> V:
        try:
            value = self._make(key)
        except BaseException as error:
            with self._lock:
                del self._making[key]
            made.set_exception(error)
            raise
        with self._lock:
            del self._making[key]
            self._values[key] = value
            self._total += self._size(key, value)
            while self._total > self._max_size and len(self._values) > 1:  # the newest one stays, however large
                self._total -= self._size(*self._values.popitem(last=False))
        # after the lock is free, since this wakes the threads that wait
        made.set_result(value)
        return value
