"""Measures the thresholds of a run's cascades on a pilot of the run's own data, and audits the cheap judges' answers.

::

    calibrate   draw pilot samples at random, lead their plans with the first judge (engine.cascade_pilot)
                ask the last judge about one question of each kind from each sample
                test thresholds in a fixed order (stats.acceptance), recast the cascades
    main pass   the usual stream of samples; cheap answers count from their threshold on
    audit       ask the last judge about a random part of the cheap answers (engine.cascade_check)
                if an audit fails: revoke that kind, drop the cascade's own verdicts on it, main pass again

Everything follows from the data, the seed and the verdicts in the store, so a stopped run resumes to the same bytes.
Only what was decided is stored besides verdicts: the thresholds, and the audited questions of a kind that was revoked.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.engine.cascade_check import answered, answers_to, ask_alone, audits_of, chosen_audits
from merilo.engine.cascade_pilot import Drawn, PilotPlan, first_ids
from merilo.judges.cascade import CLASS_LEVEL, Cascade, Decision, Stage, rounded_confidence, stage_role
from merilo.judging.decisions import is_positive, same_decision
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Failure
from merilo.rendering.cascade import ClassAudit, KindAudit, KindPilot, cascade_record
from merilo.stats.acceptance import accepted, fixed_sequence
from merilo.stats.gate import GateVerdict
from merilo.stats.sequential import StreamingGate, sequential_interval

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.engine.answer_store import AnswerStore
    from merilo.engine.cascade_check import Audited
    from merilo.engine.dispatcher import Dispatcher
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.metrics.base import Metric
    from merilo.runs.outcomes import Result
    from merilo.runs.store import Store
    from merilo.stats.acceptance import ThresholdTest

    Stream = Callable[[Iterable[Sample], Mapping[str, Metric], Dispatcher], AsyncGenerator[list[Result], None]]
    """Runs plans over samples and yields the results of each, in order."""

_SCANNED: Final = 10
"""Samples drawn for the pilot, at most, per pilot question. A kind that fewer samples ask is not worth a pilot."""


class _Kind(NamedTuple):
    """A kind of question to one cascade of the run."""

    cascade: int
    kind: str


class RunCascades:
    """The cascades of one run: their pilots, thresholds and audits."""

    def __init__(
        self, store: Store, path: Path, answers: AnswerStore, metrics: Sequence[Metric], stream: Stream
    ) -> None:
        """`path`: of the store's file."""
        self._store = store
        self._path = path
        self._answers = answers
        self._metrics = metrics
        self._stream = stream
        self._pilots: dict[_Kind, KindPilot] = {}
        self._audits: dict[_Kind, KindAudit] = {}
        self.audited = not answers.cascades()
        """True once every audit has an answer to all its questions."""

    async def calibrate(self, dispatcher: Dispatcher) -> bool:
        """Measure the thresholds of all cascades; False if a limit was reached before that."""
        cascades = [cascade for cascade, _ in self._answers.cascades()]
        if not cascades:
            return True
        needed = self._needed(cascades)
        found = await self._drawn(cascades, needed, dispatcher)
        if found is None:
            return False
        full = {key: drawn for key, drawn in found.items() if len(drawn) == needed[key]}
        asked = {key: [_for_last(cascades[key.cascade], each.question) for each in own] for key, own in full.items()}
        if not await ask_alone([each for own in asked.values() for each in own], self._answers, dispatcher):
            return False
        thresholds: list[list[dict[Decision, float]]] = [[{} for _ in each.stages] for each in cascades]
        for key, drawn in found.items():
            tests: dict[tuple[int, bool], tuple[ThresholdTest, ...]] = {}
            without = 0
            if key in full:
                given = answers_to(asked[key], self._answers)
                if None in given:
                    return False
                without = sum(isinstance(each, Failure) for each in given)
                tests = _tested(cascades[key.cascade], key.kind, drawn, given)
                for (place, yes), own in tests.items():
                    if (threshold := accepted(own)) is not None:
                        thresholds[key.cascade][place][Decision(key.kind, yes)] = threshold
            self._pilots[key] = KindPilot(needed[key], len(drawn), without, tests)
        questions = [[q for key, own in asked.items() if key.cascade == n for q in own] for n in range(len(cascades))]
        self._answers.recast(
            [
                replace(
                    cascade,
                    stages=tuple(
                        Stage(stage.judge, own) for stage, own in zip(cascade.stages, thresholds[n], strict=True)
                    ),
                    alone=frozenset(each.content for each in questions[n]),
                )
                for n, cascade in enumerate(cascades)
            ]
        )
        self._settle()
        return True

    async def audit(self, dispatcher: Dispatcher) -> list[str]:
        """Audit the answers of the earlier judges once all samples are done.

        Returns one sentence for each kind whose audit failed: these kinds now go to the last judge, and the samples
        have to be run again.
        """
        self._answers.commit()
        chosen: dict[_Kind, list[Audited]] = {}
        for n, (cascade, roles) in enumerate(self._answers.cascades()):
            own = chosen_audits(self._store, self._path, cascade, roles)
            chosen |= {_Kind(n, kind): audits for kind, audits in own.items()}
        questions = [each.question for audits in chosen.values() for each in audits]
        self.audited = await ask_alone(questions, self._answers, dispatcher)
        failed: list[str] = []
        cascades = [cascade for cascade, _ in self._answers.cascades()]
        for key, audits in chosen.items():
            result = self._audit_result(cascades[key.cascade], audits)
            self._audits[key] = result
            if result.failed and self.audited:
                failed.append(_failure(cascades[key.cascade], key.kind, result))
                cascades[key.cascade] = _revoked(cascades[key.cascade], key.kind, audits)
                self._revoke(key, audits)
        if failed:
            self.audited = False
            self._answers.recast(cascades)
        return failed

    def records(self, outcomes: Path | None = None) -> list[dict[str, Any]]:  # Any: JSON
        """Return what the run's summary holds of each cascade.

        `outcomes`: a file of outcomes, if only their questions count. A run that its gates end has asked more questions
        than its outcomes need, and which ones depends on the order of arrival.
        """
        return [
            cascade_record(
                cascade,
                answered(self._path, cascade, roles, None if outcomes is None else _trails(outcomes)),
                {key.kind: pilot for key, pilot in self._pilots.items() if key.cascade == n},
                {key.kind: audit for key, audit in self._audits.items() if key.cascade == n},
            )
            for n, (cascade, roles) in enumerate(self._answers.cascades())
        ]

    def _needed(self, cascades: Sequence[Cascade]) -> dict[_Kind, int]:
        """Return how many pilot questions each kind needs that the metrics may ask a cascade."""
        needed: dict[_Kind, int] = {}
        for metric in self._metrics:
            for kind in sorted(metric.asks, key=lambda kind: kind.kind):
                for role in sorted(metric.roles):
                    judge = self._answers.judge_of(kind, role)
                    for n, cascade in enumerate(cascades):
                        if cascade is judge and (places := cascade.candidates(kind)):
                            needed[_Kind(n, kind.kind)] = cascade.pilot * len(places)
        return needed

    async def _drawn(
        self, cascades: Sequence[Cascade], needed: Mapping[_Kind, int], dispatcher: Dispatcher
    ) -> dict[_Kind, list[Drawn]] | None:
        """Draw the pilot questions; None if a limit was reached before all were drawn."""
        found: dict[_Kind, list[Drawn]] = {key: [] for key in needed}
        samples_in_all = self._store.sample_count()
        possible = [key for key, count in needed.items() if count <= samples_in_all]
        if not possible:
            return found
        size = max(needed[key] for key in possible)
        plan = PilotPlan(self._metrics, self._answers, cascades, [each.trusting() for each in cascades])
        ids = first_ids(self._store.sample_ids(), _SCANNED * size, cascades[0].seed)
        # Whole waves, not one sample after another: a plan that is given up leaves requests behind that are paid for.
        for start in range(0, len(ids), size):
            if all(len(found[key]) == needed[key] for key in possible):
                break
            wave = ids[start : start + size]
            samples = (sample for each in wave if (sample := self._store.sample(each)) is not None)
            done = 0
            async for results in self._stream(samples, {plan.name: plan}, dispatcher):
                done += 1
                for each in plan.drawn.pop(results[0].sample, ()):
                    questions_of_kind = found.get(key := _Kind(each.cascade, each.question.kind))
                    if questions_of_kind is not None and len(questions_of_kind) < needed[key]:
                        questions_of_kind.append(each)
            if done < len(wave):
                return None
        return found

    def _settle(self) -> None:
        """Drop the verdicts of cascades that were given under other thresholds, and recall which kinds were revoked."""
        self._answers.commit()
        cascades: list[Cascade] = []
        for n, (cascade, roles) in enumerate(self._answers.cascades()):
            now = _thresholds_record(cascade)
            settled = cascade
            for role in roles:
                stored = stored_thresholds(self._store, role, cascade.route)
                before = stored["thresholds"]
                changed = [kind for kind in {**now, **before} if now.get(kind) != before.get(kind)]
                revoked = {kind: own for kind, own in stored["revoked"].items() if kind not in changed}
                if changed:
                    _put_remark(self._store, cascade, role, now, revoked, dropping=changed)
                for kind, places in revoked.items():
                    audits = audits_of(self._store, settled, role, {bytes.fromhex(key): place for key, place in places})
                    self._audits[_Kind(n, kind)] = self._audit_result(settled, audits)
                    settled = _revoked(settled, kind, audits)
            cascades.append(settled)
        self._answers.recast(cascades)

    def _revoke(self, key: _Kind, audits: Sequence[Audited]) -> None:
        """Store that a kind goes to the last judge from now on, and drop the cascade's verdicts on it."""
        cascade, roles = self._answers.cascades()[key.cascade]
        for role in roles:
            revoked = stored_thresholds(self._store, role, cascade.route)["revoked"]
            revoked[key.kind] = [(each.key.hex(), each.place) for each in audits]
            _put_remark(self._store, cascade, role, _thresholds_record(cascade), revoked, dropping=[key.kind])

    def _audit_result(self, cascade: Cascade, audits: Sequence[Audited]) -> KindAudit:
        """Compare audited answers with the last judge's, in the order drawn, as far as that has answered."""
        return audit_result(audits, answers_to([each.question for each in audits], self._answers), cascade.max_error)


