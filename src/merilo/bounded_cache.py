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
        self._entries: OrderedDict[K, Future[V]] = OrderedDict()
        self._total = 0

    def __getitem__(self, key: K) -> V:
        """Return the value of a key. Raises the error of `make`; the next call tries again."""
        while True:
            with self._lock:
                entry = self._entries.get(key)
                own = entry is None
                if entry is None:
                    entry = self._entries[key] = Future()
                else:
                    self._entries.move_to_end(key)
            if own:
                return self._fill(key, entry)
            try:
                return entry.result()
            except Cancelled:  # the thread that computed it was cancelled; this thread may not be
                check_cancelled()

    def _fill(self, key: K, entry: Future[V]) -> V:
        try:
            value = self._make(key)
        except BaseException as error:
            with self._lock:
                del self._entries[key]
            entry.set_exception(error)
            raise
        with self._lock:
            entry.set_result(value)
            self._total += self._size(key, value)
            self._drop_oldest(key)
        return value

    def _drop_oldest(self, made: K) -> None:
        """Drop the least recently used entries, except those being computed and the newest one, however large."""
        dropped: list[K] = []
        for key, entry in self._entries.items():
            if self._total <= self._max_size:
                break
            if key != made and entry.done():
                self._total -= self._size(key, entry.result())
                dropped.append(key)
        for key in dropped:
            del self._entries[key]
