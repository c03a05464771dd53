"""The event loop of merilo's own thread (uvloop if installed, otherwise asyncio), and timers that work with both."""

from __future__ import annotations

import asyncio
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


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