def audit_result(audits: Sequence[Audited], answers: Sequence[Answer | None], max_error: float) -> KindAudit:
    """Compare audited answers with those of the last judge, in the order drawn, up to the first that is None."""
    wrong: dict[tuple[int, bool], list[bool]] = {}
    without = 0
    for each, answer in zip(audits, answers, strict=True):
        if answer is None:
            break
        if isinstance(answer, Failure):
            without += 1
        else:
            wrong.setdefault((each.place, each.yes), []).append(not same_decision(each.verdict, answer))
    classes = [_class_audit(place, own, max_error, yes=yes) for (place, yes), own in sorted(wrong.items())]
    return KindAudit(len(audits), without, classes)


def _trails(outcomes: Path) -> Iterator[bytes]:
    with outcomes.open(encoding="utf-8") as lines:
        for line in lines:
            yield from map(bytes.fromhex, json.loads(line).get("trail", ()))


def _tested(
    cascade: Cascade, kind: str, drawn: Sequence[Drawn], given: Sequence[Answer | None]
) -> dict[tuple[int, bool], tuple[ThresholdTest, ...]]:
    """Return the tests of each judge before the last, by its position and its decision.

    Each judge is tested on its own pilot questions, without those that an earlier judge answers. Which ones these are
    depends on the errors of the earlier judge, so its pilot must not be used twice.
    """
    tests: dict[tuple[int, bool], tuple[ThresholdTest, ...]] = {}
    tested: list[tuple[int, Stage]] = []
    for turn, place in enumerate(cascade.candidates(KINDS[kind])):
        part = slice(turn * cascade.pilot, (turn + 1) * cascade.pilot)
        pairs: dict[bool, list[tuple[float, bool]]] = {True: [], False: []}
        for each, last in zip(drawn[part], given[part], strict=True):
            verdict = each.verdicts.get(place)
            if verdict is None or last is None or isinstance(last, Failure):
                continue
            if any(n in each.verdicts and stage.accepts(kind, each.verdicts[n]) for n, stage in tested):
                continue
            pairs[is_positive(verdict)].append((rounded_confidence(verdict), not same_decision(verdict, last)))
        thresholds: dict[Decision, float] = {}
        for yes, own in pairs.items():
            confidences, wrong = [each for each, _ in own], [each for _, each in own]
            found = fixed_sequence(confidences, wrong, cascade.max_error, level=CLASS_LEVEL)
            tests[place, yes] = found
            if (threshold := accepted(found)) is not None:
                thresholds[Decision(kind, yes)] = threshold
        tested.append((place, Stage(cascade.stages[place].judge, thresholds)))
    return tests


