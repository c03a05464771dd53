"""Selects the pilot questions of cascades: at most one question of each kind from each sample of a random selection."""

from __future__ import annotations

import hashlib
import heapq
import logging
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from merilo.errors import MeriloError, UsageError
from merilo.judges.cascade import stage_role
from merilo.judging.ask import together
from merilo.judging.digests import SIZE
from merilo.judging.verdicts import Failure
from merilo.metrics.base import Card, Kinds, MetricDefaults, Score, Undefined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.engine.answer_store import AnswerStore, WorkUnit
    from merilo.judges.cascade import Attributed, Cascade
    from merilo.judging.ask import Answer, Plan, Step
    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict
    from merilo.metrics.base import Metric

_log = logging.getLogger("merilo")


class Drawn(NamedTuple):
    """A pilot question."""

    cascade: int
    """Position of the cascade among those of the run."""
    question: Question[Any]
    verdicts: Mapping[int, Verdict]
    """The verdicts of the judges before the last, by their position in the cascade, without those of judges that
    failed."""


class _Seen(NamedTuple):
    """A question that a plan asked, with the answer that the plan received."""

    cascade: int
    question: Question[Any]
    given: Attributed


def first_ids(ids: Iterable[str], count: int, seed: int) -> list[str]:
    """Return `count` randomly selected ids in random order; the selection depends only on the ids and the seed."""
    return heapq.nsmallest(count, ids, key=lambda each: (_sampler(seed, "sample", each), each))


@dataclass(frozen=True, slots=True)
class PilotPlan(MetricDefaults):
    """Runs the plans of metrics on the first judge's answers, and selects one question of each kind from the sample.

    The plans use the first judge's answers whatever its confidence, so that they ask all their questions before a
    threshold is known. These answers are stored and used again in the main pass. Questions of one sample often have the
    same answer, so only one of each kind is selected. The selected questions are then independent of each other.
    """

    name: ClassVar[str] = "cascade_pilot"
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card(summary="Questions that all judges of a cascade are asked.")
    needs = frozenset[str]()
    asks = Kinds()

    metrics: Sequence[Metric]
    answers: AnswerStore
    cascades: Sequence[Cascade]
    leading: Sequence[Cascade]
    """The same cascades, accepting every answer of their first judge."""
    drawn: dict[str, list[Drawn]] = field(default_factory=dict[str, list[Drawn]])
    """Results by sample id; the caller removes those that it takes."""

    def max_questions(self, sample: Sample) -> int:
        """Return an upper bound: the questions of the metrics, plus one for each kind and each judge of a cascade."""
        own = sum(metric.max_questions(sample) for metric in self.metrics)
        return own + sum(len(each.stages) * len(each.answers) for each in self.cascades)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        seen: list[_Seen] = []
        yield from together([self._led(metric, sample, seen) for metric in self.metrics])
        chosen: dict[tuple[int, str], tuple[bytes, _Seen]] = {}
        for each in seen:
            if not any(self._stage_asked(each, place) for place in self._candidates(each)):
                continue
            question = each.question
            sampler = _sampler(self.cascades[each.cascade].seed, sample.id, question.content.hex(), str(question.draw))
            key = (each.cascade, question.kind)
            if key not in chosen or sampler < chosen[key][0]:
                chosen[key] = sampler, each
        drawn: list[Drawn] = []
        for _, each in chosen.values():
            verdicts = yield from self._others(each)
            drawn.append(Drawn(each.cascade, each.question, verdicts))
        self.drawn[sample.id] = drawn
        return Undefined("it only draws questions")

    def _led(self, metric: Metric, sample: Sample, seen: list[_Seen]) -> Plan[None]:
        """Run the plan of one metric until it ends. Errors are ignored here, since the main pass reports them."""
        try:
            plan = metric.plan(sample)
            step: Step = next(plan)
            while True:
                units = self.answers.units(step)
                parts = yield from together([self._asked(unit, seen) for unit in units])
                step = plan.send(tuple(chain.from_iterable(parts)))
        except StopIteration:
            return
        except UsageError:
            raise
        except MeriloError:
            return  # a missing field, or a question without an answer
        except Exception as error:  # noqa: BLE001  a bug in a metric must not end the run
            _log.debug("%s raised an error in the pilot on sample %r", metric.name, sample.id, exc_info=error)

    def _asked(self, unit: WorkUnit, seen: list[_Seen]) -> Plan[tuple[Answer, ...]]:
        place = next((n for n, each in enumerate(self.cascades) if each is unit.judge), None)
        if place is None:
            return (yield (unit.questions,))
        given = yield from self.leading[place].attributed(unit.asked)
        seen += (_Seen(place, question, each) for question, each in zip(unit.questions, given, strict=True))
        return tuple(each.answer for each in given)

    def _others(self, each: _Seen) -> Plan[dict[int, Verdict]]:
        """Return the verdicts of all judges before the last on a selected question."""
        places = [n for n in self._candidates(each) if n > each.given.place and self._stage_asked(each, n)]
        answers: tuple[Answer, ...] = ()
        if places:
            role = each.question.role
            answers = yield tuple((replace(each.question, role=stage_role(role, n)),) for n in places)
        found = {each.given.place: each.given.answer} | dict(zip(places, answers, strict=True))
        last = len(self.cascades[each.cascade].stages)
        return {n: answer for n, answer in found.items() if n < last and not isinstance(answer, Failure)}

    def _candidates(self, each: _Seen) -> tuple[int, ...]:
        return self.cascades[each.cascade].candidates(type(each.question))

    def _stage_asked(self, each: _Seen, place: int) -> bool:
        return self.cascades[each.cascade].stages[place].asked(each.question)


def _sampler(seed: int, *texts: str) -> bytes:
    text = "\0".join((f"pilot {seed}", *texts)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=SIZE).digest()
