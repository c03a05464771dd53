"""Cancellation of long computations on this machine, and threads for calls that cannot be cancelled.

The caller registers an event with `cancelled_by`; the computation calls `check_cancelled` many times per second.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Thread
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from threading import Event

T = TypeVar("T")

_EVENT: Final[ContextVar[Event | None]] = ContextVar("merilo_cancellation", default=None)


class Cancelled(BaseException):
    """The work was cancelled. It is not an `Exception`, so that no handler treats it as a failure of the work."""


@contextmanager
def cancelled_by(event: Event | None) -> Generator[None]:
    """Cancel the work in this block and thread as soon as the event is set; None: never."""
    token = _EVENT.set(event)
    try:
        yield
    finally:
        _EVENT.reset(token)


def cancelling_event() -> Event | None:
    """Return the event that cancels the work of this thread, to pass it to other threads; None if there is none."""
    return _EVENT.get()


def check_cancelled() -> None:
    """Raise Cancelled if the work of this thread was cancelled. Costs less than a microsecond."""
    event = _EVENT.get()
    if event is not None and event.is_set():
        raise Cancelled


async def in_thread(function: Callable[..., T], *args: object) -> T:
    """Return the result of a blocking call, which runs in its own thread.

    A thread cannot be stopped. If the wait is cancelled, the thread continues alone, and unlike the threads of an
    executor it keeps neither the event loop nor the process from ending.
    """
    import asyncio

    result: Future[T] = Future()
    result.set_running_or_notify_cancel()  # cancelling the wait does not cancel the call

    def work() -> None:
        try:
            value = context.run(function, *args)
        except StopIteration:  # a future cannot hold it
            result.set_exception(RuntimeError("StopIteration: nothing is left to return"))
        except BaseException as error:  # noqa: BLE001  raised where the result is awaited
            result.set_exception(error)
        else:
            result.set_result(value)

    context = copy_context()
    Thread(target=work, name="merilo-call", daemon=True).start()
    return await asyncio.wrap_future(result)