def _class_audit(place: int, wrong: Sequence[bool], max_error: float, *, yes: bool) -> ClassAudit:
    """Test by betting whether the error rate is above `max_error`: valid although audits of other sizes may follow."""
    looking = StreamingGate(max_error, (0.0, 1.0), level=CLASS_LEVEL)
    for each in wrong:
        looking.add(float(each), float(each))
    ends = sequential_interval([float(each) for each in wrong], (0.0, 1.0), level=2 * CLASS_LEVEL - 1).ends
    lower = 0.0 if ends is None else ends[0]
    return ClassAudit(place, yes, len(wrong), sum(wrong), lower, looking.verdict is GateVerdict.PASS)


def _revoked(cascade: Cascade, kind: str, audits: Iterable[Audited]) -> Cascade:
    contents = frozenset(each.question.content for each in audits)
    return replace(cascade, revoked=cascade.revoked | {kind}, alone=cascade.alone | contents)


def _failure(cascade: Cascade, kind: str, result: KindAudit) -> str:
    worst = next(each for each in result.classes if each.failed)
    name = cascade.judges[worst.place].name
    return (
        f"{cascade.last.name} disagrees with {worst.errors:,} of {worst.asked:,} audited {kind} answers of {name}, "
        f"which is more than {cascade.max_error:.0%}. It is now asked about all {kind} questions."
    )


