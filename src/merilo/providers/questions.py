"""Providers that answer questions in this process: requests that carry the question, callables, models and batches.

The engine's limits apply to them as to any model. A callable gets one question at a time. A provider of batches gets
all questions that are due, in a thread.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.cancellation import Cancelled, cancelled_by, cancelling_event, in_thread
from merilo.errors import Permanent, ProviderError
from merilo.judging.json_types import as_mapping
from merilo.judging.kinds.measured import MatrixVerdict, matrix_from
from merilo.judging.verdicts import DecisionVerdict, Failure, Verdict, probability_of
from merilo.providers.base import BatchProvider, Connection, Message, Reply, ReplyPath, Request, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Container, Generator, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question

    Result = Reply | ProviderError
    Posted = tuple[Request, asyncio.Future[Reply]]

AnswerWith = Callable[["Question[Any]"], "Given | Awaitable[Given]"]
"""Takes a question; returns a verdict, a mapping of its fields or a Failure, or an awaitable of one of them."""
_FAILURE: Final = '{"failure":'


@dataclass(frozen=True, slots=True)
class QuestionRequest(Request):
    """A request with the question itself in addition to its text, which is empty if no code reads it."""

    max_reply_characters: ClassVar[int | None] = None
    question: Question[Any] | None = None

    @classmethod
    def of(cls, question: Question[Any]) -> QuestionRequest:
        """Return the request for one question; its message is the question as JSON, for readers of the record."""
        text = json.dumps({"kind": question.kind, **asdict(question)}, ensure_ascii=False)
        return cls(messages=(Message("user", text),), question=question)


def answer_text(answer: Answer) -> str:
    """Return the answer as the text of a reply. Raises ValueError for a verdict with half a surrogate pair."""
    if isinstance(answer, Failure):
        return f"{_FAILURE} {json.dumps(answer.to_fields(), ensure_ascii=False)}}}"
    return answer.to_json()


def answer_of(question: Question[Any], reply: Reply | Failure) -> Answer:
    """Return the answer in a reply; a failure as it is."""
    return reply if isinstance(reply, Failure) else answer_in(reply.text, question)


def answer_in(text: str, question: Question[Any]) -> Answer:
    """Return the answer to the question that `answer_text` wrote."""
    if text.startswith(_FAILURE):
        return Failure.from_fields(json.loads(text)["failure"])
    return type(question).verdict.from_json(text)


class Stateless(Connection):
    """A provider with nothing to connect to, which is its own connection. The cost of its replies is unknown."""

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[Connection, None]:
        """Open a connection; there is nothing to connect to and nothing to adapt."""
        del known
        yield self

    def price_usd(self, usage: Usage) -> float | None:
        """Return None: the cost is unknown."""
        del usage
        return None


@dataclass(frozen=True)
class CallableProvider(Stateless):
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

    async def send(self, request: Request) -> Reply:
        """See `Connection`."""
        if not isinstance(request, QuestionRequest) or request.question is None:
            raise Permanent(f"The callable {self.name} answers questions, but was sent a bare request.")
        answer = verdict_given(request.question, await self._call(request.question))
        if isinstance(answer, str):
            kind = request.question.kind
            raise Permanent(f"The return value of {self.name} for a {kind} question {answer}.")
        try:
            text = answer_text(answer)
        except ValueError:
            raise Permanent(f"{self.name} returned half a surrogate pair, which cannot be stored.") from None
        return Reply(texts=(text,), path=ReplyPath.TEXT, model=self.name)

    async def _call(self, question: Question[Any]) -> Given:
        try:
            given = self.call(question) if is_async(self.call) else await in_thread(self.call, question)
            return await given if inspect.isawaitable(given) else given
        except ProviderError:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise Permanent(f"The callable {self.name} raised CancelledError itself.") from None
        except Exception as error:  # user code: its failure is a failure of this question
            raise Permanent(f"The callable {self.name} raised {type(error).__name__}: {error}") from error


def is_async(call: object) -> bool:
    """Return True for an async function, and for an object whose `__call__` is one."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004  # not a test for being callable


def qualified_name(call: object) -> str:
    """Return the dotted name of a function, or of the type of a callable object."""
    name: object = getattr(call, "__qualname__", None)
    return f"{call.__module__}.{name}" if isinstance(name, str) else qualified_name(type(call))


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


class _Gathered(Connection):
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


# -- values of callables -------------------------------------------------------------------------------

Given = Verdict | Failure | Mapping[str, object] | None
"""A function's return value for a question; None if it has no answer."""


