"""Asks a provider that answers whole batches: batch by batch, or through a connection like any other's."""

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

    Told = Reply | ProviderError
    Posted = tuple[Request, asyncio.Future[Reply]]


def replies(provider: BatchProvider, requests: Sequence[Request], stopped: Event) -> Iterator[tuple[int, Told]]:
    """Yield what comes back for a batch, with places, as it comes; end early once `stopped` is set.

    Work that calls `check_cancelled` ends within a reply. Raises RuntimeError for a provider that does not give each
    request one reply.
    """
    waiting = set(range(len(requests)))
    with closing(provider.send_batch(requests)) as coming:
        while (each := _next(coming, stopped)) is not None:
            if each[0] not in waiting:
                raise RuntimeError(f"{type(provider).__name__} replied to request {each[0]} twice, or was not sent it.")
            waiting.discard(each[0])
            yield each
    if waiting and not stopped.is_set():
        said = f"gave no reply to {len(waiting)} of the {len(requests)} requests of a batch"
        raise RuntimeError(f"{type(provider).__name__} {said}.")


def _next(coming: Iterator[tuple[int, Told]], stopped: Event) -> tuple[int, Told] | None:
    """Return the next reply; None if there is none, or it is not to be waited for."""
    try:
        with cancelled_by(stopped):
            return None if stopped.is_set() else next(coming, None)
    except Cancelled:
        return None


@asynccontextmanager
async def gathered(provider: BatchProvider) -> AsyncGenerator[Connection, None]:
    """A connection that sends what was posted meanwhile as one batch, in a thread, one batch at a time."""
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
        self._running: asyncio.Future[list[Told | None]] | None = None

    async def send(self, request: Request) -> Reply:
        reply: asyncio.Future[Reply] = self._loop.create_future()
        self._posted.append((request, reply))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._begin)  # when all that is posted now is there
        return await reply

    def adaptations(self) -> Mapping[str, str]:
        return {}

    def notices(self) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        """Begin nothing more, and wait for the thread, which stops at the next reply or check."""
        self._stopped.set()
        await ended(self._running)

    def _begin(self) -> None:
        posted, self._posted = self._posted, []
        self._busy = bool(posted) and not self._stopped.is_set()
        if self._busy:
            self._running = self._loop.run_in_executor(None, self._send, [request for request, _ in posted])
            self._running.add_done_callback(partial(self._landed, posted))

    def _send(self, requests: list[Request]) -> list[Told | None]:
        told: list[Told | None] = [None] * len(requests)
        for place, each in replies(self._provider, requests, self._stopped):
            told[place] = each
        return told

    def _landed(self, posted: list[Posted], running: asyncio.Future[list[Told | None]]) -> None:
        error = running.exception()
        told = [error] * len(posted) if error is not None else running.result()
        for (_, reply), each in zip(posted, told, strict=True):
            if reply.done():
                continue
            if isinstance(each, Reply):
                reply.set_result(each)
            elif each is not None:
                reply.set_exception(each)
            else:
                reply.cancel()  # stopped: nobody waits any more
        self._begin()


async def ended(running: asyncio.Future[Any] | None) -> None:  # Any: whatever the thread gives
    """Wait until a thread has ended, whoever is cancelled meanwhile: it must not outlive what it works on."""
    while running is not None and not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            continue
