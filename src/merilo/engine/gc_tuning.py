"""Makes Python's cyclic garbage collection rare while a run is active.

A run creates and drops thousands of small objects per second, hardly any of them in cycles, and holds many objects
until its end. With the interpreter's default thresholds the collector traverses all of them repeatedly. Each full
collection blocks the run for up to a tenth of a second.
"""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

_RARELY: Final = (20_000, 20, 50)
_lock = threading.Lock()
_runs = 0
_before: tuple[int, int, int] = gc.get_threshold()


@contextmanager
def rare_collections() -> Generator[None, None, None]:
    """Collect rarely until the last active run of this process has finished.

    Does nothing if collection is disabled or is already rarer.
    """
    global _runs, _before  # noqa: PLW0603  the collector's thresholds belong to the process, so this count does too
    with _lock:
        _runs += 1
        if _runs == 1:
            _before = gc.get_threshold()
            if 0 < _before[0] < _RARELY[0]:
                gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if not _runs and gc.get_threshold() == _RARELY:
                gc.set_threshold(*_before)
