"""Sends requests: one open connection a provider, a limit on requests in the air, retries of what may pass."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from merilo.errors import Permanent, ProviderDown, ProviderError, RateLimited, Refused, Temporary, Unreachable
from merilo.judging.verdicts import Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from merilo.judges.base import Send
    from merilo.providers.base import Connection, Provider, Reply, Request

RETRIES = 5
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
_LONGEST_RETRY_AFTER_S = 120.0
_TOLD = 5


class Carrier:
    """Carries requests to their providers within one event loop; an async context manager."""

    def __init__(
        self,
        *,
        concurrency: int,
        known: Mapping[str, Mapping[str, str]] | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`known` are the `adaptations` of an earlier part of the run, so as not to learn them again.

        `tell` is told once of each kind of trouble that makes requests wait.
        """
        self._tell = tell
        self._told: set[str] = set()
        self._known = dict(known or {})
        self._slots = asyncio.Semaphore(concurrency)
        self._stack = AsyncExitStack()
        self._open: dict[int, asyncio.Task[Connection]] = {}
        self._providers: dict[int, Provider] = {}  # keeps the ids in _open valid
        self.in_flight = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def carry(self, send: Send) -> Reply | Failure:
        """The reply, or why there is none. Raises ProviderDown when no request to this provider can work."""
        connection = await self._connection(send.provider)
        async with self._slots:
            self.in_flight += 1
            try:
                return await self._send(connection, send.request)
            except Unreachable as error:
                raise ProviderDown(str(error)) from error
            except (RateLimited, Temporary) as error:
                return Failure(FailureKind.TEMPORARY, str(error))
            except Refused as error:
                return Failure(FailureKind.REFUSED, str(error))
            except ProviderDown:
                raise
            except (Permanent, ProviderError) as error:
                return Failure(FailureKind.PERMANENT, str(error))
            finally:
                self.in_flight -= 1

    def notices(self) -> list[str]:
        """What the open connections want the user to see once."""
        return [notice for opened in self._opened() for notice in opened.notices()]

    def adaptations(self) -> Mapping[str, Mapping[str, str]]:
        """Provider → parameters that it made us drop or rename, with what was done; what was known is in it."""
        found = {
            _title(self._providers[key]): dict(task.result().adaptations())
            for key, task in self._open.items()
            if task.done() and not task.exception()
        }
        return {**self._known, **{title: made for title, made in found.items() if made}}

    def _opened(self) -> list[Connection]:
        return [task.result() for task in self._open.values() if task.done() and not task.exception()]

    async def _send(self, connection: Connection, request: Request) -> Reply:
        try:
            return await connection.send(request)
        except (RateLimited, Temporary) as error:
            if str(error) not in self._told and len(self._told) < _TOLD:
                self._told.add(str(error))
                self._tell(f"{error} Trying again.")
            return await self._again(connection, request, error)

    async def _again(self, connection: Connection, request: Request, first: ProviderError) -> Reply:
        import stamina

        def wait_or_stop(error: Exception) -> bool | float:
            if isinstance(error, RateLimited) and error.retry_after_s is not None:
                return min(error.retry_after_s, _LONGEST_RETRY_AFTER_S)
            return isinstance(error, RateLimited | Temporary)

        made = False
        async for attempt in stamina.retry_context(
            on=wait_or_stop,
            attempts=RETRIES + 1,
            timeout=None,
            wait_initial=FIRST_WAIT_S,
            wait_max=LONGEST_WAIT_S,
            wait_jitter=FIRST_WAIT_S,
        ):
            with attempt:
                if not made:  # the first attempt was made before stamina was needed
                    made = True
                    raise first
                return await connection.send(request)
        raise first

    async def _connection(self, provider: Provider) -> Connection:
        opening = self._open.get(id(provider))
        if opening is None:
            self._providers[id(provider)] = provider
            known = self._known.get(_title(provider), {})
            opening = asyncio.create_task(self._stack.enter_async_context(provider.connect(known=known)))
            self._open[id(provider)] = opening
        return await asyncio.shield(opening)


def _title(provider: Provider) -> str:
    return " ".join(str(mark) for mark in provider.fingerprint().values() if isinstance(mark, str))
