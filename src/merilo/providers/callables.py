"""Provider that passes questions to a Python callable, so that the engine's limits apply to it as to any model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.cancellation import in_thread
from merilo.errors import Permanent, ProviderError
from merilo.judging.coercion import Given, verdict_given
from merilo.providers.base import Reply, ReplyPath
from merilo.providers.questions import QuestionRequest, answer_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.providers.base import Connection, Request, Usage

AnswerWith = Callable[["Question[Any]"], Given | Awaitable[Given]]
"""Takes a question; returns a verdict, a mapping of its fields or a Failure, or an awaitable of one of them."""


@dataclass(frozen=True)
class CallableProvider:
    """Replies with the return value of a callable for the question.

    A callable that is not async runs in a thread, so it may block. An exception in it becomes `Permanent` with the
    exception's text. merilo's own provider errors pass through, so a callable may raise `RateLimited` or `Temporary` to
    be called again.
    """

    call: AnswerWith
    version: str = ""

    @property
    def name(self) -> str:
        """The callable's qualified name."""
        return qualified_name(self.call)

    def fingerprint(self) -> Mapping[str, object]:
        """Return the callable's name and the version that its author gave it."""
        return {"provider": "callable", "callable": self.name, "version": self.version}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[Connection, None]:
        """Open a connection; there is nothing to connect to and nothing to adapt."""
        del known
        yield _CallableConnection(self)

    def price_usd(self, usage: Usage) -> float | None:
        """Return None: the cost of a callable is unknown."""
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
            name, kind = self.provider.name, request.question.kind
            raise Permanent(f"The return value of {name} for a {kind} question {answer}.")
        return Reply(texts=(_text_of(answer, self.provider.name),), path=ReplyPath.TEXT, model=self.provider.name)

    async def _call(self, question: Question[Any]) -> Given:
        call = self.provider.call
        try:
            given = call(question) if is_async(call) else await in_thread(call, question)
            return await given if inspect.isawaitable(given) else given
        except ProviderError:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise Permanent(f"The callable {self.provider.name} raised CancelledError itself.") from None
        except Exception as error:  # user code: its failure is a failure of this question
            raise Permanent(f"The callable {self.provider.name} raised {type(error).__name__}: {error}") from error

    def adaptations(self) -> Mapping[str, str]:
        return {}

    def notices(self) -> tuple[str, ...]:
        return ()


def is_async(call: object) -> bool:
    """Return True for an async function, and for an object whose `__call__` is one."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004  # not a test for being callable


def qualified_name(call: object) -> str:
    """Return the dotted name of a function, or of the type of a callable object."""
    name: object = getattr(call, "__qualname__", None)
    return f"{call.__module__}.{name}" if isinstance(name, str) else qualified_name(type(call))


def _text_of(answer: Answer, name: str) -> str:
    try:
        return answer_text(answer)
    except ValueError:
        raise Permanent(f"{name} returned half a surrogate pair, which cannot be stored.") from None
