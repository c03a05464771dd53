"""Values that cost much to make, each made once and kept while there is room."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class Kept(Generic[K, V]):
    """The values used most recently; threads share it, and none makes what another is making."""

    def __init__(self, make: Callable[[K], V], *, size: Callable[[V], int], most: int) -> None:
        """`make`: a value from its key; `most`: the sizes of all that are kept, added up, are no more than this.

        A value that is larger alone is kept until the next one is made: it is often asked for again at once.
        """
        self._make = make
        self._size = size
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[K, Future[V]] = OrderedDict()
        self._held = 0

    def __getitem__(self, key: K) -> V:
        """The value of a key. Raises what making it raises, and tries again when it is asked for again."""
        with self._lock:
            found = self._kept.get(key)
            own = found is None
            if found is None:
                found = self._kept[key] = Future()
            else:
                self._kept.move_to_end(key)
        if own:
            self._fill(key, found)
        return found.result()

    def _fill(self, key: K, found: Future[V]) -> None:
        try:
            value = self._make(key)
        except BaseException as error:
            with self._lock:
                del self._kept[key]
            found.set_exception(error)
            raise
        with self._lock:
            found.set_result(value)
            self._held += self._size(value)
            self._forget(key)

    def _forget(self, made: K) -> None:
        """Drop what was used longest ago; what is being made stays, and what was made just now, however large."""
        for key in list(self._kept) if self._held > self._most else ():
            if key != made and self._kept[key].done():
                self._held -= self._size(self._kept.pop(key).result())
            if self._held <= self._most:
                return
