"""Estimate how long local models take for some questions, by answering a few of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from merilo.errors import UsageError
from merilo.judges.in_process import thread_count
from merilo.judges.local.judge import LocalProvider
from merilo.providers.questions import QuestionRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.judges.base import OutgoingRequest
    from merilo.judging.questions import Question

SHORTEST_S: Final = 60.0
"""Shorter times are not reported."""
_MEASURED: Final = 2
"""Number of questions that are answered for each model and kind. Their pairs stay known, so no work is lost."""


@dataclass(slots=True)
class _Questions:
    """The questions of one kind to one model."""

    provider: LocalProvider
    characters: int = 0
    count: int = 0
    first: list[Question[Any]] = field(default_factory=list["Question[Any]"])


@dataclass(frozen=True, slots=True)
class LocalTime:
    """An estimate of the time that local models take on this machine."""

    seconds: float
    questions: int
    """Number of questions it was measured on."""


@dataclass(slots=True)
class LocalWork:
    """Counts questions to local models."""

    _by_kind: dict[tuple[int, str], _Questions] = field(default_factory=dict[tuple[int, str], _Questions])

    def add(self, send: OutgoingRequest) -> None:
        """Count a request, if it is for a local model."""
        if not isinstance(send.provider, LocalProvider) or not isinstance(send.request, QuestionRequest):
            return
        question = send.request.question
        if question is None:
            return
        kind = self._by_kind.setdefault((id(send.provider), question.kind), _Questions(send.provider))
        kind.characters += sum(map(len, question.all_texts))
        kind.count += 1
        if len(kind.first) < _MEASURED:
            kind.first.append(question)

    def time(self, scale: float = 1.0, clock: Callable[[], float] | None = None) -> LocalTime | None:
        """Return the time for all questions, `scale` times as many; None if it is below `SHORTEST_S`.

        Time is proportional to the characters of a kind. Loads the models; None if one cannot be loaded, which a run
        reports as an error.
        """
        now = perf_counter if clock is None else clock
        total, measured = 0.0, 0
        for kind in self._by_kind.values():
            try:
                kind.provider.scorer()
            except UsageError:
                return None
            began = now()
            for question in kind.first:
                kind.provider.answer_one(question)
            spent = now() - began
            read = sum(len(text) for question in kind.first for text in question.all_texts)
            total += spent * kind.characters * scale / max(read, 1) / min(thread_count(), max(kind.count, 1))
            measured += len(kind.first)
        return LocalTime(total, measured) if total >= SHORTEST_S else None
