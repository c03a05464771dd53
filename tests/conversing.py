"""Drives a judge with a plain loop: no limits, no retries, no cache. What the engine does properly."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Self

from merilo.errors import Permanent, ProviderError, RateLimited, Refused, Temporary
from merilo.judges.base import Judge
from merilo.judging.ask import Answer
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Connection, Provider, Reply, Request

_KINDS: tuple[tuple[type[ProviderError], FailureKind], ...] = (
    (RateLimited, FailureKind.TEMPORARY),
    (Temporary, FailureKind.TEMPORARY),
    (Refused, FailureKind.REFUSED),
    (Permanent, FailureKind.PERMANENT),
)


class Talk:
    """Open connections, one for each provider; an async context manager."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._open: dict[Provider, Connection] = {}
        self.rounds = 0
        self.replies: list[Reply] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def converse(self, judge: Judge, question: Question[Any] | Pack) -> tuple[Answer, ...]:
        """The judge's answers, one for each question. ProviderDown passes."""
        conversation = judge.answer(question)
        try:
            sends = next(conversation)
            while True:
                self.rounds += 1
                for send in sends:
                    await self.connection(send.provider)
                replies = await asyncio.gather(*(self._carry(send.provider, send.request) for send in sends))
                sends = conversation.send(tuple(replies))
        except StopIteration as stop:
            answers: tuple[Answer, ...] = stop.value
            return answers

    async def connection(self, provider: Provider) -> Connection:
        """The open connection of a provider."""
        if provider not in self._open:
            self._open[provider] = await self._stack.enter_async_context(provider.connect())
        return self._open[provider]

    async def _carry(self, provider: Provider, request: Request) -> Reply | Failure:
        try:
            reply = await self._open[provider].send(request)
        except ProviderError as error:
            for kind, failure in _KINDS:
                if isinstance(error, kind):
                    return Failure(failure, str(error))
            raise
        self.replies.append(reply)
        return reply


async def converse(judge: Judge, question: Question[Any] | Pack) -> tuple[Answer, ...]:
    """The judge's answers to one question or pack, over connections of their own."""
    async with Talk() as talk:
        return await talk.converse(judge, question)
