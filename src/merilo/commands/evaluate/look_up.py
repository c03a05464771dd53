"""Looks up answers in a run and in the cache, without storing anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.judging.verdicts import Failure

if TYPE_CHECKING:
    from merilo.engine.answer_store import KnownAnswers, WorkUnit
    from merilo.engine.cache import VerdictCache
    from merilo.runs.store import Store


@dataclass(frozen=True, slots=True)
class LookUp:
    """Finds known answers; writes nothing."""

    run: Store | None
    cache: VerdictCache | None
    failures: bool
    """True if a failure in the run counts as an answer; otherwise it is asked again."""

    def held(self, unit: WorkUnit) -> KnownAnswers:
        """Return the answers to the questions of a unit in the run, or otherwise in the cache."""
        held: KnownAnswers = {}
        for key, question in zip(unit.keys, unit.questions, strict=True):
            answer = None if self.run is None else self.run.answer(key, question.verdict)
            if answer is not None and (self.failures or not isinstance(answer, Failure)):
                held[key] = answer
        rest = unit.without(held)
        if rest is None or self.cache is None or not unit.judge.cacheable:
            return held
        found: KnownAnswers = {}
        for key, question in zip(rest.keys, rest.questions, strict=True):
            verdict = self.cache.get(key, question.verdict)
            if verdict is not None and question.fault(verdict) is None:
                found[key] = verdict
        return held | found if not rest.whole or len(found) == len(rest.keys) else held
