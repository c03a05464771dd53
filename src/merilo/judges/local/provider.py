"""A local model as a provider: it answers questions in batches, on this machine.

Equal questions are answered once, short ones first, so that memory grows late. Each processor runs one pair at a
time, and a verdict never depends on the other questions in the batch.
"""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.cancellation import cancelled_by, cancelling_event
from merilo.errors import Permanent, ProviderDown, UsageError
from merilo.judges.local.answers import ANSWERS
from merilo.judges.local.files import digests, external_files
from merilo.judges.local.heads import InvalidLogits
from merilo.judges.local.scorer import PairScorer, TooLong
from merilo.judges.local.session import ModelSession, free_memory, memory_problem
from merilo.judges.local.tokens import ForgedToken, PairTokens
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Reply, ReplyPath, Usage
from merilo.providers.batches import gathered
from merilo.providers.questions import QuestionRequest, answer_text

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from threading import Event

    from merilo.errors import ProviderError
    from merilo.judges.local.find import FoundModel
    from merilo.judging.questions import Question
    from merilo.providers.base import Connection, Request

_log = logging.getLogger("merilo")

_FREE: Final = Usage(0, 0, 0)
_MAX_THREADS: Final = 8


@dataclass(frozen=True, eq=False)
class LocalProvider:
    """A free provider for the kinds of question that the card of a model answers."""

    drops_at_limit: ClassVar[bool] = True
    """A run that reaches a limit does not wait for its replies: they cost nothing."""

    found: FoundModel
    _lock: Lock = field(default_factory=Lock, repr=False)
    _loaded: list[PairScorer] = field(default_factory=list[PairScorer], repr=False)

    def fingerprint(self) -> Mapping[str, object]:
        """Return its name; the judge's fingerprint contains everything that affects a verdict."""
        return {"provider": "local"}

    def connect(self, *, known: Mapping[str, str] | None = None) -> AbstractAsyncContextManager[Connection]:
        """Return a connection for runs that use other providers too; nothing is opened, and `known` is unused."""
        del known
        return gathered(self)

    def price_usd(self, usage: Usage) -> float | None:
        """Return 0.0: it is free."""
        del usage
        return 0.0

    def scorer(self) -> PairScorer:
        """Return the loaded model; it is loaded once. Raises UsageError if it is damaged or needs too much memory."""
        with self._lock:  # several threads may ask at once
            if not self._loaded:
                self._loaded.append(_load(self.found))
            return self._loaded[0]

    def send_batch(self, requests: Sequence[Request]) -> Generator[tuple[int, Reply | ProviderError], None, None]:
        """Answer requests as `BatchProvider` describes; Permanent for a question of another kind."""
        try:
            scorer = self.scorer()
        except UsageError as error:
            raise ProviderDown(str(error)) from error
        kinds = self.found.card.answers.given
        places: dict[Question[Any], list[int]] = {}
        for place, request in enumerate(requests):
            question = request.question if isinstance(request, QuestionRequest) else None
            if question is not None and question.kind in kinds:
                places.setdefault(question, []).append(place)
            else:
                yield place, Permanent("The local judge cannot answer questions of this kind.")
        ordered = sorted(places, key=_length)
        pool = ThreadPoolExecutor(thread_count(), "local")
        try:
            answered = pool.map(partial(_answered, scorer, cancelling_event()), ordered)
            for question, text in zip(ordered, answered, strict=True):
                reply = Reply((text,), usage=_FREE, path=ReplyPath.LOCAL)
                for place in places[question]:
                    yield place, reply
        finally:
            pool.shutdown(cancel_futures=True)  # ends early if the caller takes no more replies


def thread_count() -> int:
    """Return the number of threads, one per usable processor: the model computes outside of Python's lock."""
    usable = getattr(os, "sched_getaffinity", None)
    return min(_MAX_THREADS, len(usable(0)) if usable else os.cpu_count() or 1)


def _load(found: FoundModel) -> PairScorer:
    digests(found)
    files = (found.model, *external_files(found.model))
    problem = memory_problem(files, thread_count(), free_memory())
    if problem is not None:
        raise UsageError(problem)
    card = found.card
    session = ModelSession(found.model, len(card.output.labels))
    scorer = PairScorer(card, PairTokens(found.tokenizer, card.input), session.logits)
    scorer.logits(dict.fromkeys(card.input.slots, "a"))  # reports a wrong number of labels before the first question
    return scorer


def _length(question: Question[Any]) -> int:
    """Return the number of characters in all texts of a question."""
    return sum(map(len, question.all_texts))


def _answered(scorer: PairScorer, event: Event | None, question: Question[Any]) -> str:
    with cancelled_by(event):
        return answer_text(_answer(scorer, question))


def _answer(scorer: PairScorer, question: Question[Any]) -> Any:  # Any: a verdict or a failure
    try:
        return ANSWERS[type(question)](scorer.of(question.kind), question)
    except TooLong as error:
        return Failure(FailureKind.PERMANENT, f"{error} Shorten the text, or use another judge.")
    except ForgedToken:
        message = "A text contains a special token of the model that cannot be removed. Use another judge."
        return Failure(FailureKind.PERMANENT, message)
    except UsageError as error:  # the model cannot run an input of this length
        return Failure(FailureKind.PERMANENT, str(error))
    except InvalidLogits:
        return Failure(FailureKind.BROKEN, "the local model returned a number that is not finite")
    except Exception as error:  # noqa: BLE001  a bug in how a text is read is the failure of one question
        _log.exception("a local judge raised an exception")
        return Failure(FailureKind.BROKEN, f"the local judge raised {type(error).__name__}: {error}")
