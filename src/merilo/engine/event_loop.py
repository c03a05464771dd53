"""The event loop that our own thread runs: uvloop's where it is installed, else asyncio's; and waits that both keep."""

from __future__ import annotations

import asyncio
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """What makes a new event loop; uvloop has none for Windows."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def call_after(loop: asyncio.AbstractEventLoop, seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
    """Have the loop call back once this time is over, and at most two milliseconds later.

    uvloop rounds waits and the time that they begin at to whole milliseconds, so that it may call too early, and makes
    no timer of a wait of none: whoever then waits for what is left would be called again and again.
    """
    return loop.call_later((ceil(max(0.0, seconds) * 1000) + 1) / 1000, callback)
