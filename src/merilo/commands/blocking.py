"""Run a coroutine from blocking code, also inside a running event loop, and react to Ctrl-C."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from merilo.engine.event_loop import loop_factory
from merilo.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

_BLOCKED_S: Final = 2.0
"""Seconds after Ctrl-C for the loop to notice it. A read from a silent pipe blocks the loop."""
_CLOSING_S: Final = 2.0
"""Seconds to wait for the loop to close after the coroutine has ended."""
_STOPPED_AT_ONCE: Final = "Stopped at once. What was answered is kept."


class _Worker(threading.Thread, Generic[T]):
    """A thread that runs one coroutine in its own event loop."""

    def __init__(self, work: Coroutine[None, None, T]) -> None:
        super().__init__(name="merilo", daemon=True)
        self._work = work
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[T] | None = None
        self.result: Future[T] = Future()
        """Set once the coroutine has ended."""
        self.done = threading.Event()
        """Set once its event loop is closed too."""
        self.cancelled = threading.Event()
        """Set once the loop has received the cancellation."""

    def run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                try:
                    self.result.set_result(runner.run(self._main()))
                except BaseException as error:  # noqa: BLE001  handed to the thread that waits, whatever it is
                    self.result.set_exception(error)
        finally:
            self.done.set()

    def cancel(self) -> None:
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.cancelled.set)
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def _main(self) -> T:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._work)
        return await self._task


def run_blocking(work: Coroutine[None, None, T]) -> T:
    """Return the result of a coroutine, which runs in its own thread and event loop.

    The first Ctrl-C cancels the coroutine and waits for its clean-up. The second one, or a blocked loop, ends the wait.

    Raises Interrupted after Ctrl-C, and every error of the coroutine.
    """
    worker = _Worker(work)
    worker.start()
    interrupted_at = ended_at = None
    while not worker.done.is_set():
        try:
            worker.done.wait(timeout=0.2)  # join() reports a live thread as dead once interrupted (3.11)
        except KeyboardInterrupt:
            if interrupted_at is not None:
                raise Interrupted(_STOPPED_AT_ONCE) from None
            interrupted_at = time.monotonic()
            worker.cancel()
        waited_s = 0.0 if interrupted_at is None else time.monotonic() - interrupted_at
        if waited_s > _BLOCKED_S and not worker.cancelled.is_set():
            raise Interrupted(_STOPPED_AT_ONCE)
        # closing the loop waits for every task, also for one that ignores its cancellation
        if worker.result.done():
            ended_at = ended_at or time.monotonic()
            if time.monotonic() - ended_at > _CLOSING_S:
                break
    error = worker.result.exception()
    if interrupted_at is not None and isinstance(error, asyncio.CancelledError):
        raise Interrupted("Stopped. What was answered is kept: the same command with the same run resumes it.")
    if error is not None:
        raise error
    return worker.result.result()
