"""Finds the answers of a cascade's judges in a run, and asks the last judge a sample of these questions (the audit)."""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from merilo.data.sample import Sample
from merilo.engine.answer_store import SPECIAL
from merilo.engine.drivers import AsyncDriver
from merilo.engine.plan_run import PlanRun
from merilo.judges.cascade import stage_role
from merilo.judging.decisions import is_positive
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Failure
from merilo.metrics.base import Card, Kinds, MetricDefaults, Score, Undefined
from merilo.runs.stages import answers_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from merilo.engine.answer_store import AnswerStore
    from merilo.engine.dispatcher import Dispatcher
    from merilo.judges.cascade import Cascade
    from merilo.judging.ask import Answer, Plan
    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict
    from merilo.runs.stages import StageAnswer
    from merilo.runs.store import Store


class Audited(NamedTuple):
    """A question that a judge before the last answered, and that the last judge is asked as well."""

    place: int
    """Position of the judge in the cascade."""
    key: bytes
    """Key of its answer."""
    question: Question[Any]
    """The question in the role of the last judge."""
    verdict: Verdict

    @property
    def yes(self) -> bool:
        """The decision of the judge."""
        return is_positive(self.verdict)


@dataclass(slots=True)
class Answered:
    """Number of questions that each judge of a cascade answered."""

    questions: Counter[str] = field(default_factory=Counter[str])
    """Questions to the cascade, by kind."""
    failed: Counter[str] = field(default_factory=Counter[str])
    """Questions without a verdict, by kind."""
    earlier: dict[str, Counter[int]] = field(default_factory=dict[str, "Counter[int]"])
    """By kind, the number of answers of each judge before the last, by its position."""

    def by_last(self, kind: str) -> int:
        """Return how many questions of a kind the last judge answered."""
        return self.questions[kind] - self.failed[kind] - self.earlier.get(kind, Counter()).total()


def answered(store: Path, cascade: Cascade, roles: Sequence[str], trails: Iterable[bytes] | None = None) -> Answered:
    """Count the answers of each judge to the questions of a cascade in these roles, as far as the store holds them.

    `trails`: keys of the questions to count, if the store holds others too; None for all.
    """
    found = Answered()
    for each in _answers(store, cascade, roles, trails):
        kind = each.answer.kind
        found.questions[kind] += 1
        found.failed[kind] += each.answer.verdict is None
        if each.earlier is not None and kind not in cascade.revoked:
            found.earlier.setdefault(kind, Counter())[each.earlier.place] += 1
    return found


def chosen_audits(store: Store, path: Path, cascade: Cascade, roles: Sequence[str]) -> dict[str, list[Audited]]:
    """Return the questions to audit by kind, in random order; the order depends only on the questions and the seed.

    Kinds whose audit has failed are omitted.
    """
    totals: Counter[str] = Counter()
    lowest: dict[str, list[tuple[int, _Earlier]]] = {}
    held: set[int] = set()  # a question that is in two packs counts once
    for each in _answers(path, cascade, roles):
        if each.earlier is None or each.sampler in held or each.answer.kind in cascade.revoked:
            continue
        totals[each.answer.kind] += 1
        heap = lowest.setdefault(each.answer.kind, [])
        held.add(each.sampler)
        heapq.heappush(heap, (-each.sampler, each.earlier))
        if len(heap) > cascade.max_audits:
            held.discard(-heapq.heappop(heap)[0])
    found: dict[str, list[Audited]] = {}
    for kind, heap in lowest.items():
        wanted = max(cascade.min_audits, ceil(cascade.audit_rate * totals[kind]))
        places = {earlier.key: earlier.place for _, earlier in sorted(heap, reverse=True)[:wanted]}
        found[kind] = audits_of(store, cascade, roles[0], places)
    return found


def audits_of(store: Store, cascade: Cascade, role: str, places: Mapping[bytes, int]) -> list[Audited]:
    """Return the audited questions under these keys of earlier answers, each with its judge's position."""
    found = (store.asked(key) for key in places)
    last = stage_role(role, len(cascade.stages))
    return [
        Audited(places[each.key], each.key, replace(each.question, role=last), each.answer)
        for each in found
        if each is not None and not isinstance(each.answer, Failure)
    ]


