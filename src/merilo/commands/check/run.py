"""Check a judge: trial questions of each kind, human labels, and edits whose effect on a verdict is known.

All items are samples of one run, so limits, cache, resuming and progress are those of an evaluation::

    options → trial kinds, labelled records, edited pairs → samples → one run → tables of labels, effects of edits
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Hashable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.commands.check.asking import (
    KIND,
    TRIAL,
    CheckedVerdicts,
    label_id,
    sample_of,
    trial_sample,
)
from merilo.commands.check.cases import SeededSampler, labelled_cases
from merilo.commands.check.effects import Result, TrialVerdicts, result_of
from merilo.commands.check.items import ItemStatus, items_of
from merilo.commands.check.one_judge import answerable, for_one_judge, usage_of
from merilo.commands.check.probes import BY_NAME, PROBES, edit_id, edit_sample
from merilo.commands.check.tables import ALL, PEOPLE, TaskTable, table_of
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.evaluate.settings import judges_of
from merilo.commands.plan.run import run_estimate
from merilo.data.labels import Labelled, Task, read_labels
from merilo.data.sample import Dataset
from merilo.engine.answer_store import SPECIAL
from merilo.errors import UsageError
from merilo.judges.determinism import is_deterministic
from merilo.judges.local.judge import LocalJudge
from merilo.judges.routed import each_judge, part_for, parts_of
from merilo.judging.registry import KINDS
from merilo.metrics.base import Failed, Score
from merilo.runs.outcomes import outcome_from
from merilo.short_repr import short_repr
from merilo.stats.gate import GateVerdict
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.commands.check.cases import Case
    from merilo.commands.check.items import Item
    from merilo.commands.check.options import CheckOptions
    from merilo.commands.check.probes import Probe, ProbeTrial
    from merilo.commands.check.tables import PositiveRule
    from merilo.commands.evaluate.options import Options
    from merilo.engine.amounts import Estimate
    from merilo.judges.base import Judge
    from merilo.judges.local.golden import GoldenCheck
    from merilo.judging.questions import Question
    from merilo.metrics.base import Outcome
    from merilo.runs.run import Run

EDITS: Final = "edits"
PAIRS: Final = 40
"""Default number of pairs of an edit."""
_AS_USUAL: Final = Resampling()
_SAMPLE: Final = ("examples", "labels")
"""Path of the labelled sample inside the package."""


class LabelFile(NamedTuple):
    """A label file that was read."""

    name: str
    sha256: str
    records: int


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """The result of checking a judge."""

    judge: Judge
    files: tuple[LabelFile, ...]
    kinds: Mapping[str, Outcome]
    """Kind of question → the outcome of its trial; empty if it was not asked for."""
    golden: GoldenCheck | None
    """How the logits of a local model differ from those in its card; None if there are none."""
    people: tuple[TaskTable, ...]
    """Over records with human labels."""
    everything: tuple[TaskTable, ...] | None
    """Over all records, those with rule-generated labels included; None if these were not used."""
    constructed: int
    """Number of records with rule-generated labels that were used, or left out if `everything` is None."""
    cases: int
    """Number of judgements that could be edited."""
    edits: tuple[Result, ...]
    left_out: Mapping[str, str]
    """Task, edit or kind that was left out → reason."""
    usage: Mapping[str, Any]  # Any: numbers and nulls
    items: Mapping[str, Sequence[Item]]
    """All labels with the verdicts of the judge, by task."""
    failed: tuple[int, int] = (0, 0)
    """Number of items with a question that got no verdict, and number of items asked about."""
    stopped: str | None = None
    """The limit that was reached before all questions were asked, as a sentence."""
    resampling: Resampling = _AS_USUAL

    @property
    def verdict(self) -> GateVerdict:
        """Fail if an edit fails; otherwise cannot tell if one cannot tell; otherwise pass."""
        found = {each.decision.verdict for each in self.edits}
        return next((each for each in (GateVerdict.FAIL, GateVerdict.CANNOT_TELL) if each in found), GateVerdict.PASS)

    @property
    def works(self) -> bool:
        """True if every trial question has a verdict, and the golden logits agree."""
        return all(isinstance(each, Score) for each in self.kinds.values()) and (
            self.golden is None or self.golden.agree
        )

    def __repr__(self) -> str:
        """Return the main facts, shortened."""
        return short_repr(
            self,
            judge=type(self.judge).__name__,
            files=self.files,
            tasks=self.people,
            edits=self.edits,
            stopped=self.stopped,
        )


async def run_check(options: CheckOptions, resampling: Resampling = _AS_USUAL) -> JudgeCheck:
    """Return the result of checking `options.judge`.

    `out` becomes a directory with a run over all items. The same call resumes an interrupted check.

    Raises UsageError, DataError and what an evaluation raises.
    """
    work = _Work.of(options)
    with nullcontext(options.out) if options.out is not None else tempfile.TemporaryDirectory() as directory:
        run = await run_evaluation(work.dataset(), work.evaluation(Path(directory, "run")))
        return work.result(run, resampling)


async def estimate_check(options: CheckOptions) -> Estimate:
    """Estimate requests and cost of `run_check`, without a request. Raises what it raises before its first request."""
    work = _Work.of(options)
    out = None if options.out is None else Path(options.out, "run")
    found = await run_estimate(work.dataset(), work.evaluation(out), sample=None)
    return replace(found, metrics=tuple(replace(each, metric="judge check") for each in found.metrics))


@dataclass(frozen=True, slots=True)
class _Work:
    """The items of one call."""

    judge: Judge
    options: CheckOptions
    files: tuple[LabelFile, ...]
    kinds: tuple[str, ...]
    records: Sequence[Labelled]
    constructed: int
    cases: int
    trials: Mapping[str, Sequence[ProbeTrial]]
    """By the name of the edit."""
    left_out: Mapping[str, str]

    @classmethod
    def of(cls, options: CheckOptions) -> _Work:
        """Choose the items. Raises UsageError and DataError."""
        _check(options)
        judge = judges_of(options)["judge"]
        kinds = tuple(name for name, kind in KINDS.items() if kind in judge.answers and kind not in SPECIAL)
        kinds = kinds if not options.tasks or TRIAL in options.tasks else ()
        files_read, every = _read(options)
        records, left_out = _records(options, every, judge)
        cases, unfit = answerable(labelled_cases(every), judge, lambda case: case.asks, lambda case: KINDS[case.asks])
        trials, pointless = _trials(_chosen_edits(options), cases, judge, options.number or PAIRS)
        left_out |= (unfit if _chosen_edits(options) else {}) | pointless
        if not (kinds or records or trials):
            raise UsageError(f"Nothing to ask: {'; '.join(f'{name}: {why}' for name, why in left_out.items())}.")
        constructed = sum(record.constructed for record in _of_tasks(options, every))
        return cls(judge, options, files_read, kinds, records, constructed, len(cases), trials, left_out)

    def dataset(self) -> Dataset:
        """Return all items as samples."""
        samples = [trial_sample(kind, pair=KINDS[kind] in self.judge.together) for kind in self.kinds]
        samples += map(sample_of, self.records)
        samples += (edit_sample(BY_NAME[name], trial) for name, own in self.trials.items() for trial in own)
        return Dataset("judge check", samples.__iter__)

    def evaluation(self, out: str | PathLike[str] | None) -> Options:
        """Return the options of the run over these items."""
        kinds = {*self.kinds, *(KIND[record.task].kind for record in self.records)}
        kinds |= {trial.case.asks.value for own in self.trials.values() for trial in own}
        metric = CheckedVerdicts("+".join(name for name in KINDS if name in kinds))
        options = replace(for_one_judge(self.options, self.judge), metrics=[metric], out=out)
        # A stored answer does not show that the judge can be reached.
        return (
            replace(options, storage=replace(options.storage, cache=False))
            if not (self.records or self.trials)
            else options
        )

    def result(self, run: Run, resampling: Resampling) -> JudgeCheck:
        """Return what the outcomes of the run show; items that were not asked about are not part of it."""
        outcomes = {record["sample"]: outcome_from(record) for record in run.records()}
        items = self._items(outcomes)
        local = [each for each in parts_of(self.judge) if isinstance(each, LocalJudge)] if self.kinds else []
        golden = [found for each in local if (found := each.golden_check()) is not None]

        def tables(readings: Sequence[PositiveRule], *, constructed: bool) -> tuple[TaskTable, ...]:
            return tuple(_tables(readings, items, resampling, self.judge, constructed=constructed))

        return JudgeCheck(
            judge=self.judge,
            files=self.files,
            kinds={kind: each for kind in self.kinds if (each := outcomes.get(f"{TRIAL}/{kind}")) is not None},
            golden=max(golden, key=lambda each: each.difference, default=None),
            people=tables(PEOPLE, constructed=False),
            everything=tables(ALL, constructed=True) if self.options.include_constructed else None,
            constructed=self.constructed,
            cases=self.cases,
            edits=tuple(_effects(self.trials, outcomes)),
            left_out=self.left_out,
            usage=usage_of(run),
            items=items,
            failed=(sum(isinstance(each, Failed) for each in outcomes.values()), len(outcomes)),
            stopped=run.usage.get("stopped"),
            resampling=resampling,
        )

    def _items(self, outcomes: Mapping[str, Outcome]) -> dict[str, list[Item]]:
        groups: dict[tuple[Task, str], list[Labelled]] = {}
        for record in self.records:
            groups.setdefault((record.task, record.source), []).append(record)
        items: dict[str, list[Item]] = {}
        for (task, _), records in sorted(groups.items()):
            own = {each.id: outcome for each in records if (outcome := outcomes.get(label_id(each))) is not None}
            items.setdefault(task.value, []).extend(items_of(records, own))
        return items


# -- which items --------------------------------------------------------------------------------------


def _check(options: CheckOptions) -> None:
    """Raise UsageError for a number or a task that cannot be used."""
    if options.number is not None and options.number < 1:
        raise UsageError(f"--number must be at least 1, got {options.number}.")
    known = (TRIAL, EDITS, *Task, *BY_NAME)
    if unknown := [each for each in options.tasks if each not in known]:
        raise UsageError(f"No task {unknown[0]!r}; tasks: {', '.join(known)}.")


def _chosen_edits(options: CheckOptions) -> list[Probe]:
    every = not options.tasks or EDITS in options.tasks
    return [probe for probe in PROBES if every or probe.name in options.tasks]


def _read(options: CheckOptions) -> tuple[tuple[LabelFile, ...], list[Labelled]]:
    """Return the label files and their records of the chosen sources; nothing if only the trial is asked for."""
    if {*options.tasks} == {TRIAL}:
        return (), []
    found = label_files(options.labels)
    records = [record for _, own in found for record in own]
    sources = sorted({record.source for record in records})
    if strange := [each for each in options.sources if each not in sources]:
        raise UsageError(f"No record is from the source {strange[0]!r}; sources: {', '.join(sources)}.")
    chosen = [record for record in records if not options.sources or record.source in options.sources]
    return tuple(each for each, _ in found), chosen


def label_files(paths: Sequence[str | PathLike[str]]) -> list[tuple[LabelFile, tuple[Labelled, ...]]]:
    """Read each file; the sample in the package if no file is named. Raises what `read_labels` raises."""
    if paths:
        return _label_files([*map(Path, paths)])
    with as_file(files("merilo").joinpath(*_SAMPLE)) as folder:
        return _label_files(sorted(folder.glob("*.jsonl.gz")))


def _label_files(paths: list[Path]) -> list[tuple[LabelFile, tuple[Labelled, ...]]]:
    read_labels(paths)  # reading all together rejects ids that occur in two files
    found: list[tuple[LabelFile, tuple[Labelled, ...]]] = []
    for path in paths:
        records = read_labels([path])
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        found.append((LabelFile(path.name, digest, len(records)), records))
    return found


def _of_tasks(options: CheckOptions, records: Sequence[Labelled]) -> list[Labelled]:
    return [record for record in records if not options.tasks or record.task in options.tasks]


def _records(options: CheckOptions, every: Sequence[Labelled], judge: Judge) -> tuple[list[Labelled], dict[str, str]]:
    """Return the records to compare with, and the tasks that are left out with the reason."""
    wanted = _of_tasks(options, every)
    left_out = {
        each: "no labelled record has this task"
        for each in options.tasks
        if each in [*Task] and each not in {record.task for record in wanted}
    }
    human = [record for record in wanted if options.include_constructed or not record.constructed]
    if wanted and not human:
        left_out["labels"] = "all are rule-generated; to use them, add --include-constructed"
    chosen, unanswered = answerable(
        drawn(human, options.number), judge, lambda record: record.task, lambda record: KIND[record.task]
    )
    return chosen, left_out | unanswered


def drawn(records: list[Labelled], number: int | None) -> list[Labelled]:
    """Return `number` records per task and source, those whose ids have the lowest digests, in their order."""
    if number is None:
        return records
    groups: dict[tuple[Task, str], list[Labelled]] = {}
    for record in records:
        groups.setdefault((record.task, record.source), []).append(record)
    chosen = {
        (record.task, record.id)
        for group in groups.values()
        for record in sorted(group, key=lambda each: hashlib.blake2b(each.id.encode()).digest())[:number]
    }
    return [record for record in records if (record.task, record.id) in chosen]


def _trials(
    probes: Sequence[Probe], cases: Sequence[Case], judge: Judge, number: int
) -> tuple[dict[str, list[ProbeTrial]], dict[str, str]]:
    """Return up to `number` trials of each edit, and the edits that are left out with the reason."""
    sampler = SeededSampler(0)
    mixed = _spread(sampler.order(cases, "cases"))
    left_out: dict[str, str] = {}
    found: dict[str, list[ProbeTrial]] = {}
    for probe in probes:
        if probe.repeats and is_deterministic(judge):
            left_out[probe.name] = f"the judge {judge.name} always gives the same verdict"
        elif own := [*islice(probe.trials(mixed, sampler), number)]:
            found[probe.name] = own
        else:
            left_out[probe.name] = "no case fits it"
    return found, left_out


def _spread(cases: Sequence[Case]) -> list[Case]:
    """Return the first case of each cluster, then the second ones, and so on, since cases of a cluster are alike."""
    taken = Counter[Hashable]()
    ranks: list[int] = []
    for case in cases:
        ranks.append(taken[case.cluster])
        taken[case.cluster] += 1
    return [case for _, case in sorted(zip(ranks, cases, strict=True), key=lambda pair: pair[0])]


# -- what the outcomes show ---------------------------------------------------------------------------


def _effects(trials: Mapping[str, Sequence[ProbeTrial]], outcomes: Mapping[str, Outcome]) -> Iterator[Result]:
    for name, own in trials.items():
        probe = BY_NAME[name]
        judged = [*_judged(probe, own, outcomes)]
        if judged:
            yield result_of(probe, judged)


def _judged(probe: Probe, trials: Sequence[ProbeTrial], outcomes: Mapping[str, Outcome]) -> Iterator[TrialVerdicts]:
    for trial in trials:
        outcome = outcomes.get(edit_id(probe, trial))
        if isinstance(outcome, Score):
            yield TrialVerdicts(trial, tuple(piece.verdict for piece in outcome.evidence))
        elif isinstance(outcome, Failed):
            yield TrialVerdicts(trial, None)


def _tables(
    readings: Sequence[PositiveRule],
    items: Mapping[str, Sequence[Item]],
    resampling: Resampling,
    judge: Judge,
    *,
    constructed: bool,
) -> Iterator[TaskTable]:
    for reading in readings:
        chosen = [item for item in items.get(reading.task.value, ()) if constructed or not item.record.constructed]
        table = table_of(reading, chosen, resampling, _trained_on(judge, KIND[reading.task]))
        if table is not None:
            yield table


def _trained_on(judge: Judge, kind: type[Question[Any]]) -> frozenset[str]:
    """Return the data sets that a local model which answers a kind of question was trained on, by its card."""
    models = [each for each in each_judge([part_for(judge, kind) or judge]) if isinstance(each, LocalJudge)]
    return frozenset(name for each in models if kind in each.model_kinds for name in each.card.trained_on)


def worst_items(check: JudgeCheck, most: int) -> list[Item]:
    """Return items on which judge and annotators differ, the most certain verdicts first."""
    differ = [
        item
        for own in check.items.values()
        for item in own
        if item.state is ItemStatus.JUDGED and item.judge is not None and (item.judge >= 1) != (item.people >= 1)
    ]
    return sorted(differ, key=lambda item: -abs((item.probability if item.probability is not None else 0.5) - 0.5))[
        :most
    ]
