"""Python's search for cyclic garbage, made rare while a run lasts.

A run makes and drops thousands of small objects a second, hardly any of them in cycles, beside the many that live
as long as it does. With the thresholds of the interpreter the collector walks through all of them again and again, and
everything waits for it, up to a tenth of a second at a time.
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
    """Collect rarely until the last of the runs of this process that asked for it is over.

    Does nothing where collecting is switched off, or rarer already.
    """
    global _runs, _before  # noqa: PLW0603  the collector belongs to the process, and so does this
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
