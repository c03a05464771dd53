"""Carries a question to a Python callable, so that the engine's limits hold for it as for any model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.errors import Permanent, ProviderError
from merilo.judging.given import Given, verdict_given
from merilo.providers.base import Reply, ReplyPath
from merilo.providers.questions import QuestionRequest, answer_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.providers.base import Connection, Request, Usage

AnswerWith = Callable[["Question[Any]"], Given | Awaitable[Given]]
"""Takes a question; returns, or is awaited for, a verdict, a mapping of its fields, or a Failure."""


@dataclass(frozen=True)
class CallableProvider:
    """Replies with what a callable returns for the question.

    A callable that is not async runs in a thread, so that it may block. An exception in it becomes
    `Permanent` with the exception's text; our own provider errors pass, so a callable may raise
    `RateLimited` or `Temporary` to be asked again.
    """

    call: AnswerWith
    version: str = ""

    @property
    def name(self) -> str:
        """The callable's qualified name."""
        return qualified_name(self.call)

    def fingerprint(self) -> Mapping[str, object]:
        """The callable's name and the version that its author gave it."""
        return {"provider": "callable", "callable": self.name, "version": self.version}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[Connection, None]:
        """A connection; nothing is opened, and nothing can be known."""
        del known
        yield _CallableConnection(self)

    def price_usd(self, usage: Usage) -> float | None:
        """Unknown: nobody can say what a callable spends."""
        del usage
        return None


@dataclass(frozen=True)
class _CallableConnection:
    provider: CallableProvider

    async def send(self, request: Request) -> Reply:
        if not isinstance(request, QuestionRequest) or request.question is None:
            raise Permanent(f"The callable {self.provider.name} answers questions, but was sent a bare request.")
        answer = verdict_given(request.question, await self._call(request.question))
        if isinstance(answer, str):
            raise Permanent(f"What {self.provider.name} returned for a {request.question.kind} question {answer}.")
        return Reply(texts=(_text_of(answer, self.provider.name),), path=ReplyPath.TEXT, model=self.provider.name)

    async def _call(self, question: Question[Any]) -> Given:
        call = self.provider.call
        try:
            given = call(question) if is_async(call) else await asyncio.to_thread(_called, call, question)
            return await given if inspect.isawaitable(given) else given
        except ProviderError:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise Permanent(f"The callable {self.provider.name} raised CancelledError of its own.") from None
        except Exception as error:  # the edge to a stranger's code: its failure is this question's failure
            raise Permanent(f"The callable {self.provider.name} raised {type(error).__name__}: {error}") from error

    def adaptations(self) -> Mapping[str, str]:
        return {}

    def notices(self) -> tuple[str, ...]:
        return ()


def is_async(call: object) -> bool:
    """True for an async function, and for an object whose `__call__` is one."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004  # not a test for being callable


def qualified_name(call: object) -> str:
    """The dotted name of a function, or of the type of a callable object."""
    name: object = getattr(call, "__qualname__", None)
    return f"{call.__module__}.{name}" if isinstance(name, str) else qualified_name(type(call))


def _called(call: AnswerWith, question: Question[Any]) -> Any:  # Any: what a stranger's code returns
    """What the callable returns; its StopIteration would never leave the thread."""
    try:
        return call(question)
    except StopIteration as error:
        raise RuntimeError("StopIteration: nothing is left to return") from error


def _text_of(answer: Answer, name: str) -> str:
    try:
        return answer_text(answer)
    except ValueError:
        raise Permanent(f"What {name} returned holds half a character, which cannot be kept.") from None