def _for_last(cascade: Cascade, question: Question[Any]) -> Question[Any]:
    return replace(question, role=stage_role(question.role, len(cascade.stages)))


# What a run stores of a cascade: {"thresholds": {kind: [[place, yes, threshold], ...]},
# "revoked": {kind: [[key of an audited answer, place], ...]}}, under the cascade's role and route.


def _thresholds_record(cascade: Cascade) -> dict[str, list[list[Any]]]:  # Any: JSON
    found: dict[str, list[list[Any]]] = {}
    for place, stage in enumerate(cascade.stages):
        for decision, threshold in sorted(stage.thresholds.items()):
            found.setdefault(decision.kind, []).append([place, decision.yes, threshold])
    return found


def stored_thresholds(store: Store, role: str, route: str) -> dict[str, dict[str, list[Any]]]:  # Any: JSON
    """Return what a run stores of the cascade in this role and route: thresholds, and the kinds that were revoked."""
    text = store.remark(_remark_name(role, route))
    found: dict[str, dict[str, list[Any]]] = {} if text is None else json.loads(text)
    return {"thresholds": found.get("thresholds", {}), "revoked": found.get("revoked", {})}


def _put_remark(
    store: Store, cascade: Cascade, role: str, thresholds: object, revoked: object, *, dropping: Sequence[str]
) -> None:
    text = json.dumps({"thresholds": thresholds, "revoked": revoked}, separators=(",", ":"))
    store.put_remark(_remark_name(role, cascade.route), text, dropping=(role, dropping))


def _remark_name(role: str, route: str) -> str:
    # Cascades on two routes of one judge have the same role.
    return f"cascade {role} {route}" if route else f"cascade {role}"
