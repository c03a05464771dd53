"""A local model as a provider: it answers questions in batches, on this machine.

Equal questions are answered once, short ones first, so that memory grows late. Each processor runs one pair at a
time, and a verdict never depends on the other questions in the batch.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

from merilo.errors import ProviderDown, UsageError
from merilo.judges.in_process import answer_batch, thread_count
from merilo.judges.local.answers import ANSWERS
from merilo.judges.local.files import digests, external_files
from merilo.judges.local.heads import InvalidLogits
from merilo.judges.local.scorer import PairScorer, TooLong
from merilo.judges.local.session import ModelSession, free_memory, memory_problem
from merilo.judges.local.tokens import ForgedToken, PairTokens
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.batches import gathered
from merilo.providers.questions import answer_text

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from merilo.errors import ProviderError
    from merilo.judges.local.find import FoundModel
    from merilo.judging.questions import Question
    from merilo.providers.base import Connection, Reply, Request, Usage

_log = logging.getLogger("merilo")


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

    def answer_one(self, question: Question[Any]) -> str:
        """Return the answer to one question as a reply's text, in this thread."""
        return answer_text(_answer(self.scorer(), question))

    def send_batch(self, requests: Sequence[Request]) -> Generator[tuple[int, Reply | ProviderError], None, None]:
        """Answer requests as `BatchProvider` describes; Permanent for a question of another kind."""
        try:
            scorer = self.scorer()
        except UsageError as error:
            raise ProviderDown(str(error)) from error
        return answer_batch(requests, partial(_answered, scorer), kinds=self.found.card.answers.given, judge="local")


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


def _answered(scorer: PairScorer, question: Question[Any]) -> str:
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