async def ask_alone(questions: Iterable[Question[Any]], answers: AnswerStore, dispatcher: Dispatcher) -> bool:
    """Ask each of these questions separately; return False if a limit was reached before all had an answer."""
    wanted = tuple(questions)
    if not wanted:
        return True
    if dispatcher.halted:
        return all(answer is not None for answer in answers_to(wanted, answers))
    driver = AsyncDriver(answers, dispatcher)
    try:
        await driver.run_plan(PlanRun(_Again(wanted), _Again.name, Sample("cascades")))
    except asyncio.CancelledError:
        if dispatcher.reached is None:
            raise
        return False
    finally:
        await driver.close()
    return True


def answers_to(questions: Sequence[Question[Any]], answers: AnswerStore) -> list[Answer | None]:
    """Return the run's answers to questions that were asked alone, in order; None for one without an answer."""
    units = answers.units(tuple((question,) for question in questions))
    return [held.get(unit.key) for unit, (held, _) in zip(units, answers.known_all(units), strict=True)]


@dataclass(frozen=True, slots=True)
class _Again(MetricDefaults):
    """A metric that asks questions, each in a separate group so that none is packed; its outcome is not used."""

    name: ClassVar[str] = "cascade_check"
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card(summary="Asks the last judge of a cascade about questions that others answered.")
    needs = frozenset[str]()

    questions: tuple[Question[Any], ...]

    @property
    def asks(self) -> Kinds:
        """The kinds of the questions."""
        return Kinds(map(type, self.questions))

    def max_questions(self, sample: Sample) -> int:
        """Return the number of questions."""
        del sample
        return len(self.questions)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        del sample
        if self.questions:
            yield tuple((question,) for question in self.questions)
        return Undefined("it was asked for a comparison")


_COUNTED: Final = "SELECT 1 FROM counted WHERE key = ?"


class _Earlier(NamedTuple):
    """An answer of a judge before the last that reached its threshold."""

    place: int
    key: bytes


class _CascadeAnswer(NamedTuple):
    """A cascade's answer to a question, and the judge before the last that gave it, if one did."""

    answer: StageAnswer
    sampler: int
    """Random number of the question. The questions with the lowest numbers are audited."""
    earlier: _Earlier | None


def _answers(
    store: Path, cascade: Cascade, roles: Sequence[str], trails: Iterable[bytes] | None = None
) -> Iterator[_CascadeAnswer]:
    """Yield the answers of a cascade, also of kinds whose audit has failed.

    The judges of a cascade answered more questions than the cascade passed to them, since all of them answer the pilot.
    So their answers go into a private database first, where each answer of the cascade is matched with its own.
    """
    with closing(sqlite3.connect("")) as file:
        file.execute("CREATE TABLE accepted (lot INTEGER PRIMARY KEY, place INTEGER NOT NULL, key BLOB NOT NULL)")
        file.execute("CREATE TABLE counted (key BLOB PRIMARY KEY) WITHOUT ROWID")
        file.executemany("INSERT OR IGNORE INTO counted VALUES (?)", ((key,) for key in trails or ()))
        for role in roles:
            rows = _accepted(store, cascade, role)
            # OR IGNORE: the answer of the earliest judge stays
            file.executemany("INSERT OR IGNORE INTO accepted VALUES (?, ?, ?)", rows)
        for role in roles:
            for answer in answers_in(store, role):
                if KINDS[answer.kind] in SPECIAL or not cascade.places(KINDS[answer.kind]):
                    continue
                if trails is not None and not file.execute(_COUNTED, (answer.key,)).fetchone():
                    continue
                sampler = _sampler(cascade, answer)
                row = file.execute("SELECT place, key FROM accepted WHERE lot = ?", (sampler,)).fetchone()
                yield _CascadeAnswer(answer, sampler, None if row is None else _Earlier(*row))


def _accepted(store: Path, cascade: Cascade, role: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield lot, position and key of the answers that reach their thresholds, for all judges but the last."""
    for place, stage in enumerate(cascade.stages):
        for answer in answers_in(store, stage_role(role, place)):
            if answer.verdict is None or place not in cascade.places(KINDS[answer.kind])[:-1]:
                continue
            if stage.accepts(answer.kind, KINDS[answer.kind].verdict.from_json(answer.verdict)):
                yield _sampler(cascade, answer), place, answer.key


def _sampler(cascade: Cascade, answer: StageAnswer) -> int:
    """Return a signed 64-bit number that depends only on the seed and the question."""
    text = f"{cascade.seed} {answer.kind} {answer.question}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little", signed=True)
