"""Which judge of a cascade answered what in a run, and how far the last one agrees with those before it.

Once all samples are through, the last judge is asked about a part of what others have answered: the questions with the
lowest digests, so always the same ones, however the run came about.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
from collections import Counter
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from merilo.data.sample import Sample
from merilo.engine.answers import SPECIAL
from merilo.engine.drive import AsyncDriver
from merilo.engine.walk import Walk
from merilo.judges.cascade import stage_role
from merilo.judging.questions import KINDS
from merilo.judging.saying import says_yes
from merilo.judging.verdicts import RelevanceVerdict
from merilo.metrics.base import Card, Kinds, Ordinary, Score, Undefined
from merilo.runs.stages import said_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from merilo.engine.answers import Answers
    from merilo.engine.carry import Carrier
    from merilo.judges.cascade import Cascade
    from merilo.judging.ask import Plan
    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict
    from merilo.runs.stages import Said
    from merilo.runs.store import Store


@dataclass(slots=True)
class Pairs:
    """Questions that a judge before the last answered, and the last one was asked about too."""

    asked: int = 0
    agreeing: int = 0
    """Those where both said yes, or both said no."""
    same_grade: int | None = None
    """Of relevance: those where both gave the same grade."""
    without: int = 0
    """Those to which the last judge gave no verdict; they are not among `asked`."""

    def add(self, first: Verdict, last: Verdict) -> None:
        """Take in one question."""
        self.asked += 1
        self.agreeing += says_yes(first) == says_yes(last)
        if isinstance(first, RelevanceVerdict) and isinstance(last, RelevanceVerdict):
            self.same_grade = (self.same_grade or 0) + (first.grade == last.grade)


@dataclass(slots=True)
class Went:
    """What became of the questions to one cascade."""

    cascade: Cascade
    questions: Counter[str] = field(default_factory=Counter[str])
    """By kind; those that have a judge in the cascade."""
    failed: Counter[str] = field(default_factory=Counter[str])
    """By kind; those without a verdict."""
    answered: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """By kind, how many each judge before the last answered."""
    wanted: int = 0
    """How many of these the last judge was to be asked about."""
    pairs: dict[str, Pairs] = field(default_factory=dict[str, Pairs])
    """By kind, those of them that it was asked about."""

    def by_last(self, kind: str) -> int:
        """How many questions of a kind the last judge answered."""
        return self.questions[kind] - self.failed[kind] - sum(self.answered.get(kind, ()))


def went_where(store: Path, cascade: Cascade, roles: Sequence[str]) -> Went:
    """What became of the questions to a cascade with these roles, as far as the store holds them."""
    went = Went(cascade)
    for role in roles:
        for said in said_in(store, role):
            if KINDS[said.kind] not in SPECIAL and cascade.places(KINDS[said.kind]):
                went.questions[said.kind] += 1
                went.failed[said.kind] += said.verdict is None
    for each in _answered(store, cascade, roles):
        went.answered.setdefault(each.said.kind, [0] * len(cascade.stages))[each.place] += 1
    total = sum(map(sum, went.answered.values()))
    chosen = {(each.said.kind, each.said.question): each for each in _chosen(store, cascade, roles, total)}
    went.wanted = len(chosen)
    for role in roles:
        for said in said_in(store, stage_role(role, len(cascade.stages))):
            found = chosen.pop((said.kind, said.question), None)
            if found is not None:
                pairs = went.pairs.setdefault(said.kind, Pairs())
                if said.verdict is None:
                    pairs.without += 1
                else:
                    pairs.add(found.verdict, KINDS[said.kind].verdict.from_json(said.verdict))
    return went


async def cross_check(store: Store, path: Path, answers: Answers, carrier: Carrier) -> None:
    """Ask the last judge of each cascade about its part of what others have answered, as far as a limit allows."""
    answers.commit()
    questions = [
        question for cascade, roles in answers.cascades() for question in _unasked(store, path, cascade, roles)
    ]
    if not questions or carrier.halted:
        return
    driver = AsyncDriver(answers, carrier)
    try:
        await driver.walk(Walk(_Again(tuple(questions)), _Again.name, Sample("cascades")))
    except asyncio.CancelledError:
        if carrier.reached is None:
            raise
    finally:
        await driver.close()


@dataclass(frozen=True, slots=True)
class _Again(Ordinary):
    """Asks questions that were answered already, of another judge; its plan has no outcome that counts."""

    name: ClassVar[str] = "cross_check"
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card(summary="What the last judge of a cascade says of what others have answered.")
    needs = frozenset[str]()

    questions: tuple[Question[Any], ...]

    @property
    def asks(self) -> Kinds:
        """The kinds of the questions."""
        return Kinds(map(type, self.questions))

    def at_most(self, sample: Sample) -> int:
        """As many as there are."""
        del sample
        return len(self.questions)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`; each question is a group, so that none is judged together with others."""
        del sample
        if self.questions:
            yield tuple((question,) for question in self.questions)
        return Undefined("it was asked for a comparison")


class _Answered(NamedTuple):
    """A question that a judge before the last has answered."""

    place: int
    """Of the judge."""
    lot: int
    """The lowest are asked of the last judge too."""
    role: str
    """Of the cascade."""
    said: Said
    verdict: Verdict


def _answered(store: Path, cascade: Cascade, roles: Iterable[str]) -> Iterator[_Answered]:
    for role in roles:
        for place, stage in enumerate(cascade.stages):
            for said in said_in(store, stage_role(role, place)):
                if said.verdict is None or len(cascade.places(KINDS[said.kind])) < 2:
                    continue
                verdict = KINDS[said.kind].verdict.from_json(said.verdict)
                if stage.answered(verdict):
                    told = f"{cascade.seed} {said.kind} {said.question}".encode("utf-8", "surrogatepass")
                    lot = int.from_bytes(hashlib.blake2b(told, digest_size=8).digest(), "little")
                    yield _Answered(place, lot, role, said, verdict)


def _chosen(store: Path, cascade: Cascade, roles: Sequence[str], total: int) -> list[_Answered]:
    """Those of the `total` questions that the last judge is to be asked about too."""
    wanted = min(total, max(cascade.least_checked, ceil(cascade.checked_share * total)))
    return heapq.nsmallest(wanted, _answered(store, cascade, roles), key=lambda each: (each.lot, each.said.question))


def _unasked(store: Store, path: Path, cascade: Cascade, roles: Sequence[str]) -> Iterator[Question[Any]]:
    """The chosen questions in the role of the last judge; what it has answered is not asked again by the engine."""
    total = sum(1 for _ in _answered(path, cascade, roles))
    for each in _chosen(path, cascade, roles, total):
        asked = store.asked(each.said.key)
        if asked is not None:
            yield replace(asked.question, role=stage_role(each.role, len(cascade.stages)))
