"""Sends requests to a provider that answers batches: batch by batch, or through an ordinary connection."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, closing
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

from merilo.cancellation import Cancelled, cancelled_by
from merilo.providers.base import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence

    from merilo.errors import ProviderError
    from merilo.providers.base import BatchProvider, Connection, Request

    Result = Reply | ProviderError
    Posted = tuple[Request, asyncio.Future[Reply]]


def replies(provider: BatchProvider, requests: Sequence[Request], stopped: Event) -> Iterator[tuple[int, Result]]:
    """Yield the replies to a batch, each with the index of its request; end early once `stopped` is set.

    Work that calls `check_cancelled` may end in the middle of a reply. Raises RuntimeError for a provider that does
    not give each request one reply.
    """
    waiting = set(range(len(requests)))
    with closing(provider.send_batch(requests)) as coming:
        while (each := _next(coming, stopped)) is not None:
            if each[0] not in waiting:
                raise RuntimeError(f"{type(provider).__name__} replied to request {each[0]} twice, or was not sent it.")
            waiting.discard(each[0])
            yield each
    if waiting and not stopped.is_set():
        missing = f"gave no reply to {len(waiting)} of the {len(requests)} requests of a batch"
        raise RuntimeError(f"{type(provider).__name__} {missing}.")


def _next(coming: Iterator[tuple[int, Result]], stopped: Event) -> tuple[int, Result] | None:
    """Return the next reply; None if there is none, or if the batch was stopped."""
    try:
        with cancelled_by(stopped):
            return None if stopped.is_set() else next(coming, None)
    except Cancelled:
        return None


@asynccontextmanager
async def gathered(provider: BatchProvider) -> AsyncGenerator[Connection, None]:
    """Open a connection that collects posted requests and sends them in a thread, one batch at a time."""
    connection = _Gathered(provider)
    try:
        yield connection
    finally:
        await connection.close()


class _Gathered:
    def __init__(self, provider: BatchProvider) -> None:
        self._provider = provider
        self._loop = asyncio.get_running_loop()
        self._stopped = Event()
        self._posted: list[Posted] = []
        self._busy = False
        self._running: asyncio.Future[list[Result | None]] | None = None

    async def send(self, request: Request) -> Reply:
        reply: asyncio.Future[Reply] = self._loop.create_future()
        self._posted.append((request, reply))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._begin)  # in the next turn, when all requests posted now are collected
        return await reply

    def adaptations(self) -> Mapping[str, str]:
        return {}

    def notices(self) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        """Start no further batch, and wait for the thread, which stops at the next reply or check."""
        self._stopped.set()
        await ended(self._running)

    def _begin(self) -> None:
        posted, self._posted = self._posted, []
        self._busy = bool(posted) and not self._stopped.is_set()
        if self._busy:
            self._running = self._loop.run_in_executor(None, self._send, [request for request, _ in posted])
            self._running.add_done_callback(partial(self._on_batch_done, posted))

    def _send(self, requests: list[Request]) -> list[Result | None]:
        results: list[Result | None] = [None] * len(requests)
        for place, each in replies(self._provider, requests, self._stopped):
            results[place] = each
        return results

    def _on_batch_done(self, posted: list[Posted], running: asyncio.Future[list[Result | None]]) -> None:
        error = running.exception()
        results = [error] * len(posted) if error is not None else running.result()
        for (_, reply), each in zip(posted, results, strict=True):
            if reply.done():
                continue
            if isinstance(each, Reply):
                reply.set_result(each)
            elif each is not None:
                reply.set_exception(each)
            else:
                reply.cancel()  # stopped: no caller waits for it any longer
        self._begin()


async def ended(running: asyncio.Future[Any] | None) -> None:  # Any: the thread's result is not used
    """Wait until a thread has ended, even if the caller is cancelled: it must not outlive the objects it works on."""
    while running is not None and not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            continue
