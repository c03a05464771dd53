"""Endpoints made for tests within the process: they do to requests what they are told to."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from merilo.judges.base import Conversation, OutgoingRequest
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure
from merilo.providers.base import Message, Reply, Request, Usage


@dataclass(frozen=True)
class Endpoint:
    """A provider with an address of its own, whose replies a function makes."""

    answer: Callable[[Request], Awaitable[str]]
    address: str = field(default_factory=lambda: f"http://endpoint.test/{id(object())}")
    model: str = "m"

    def fingerprint(self) -> Mapping[str, object]:
        return {"provider": "test", "base_url": f"{self.address}/{id(self)}", "model": self.model}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[Any, None]:
        del known
        yield self

    async def send(self, request: Request) -> Reply:
        return Reply((await self.answer(request),), usage=Usage(10, 5))

    def adaptations(self) -> Mapping[str, str]:
        return {}

    def notices(self) -> tuple[str, ...]:
        return ()

    def price_usd(self, usage: Usage) -> float | None:
        del usage
        return None


def asking(endpoint: Any, text: str = "question") -> OutgoingRequest:
    """A request to an endpoint."""
    return OutgoingRequest(endpoint, Request((Message("system", "rubric"), Message("user", text))))


@dataclass(frozen=True)
class Grader:
    """A judge that sends the question's first sentence to an endpoint, and takes any reply for a grade."""

    provider: Any
    asks: int = 1
    """So many requests in turn, one verdict."""
    name: str = "grader"
    answers = frozenset({Relevance})
    together: frozenset[Any] = frozenset()
    agreement_note = None
    cacheable = True

    def fingerprint(self) -> Mapping[str, object]:
        return {"judge": "grader"}

    def rubric(self, question: Question[Any] | Pack) -> str:
        del question
        return ""

    def answer(self, question: Any) -> Conversation:
        for turn in range(self.asks):
            (reply,) = yield (asking(self.provider, f"{question.sentences[0]} turn {turn}"),)
            if isinstance(reply, Failure):
                return (reply,)
        return (RelevanceVerdict(2, (0,), "because"),)
