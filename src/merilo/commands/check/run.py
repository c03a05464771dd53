"""Measure the agreement of a judge with labelled records.

The records of each task and source are one run, so that cost and time are known for each. Limits, cache, resuming and
progress are those of an evaluation.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.check.asking import KIND, JudgedAsLabelled, sample_of
from merilo.commands.check.combined_progress import CombinedProgress
from merilo.commands.check.items import ItemStatus, items_of
from merilo.commands.check.labels import label_files
from merilo.commands.check.one_judge import answerable, for_one_judge, usage_of
from merilo.commands.check.tables import ALL, PEOPLE, TaskTable, table_of
from merilo.commands.evaluate.local_time import asks_local_model, time_sentence
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.evaluate.settings import judges_of
from merilo.data.labels import Labelled, Task
from merilo.data.sample import Dataset
from merilo.engine.rate_limits import asks_no_model
from merilo.errors import UsageError
from merilo.judges.local.judge import LocalJudge
from merilo.judges.local.timing import LocalWork
from merilo.judges.routed import each_judge, part_for
from merilo.judging.kinds.relevance import Relevance
from merilo.metrics.registry import metric_text
from merilo.runs.outcomes import outcome_from
from merilo.runs.run import STORE
from merilo.short_repr import short_repr
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.check.items import Item
    from merilo.commands.check.labels import LabelFile
    from merilo.commands.check.options import CheckOptions
    from merilo.commands.check.tables import PositiveRule
    from merilo.commands.evaluate.options import Options
    from merilo.judges.base import Judge, OutgoingRequest
    from merilo.judging.questions import Question
    from merilo.metrics.base import Outcome
    from merilo.runs.run import Run

_AS_USUAL: Final = Resampling()


@dataclass(frozen=True, slots=True)
class Check:
    """The agreement of a judge with human labels."""

    judge: Judge
    files: tuple[LabelFile, ...]
    people: tuple[TaskTable, ...]
    """Over records with human labels."""
    everything: tuple[TaskTable, ...] | None
    """Over all records, those with rule-generated labels included; None if these were not used."""
    constructed: int
    """Number of records with rule-generated labels that were used, or left out if `everything` is None."""
    left_out: Mapping[str, str]
    """Task that the judge cannot answer → reason."""
    usage: Mapping[str, Mapping[str, Mapping[str, Any]]]  # Any: numbers and nulls
    """Task → source → requests, tokens, cost and seconds."""
    sentences_alone: bool
    resampling: Resampling
    items: Mapping[str, Sequence[Item]]
    """All labels with the verdicts of the judge, by task or `sentence_relevance_alone`."""
    failed: tuple[int, int] = (0, 0)
    """Number of records with a question without a verdict, and number of records asked about."""
    stopped: str | None = None
    """The limit that was reached before all records were judged, as a sentence."""

    def __repr__(self) -> str:
        """Return the main facts, shortened."""
        return short_repr(
            self,
            judge=type(self.judge).__name__,
            files=self.files,
            tasks=self.people,
            left_out=self.left_out,
            stopped=self.stopped,
        )


async def run_check(options: CheckOptions, resampling: Resampling = _AS_USUAL) -> Check:
    """Return the agreement of `options.judge` with human labels.

    `out` becomes a directory with a run for each task and source. The same call resumes an interrupted check.

    Raises UsageError, DataError and what an evaluation raises.
    """
    files_read, records = _read(options)
    constructed = sum(record.constructed for record in records)
    if not options.include_constructed:
        records = [record for record in records if not record.constructed]
    if not records:
        raise UsageError("All chosen records have rule-generated labels. To use them, add --include-constructed.")
    records = drawn(records, options.sample)
    judge = judges_of(options)["judge"]
    alone = _relevance_is_free(judge) if options.each_sentence is None else options.each_sentence
    asked, left_out = _answerable(records, judge)
    _note_time(options, judge, asked, alone=alone)
    work = _Asking(options, judge, asked, alone=alone)
    with nullcontext(options.out) if options.out is not None else tempfile.TemporaryDirectory() as directory:
        items = await work.all_in(Path(directory))
    return Check(
        judge=judge,
        files=files_read,
        people=_tables(PEOPLE, items, resampling, judge, constructed=False),
        everything=_tables(ALL, items, resampling, judge, constructed=True) if options.include_constructed else None,
        constructed=constructed,
        left_out=left_out,
        usage=work.usage,
        sentences_alone=alone,
        resampling=resampling,
        items=items,
        failed=_failed(items),
        stopped=work.stopped,
    )


# -- which records ------------------------------------------------------------------------------------


def _read(options: CheckOptions) -> tuple[tuple[LabelFile, ...], list[Labelled]]:
    """The files, and the records of the tasks and sources that are options. Raises UsageError where none is left."""
    if options.sample is not None and options.sample < 1:
        raise UsageError(f"--sample must be at least 1, got {options.sample}.")
    unknown = [each for each in options.tasks if each not in set(Task)]
    if unknown:
        raise UsageError(f"No task {unknown[0]!r}; tasks: {', '.join(Task)}.")
    found = label_files(options.labels)
    records = [record for _, own in found for record in own]
    sources = sorted({record.source for record in records})
    strange = [each for each in options.sources if each not in sources]
    if strange:
        raise UsageError(f"No record is from the source {strange[0]!r}; sources: {', '.join(sources)}.")
    chosen = [
        record
        for record in records
        if (not options.tasks or record.task in options.tasks)
        and (not options.sources or record.source in options.sources)
    ]
    if not chosen:
        raise UsageError("No labelled record has one of these tasks and one of these sources.")
    return tuple(each for each, _ in found), chosen


def drawn(records: list[Labelled], sample: int | None) -> list[Labelled]:
    """Return `sample` records per task and source, those whose ids have the lowest digests, in their order."""
    if sample is None:
        return records
    groups: dict[tuple[Task, str], list[Labelled]] = {}
    for record in records:
        groups.setdefault((record.task, record.source), []).append(record)
    sampled = {
        (record.task, record.id)
        for group in groups.values()
        for record in sorted(group, key=lambda each: hashlib.blake2b(each.id.encode()).digest())[:sample]
    }
    return [record for record in records if (record.task, record.id) in sampled]


def _answerable(records: Sequence[Labelled], judge: Judge) -> tuple[list[Labelled], dict[str, str]]:
    """Return the records that the judge can answer, and the other tasks with the reason."""
    chosen, left_out = answerable(records, judge, lambda record: record.task, lambda record: KIND[record.task])
    if not chosen:
        raise UsageError(f"The judge can answer none of the records: {'; '.join(dict.fromkeys(left_out.values()))}.")
    return chosen, left_out


def _relevance_is_free(judge: Judge) -> bool:
    """Return True if relevance is judged without a request to a model at an address."""
    return all(map(_costs_nothing, each_judge([part_for(judge, Relevance) or judge])))


def _costs_nothing(judge: Judge) -> bool:
    """Return True if the judge answers without a request to a model at an address."""
    if Relevance not in judge.answers:
        return False
    conversation = judge.answer(Relevance("Is it?", ("It is.",)))
    try:
        return all(asks_no_model(send.provider) for send in next(conversation))
    except StopIteration:
        return True
    finally:
        conversation.close()


def _note_time(options: CheckOptions, judge: Judge, records: Sequence[Labelled], *, alone: bool) -> None:
    """Report the estimated time of local models for all records, known answers included."""
    if options.progress is None or not asks_local_model([judge]):
        return
    work = LocalWork()
    for record in records:
        metrics = [JudgedAsLabelled(record.task)]
        if alone and record.task is Task.SENTENCE_RELEVANCE:
            metrics.append(JudgedAsLabelled(record.task, alone=True))
        sample = sample_of(record)
        for question in (each for metric in metrics for each in metric.questions(sample)):
            for part in each_judge([part_for(judge, type(question)) or judge]):
                for send in _first_requests(part, question):
                    work.add(send)
    time = work.time()
    if time is not None:
        options.progress.note(f"{time_sentence(time)} Known answers take no time.")


def _first_requests(judge: Judge, question: Question[Any]) -> tuple[OutgoingRequest, ...]:
    """Return the requests with which a local model begins its answer; empty for other judges."""
    if not isinstance(judge, LocalJudge):
        return ()
    conversation = judge.answer(question)
    try:
        return next(conversation, ())
    finally:
        conversation.close()


# -- asking -------------------------------------------------------------------------------------------


class _Asking:
    """A sequence of evaluations, with the usage of each."""

    def __init__(self, options: Options, judge: Judge, records: Sequence[Labelled], *, alone: bool) -> None:
        self.usage: dict[str, dict[str, dict[str, Any]]] = {}  # Any: numbers and nulls
        self.stopped: str | None = None
        self._alone = alone
        self._groups: dict[tuple[Task, str], list[Labelled]] = {}
        for record in records:
            self._groups.setdefault((record.task, record.source), []).append(record)
        self._passing = CombinedProgress(options.progress, len(records), options.budget)
        self._options = replace(for_one_judge(options, judge), progress=self._passing, reports_local_time=False)

    async def all_in(self, directory: Path) -> dict[str, list[Item]]:
        """Return the items by task or `sentence_relevance_alone`."""
        items: dict[str, list[Item]] = {}
        try:
            for (task, source), records in sorted(self._groups.items()):
                if self.stopped is not None:
                    break
                run = await self._asked(directory / task.value / _folder(source), task, source, records)
                for name, outcomes in _outcomes(run).items():
                    items.setdefault(name, []).extend(items_of(records, outcomes, alone=name != task.value))
        finally:
            self._passing.close()
        return items

    async def _asked(self, path: Path, task: Task, source: str, records: Sequence[Labelled]) -> Run:
        metrics = [JudgedAsLabelled(task)]
        if self._alone and task is Task.SENTENCE_RELEVANCE:
            metrics.append(JudgedAsLabelled(task, alone=True))
        options = replace(
            self._options,
            metrics=metrics,
            out=path,
            max_seconds=self._passing.left.max_seconds,
            shared_with=tuple(each for each in _runs_in(path.parent.parent) if each != path),
        )
        samples = [sample_of(record) for record in records]
        run = await run_evaluation(Dataset(f"{task.value} {source}", samples.__iter__), options)
        self.usage.setdefault(task.value, {})[source] = usage_of(run)
        self.stopped = run.usage.get("stopped")
        return run


def _failed(items: Mapping[str, Sequence[Item]]) -> tuple[int, int]:
    """Return the number of records with a failure, and the number of all."""
    states = {(item.record.task, item.record.id): item.state for own in items.values() for item in own}
    return sum(state is ItemStatus.FAILED for state in states.values()), len(states)


def _outcomes(run: Run) -> dict[str, dict[str, Outcome]]:
    """Return outcomes by task or `sentence_relevance_alone`, then by record id."""
    names = {metric_text(JudgedAsLabelled(task)): task.value for task in Task}
    names[metric_text(JudgedAsLabelled(Task.SENTENCE_RELEVANCE, alone=True))] = "sentence_relevance_alone"
    found: dict[str, dict[str, Outcome]] = {}
    for record in run.records():
        found.setdefault(names[record["metric"]], {})[record["sample"]] = outcome_from(record)
    return found


def _runs_in(directory: Path) -> list[Path]:
    """Return the runs of all tasks and sources in the directory of a check; they share one budget."""
    return sorted(store.parent for store in directory.glob(f"*/*/{STORE}"))


def _folder(source: str) -> str:
    """Return the source as a directory name. A name with other characters than letters, digits, _ . - gets a digest."""
    plain = re.sub(r"[^\w.-]", "_", source, flags=re.ASCII).strip(".") or "_"
    return plain if plain == source else f"{plain}-{hashlib.blake2b(source.encode(), digest_size=4).hexdigest()}"


# -- tables -------------------------------------------------------------------------------------------


def _tables(
    readings: Sequence[PositiveRule],
    items: Mapping[str, Sequence[Item]],
    resampling: Resampling,
    judge: Judge,
    *,
    constructed: bool,
) -> tuple[TaskTable, ...]:
    found: list[TaskTable] = []
    for reading in readings:
        own = items.get(reading.name if reading.alone else reading.task.value, ())
        chosen = [item for item in own if constructed or not item.record.constructed]
        table = table_of(reading, chosen, resampling, _trained_on(judge, KIND[reading.task]))
        if table is not None:
            found.append(table)
    return tuple(found)


def _trained_on(judge: Judge, kind: type[Question[Any]]) -> frozenset[str]:
    """Return the data sets that a local model which answers a kind of question was trained on, by its card."""
    models = [each for each in each_judge([part_for(judge, kind) or judge]) if isinstance(each, LocalJudge)]
    return frozenset(name for each in models if kind in each.model_kinds for name in each.card.trained_on)
