"""Tuning of the process of a run: its event loop (uvloop if installed), exact timers, and rare garbage collection.

A run creates and drops thousands of small objects per second, hardly any of them in cycles, and holds many objects
until its end. With the interpreter's default thresholds the collector traverses all of them repeatedly. Each full
collection blocks the run for up to a tenth of a second.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_RARELY: Final = (20_000, 20, 50)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return a function that creates an event loop. uvloop is not available on Windows."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def call_after(loop: asyncio.AbstractEventLoop, seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
    """Call back after this many seconds, at most two milliseconds late and never early.

    uvloop rounds waits and their start to whole milliseconds, so it may call too early, and it turns a wait of 0 into
    no timer. Code that then waits for the remainder would be called again and again.
    """
    return loop.call_later((ceil(max(0.0, seconds) * 1000) + 1) / 1000, callback)


@contextmanager
def rare_collections() -> Generator[None, None, None]:
    """Collect rarely in this block. Does nothing if collection is disabled or is already rarer."""
    before = gc.get_threshold()
    if 0 < before[0] < _RARELY[0]:
        gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        if gc.get_threshold() == _RARELY:  # of runs that overlap, the first to begin restores the thresholds
            gc.set_threshold(*before)
