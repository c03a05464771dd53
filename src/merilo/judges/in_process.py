"""Batches of questions answered by a model in this process, with one thread per processor."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.cancellation import cancelled_by, cancelling_event
from merilo.errors import Permanent
from merilo.providers.base import Reply, ReplyPath, Usage
from merilo.providers.questions import QuestionRequest, gathered

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Generator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from threading import Event

    from merilo.errors import ProviderError
    from merilo.judging.questions import Question
    from merilo.providers.base import Connection, Request

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
