"""The judge that splits texts into sentences exactly as pysbd does, for published metrics that depend on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from merilo.judges.base import JudgeDefaults, OutgoingRequest
from merilo.judging.json_types import as_list, loaded
from merilo.judging.kinds.sentences import Sentences, TextsVerdict
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Message, Request
from merilo.providers.splitter import PACKAGE, TIMEOUT_S, SplitterProvider, installed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.judges.base import Conversation
    from merilo.judging.ask import Answer
    from merilo.providers.base import Reply


@dataclass(frozen=True)
class SplitterJudge(JudgeDefaults):
    """A judge that answers `Sentences` with `splitter="pysbd"`: English rules, whitespace kept, none for an empty
    text.

    `timeout_s`: the limit for one text; a text that takes longer gets a Failure. `worker`: the command of another
    worker, for tests. pysbd is a dependency of merilo; `unavailable_reason` reports an installation that lacks it.
    """

    name = PACKAGE
    answers = frozenset({Sentences})

    timeout_s: float = TIMEOUT_S
    worker: tuple[str, ...] = ()

    @property
    def unavailable_reason(self) -> str | None:
        """The reason why it cannot answer anything here, as a phrase; None if it can."""
        if self.worker or installed() is not None:
            return None
        return f"its package {PACKAGE}, a dependency of merilo, is not installed (pip install {PACKAGE})"

    def fingerprint(self) -> Mapping[str, object]:
        """Return the version of pysbd and its settings."""
        return {"judge": "splitter", "provider": dict(self._provider.fingerprint())}

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return the sentences of each text, with one request per text; questions for another splitter fail."""
        questions = question.questions if isinstance(question, Pack) else (question,)
        own = [each for each in questions if isinstance(each, Sentences) and each.splitter == PACKAGE]
        # pysbd runs in a worker process behind a provider, so that a text that takes too long can be stopped.
        replies = iter((yield tuple(self._send(each.text) for each in own)) if own else ())
        return tuple(_read(next(replies)) if each in own else _unknown(each) for each in questions)

    def _send(self, text: str) -> OutgoingRequest:
        return OutgoingRequest(self._provider, Request((Message("user", text),)))

    @cached_property
    def _provider(self) -> SplitterProvider:
        return SplitterProvider(self.timeout_s, self.worker)


def _read(reply: Reply | Failure) -> Answer:
    if isinstance(reply, Failure):
        return reply
    return TextsVerdict(tuple(str(piece) for piece in as_list(loaded(reply.text)) or ()))


def _unknown(question: Question[Any]) -> Failure:
    named = getattr(question, "splitter", question.kind)
    return Failure(FailureKind.PERMANENT, f"No sentence splitter {named!r}; available: {PACKAGE!r}.")