def verdict_given(question: Question[Any], given: object) -> Answer | str:
    """Return the given verdict or failure, or the problem with it as the end of a sentence "it ...".

    Indices in a mapping are 0-based, as everywhere in Python. The verdict is checked against the question: indices in
    range, no contradiction within itself.
    """
    if isinstance(given, Failure):
        return given
    if given is None:
        return "is None: it has no answer"
    wanted = type(question).verdict
    if wanted is MatrixVerdict and not isinstance(given, Verdict):
        given = matrix_from(given, getattr(question, "right", None))
    fields = as_mapping(given)
    if fields is not None:
        try:
            given = wanted.from_fields(dict(fields))
        except ValueError as error:  # pydantic's ValidationError is one
            return f"has fields that are not valid for {wanted.__name__} ({_first_line(error)})"
    if not isinstance(given, wanted):
        got = type(given).__name__
        numbers = "numbers, " if wanted is MatrixVerdict else ""
        return f"must be {numbers}a {wanted.__name__}, a mapping of its fields or a Failure, but is of type {got}"
    fault = question.fault(given) or _probability_fault(given)
    return given if fault is None else fault


def _probability_fault(verdict: Verdict) -> str | None:
    """Return the problem with a probability that metrics would average; None if there is none."""
    if not isinstance(verdict, DecisionVerdict) or not verdict.averaged:
        return None
    probability = probability_of(verdict)
    if probability is not None and 0 <= probability <= 1:
        return None
    return f"sets averaged, which needs a probability from 0 to 1, but its probability is {probability}"


def _first_line(error: ValueError) -> str:
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


# -- models in this process, with one thread per processor ---------------------------------------------

_FREE: Final = Usage(0, 0, 0)
_MAX_THREADS: Final = 8


class FreeProvider:
    """A free provider that answers in this process."""

    drops_at_limit: ClassVar[bool] = True
    """A run that reaches a limit does not wait for its replies: they cost nothing."""

    provider: ClassVar[str]

    def fingerprint(self) -> Mapping[str, object]:
        """Return its name; the judge's fingerprint contains everything that affects a verdict."""
        return {"provider": self.provider}

    def connect(self, *, known: Mapping[str, str] | None = None) -> AbstractAsyncContextManager[Connection]:
        """Return a connection for runs that use other providers too; nothing is opened, and `known` is unused."""
        del known
        return gathered(self)

    def price_usd(self, usage: Usage) -> float | None:
        """Return 0.0: it is free."""
        del usage
        return 0.0

    def send_batch(self, requests: Sequence[Request]) -> Generator[tuple[int, Reply | ProviderError], None, None]:
        """Answer requests as `BatchProvider` describes."""
        raise NotImplementedError  # each provider has its own


def answer_batch(
    requests: Sequence[Request], answer: Callable[[Question[Any]], str], *, kinds: Container[str], judge: str
) -> Generator[tuple[int, Reply | ProviderError], None, None]:
    """Answer requests as `BatchProvider` describes; Permanent for a question of another kind than `kinds`.

    Equal questions are answered once. `answer` is called in several threads, and returns a verdict as text.
    """
    places: dict[Question[Any], list[int]] = {}
    for place, request in enumerate(requests):
        question = request.question if isinstance(request, QuestionRequest) else None
        if question is not None and question.kind in kinds:
            places.setdefault(question, []).append(place)
        else:
            yield place, Permanent(f"The {judge} judge cannot answer questions of this kind.")
    # Short questions first, so that replies start to arrive soon and long ones run last.
    ordered = sorted(places, key=question_length)
    pool = ThreadPoolExecutor(thread_count(), judge)
    try:
        answered = pool.map(partial(_cancellable, answer, cancelling_event()), ordered)
        for question, text in zip(ordered, answered, strict=True):
            reply = Reply((text,), usage=_FREE, path=ReplyPath.LOCAL)
            for place in places[question]:
                yield place, reply
    finally:
        pool.shutdown(cancel_futures=True)  # ends early if the caller takes no more replies


def question_length(question: Question[Any]) -> int:
    """Return the number of characters in all texts of a question."""
    return sum(map(len, question.all_texts))


def thread_count() -> int:
    """Return the number of threads, one per usable processor: the model computes outside of Python's lock."""
    usable = getattr(os, "sched_getaffinity", None)
    return min(_MAX_THREADS, len(usable(0)) if usable else os.cpu_count() or 1)


def _cancellable(answer: Callable[[Question[Any]], str], event: Event | None, question: Question[Any]) -> str:
    with cancelled_by(event):
        return answer(question)
