"""Sampling of items for annotators: drawn from a run or a pair of runs, without the judge's verdicts."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from statistics import variance
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.commands.label.tasks import (
    ASSUMED_S,
    SETTLED,
    TaskLine,
    Ticket,
    Unit,
    population_mark,
    side_mark,
    task_format,
    write_tasks,
)
from merilo.errors import UsageError
from merilo.metrics.registry import asks_judge, known_definition
from merilo.results.judged_samples import Item, JudgedSample, judged_samples, with_not_judged
from merilo.results.records import grouped, picked
from merilo.results.scores import RunScores, read_scores
from merilo.runs.files import CALLS
from merilo.runs.run import Run, opened
from merilo.short_repr import short_repr
from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.power import LabelSpread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.data.sample import Sample

SAMPLES: Final = 40
_FEWEST: Final = 30
"""Whole samples to draw at least: more than decide, as other metrics of the same items may have no value for some."""
_TARGET: Final = 240
"""Items that a draw of whole samples asks for by default, if its number of samples allows it."""
_LONGEST: Final = 12
"""Items of a sample up to which whole samples are drawn by default; otherwise `SOME` of each."""
SOME: Final = 3
_RELEVANCE: Final = "context_relevance"
_SUFFICIENCY: Final = "context_sufficiency"
_FAULT_METRICS: Final = ("answering", "faithfulness", _SUFFICIENCY)
"""Metrics with the verdicts of the fault table, the one with the most of them first."""
_NEARLY: Final = 0.95
_TESTED: Final = 10
"""The number of drawn samples on which merilo tests whether a metric's value is a sum over its items."""
_WHY_VALUE: Final = (
    "labels of contexts or statements do not determine its value, so each task asks for the value itself"
)


_OWN_WORDS: Final = {"right": "Is the response right by the reference? 1 if it is, 0 if it is not."}
"""Metric → the question to annotators, in place of one that names the metric."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of one draw."""

    metric: str
    """The metrics of the tasks: one, or context_relevance and context_sufficiency joined by "and"."""
    unit: Unit
    samples: int
    """Samples that were drawn."""
    population: int
    """Samples that could have been drawn: those of a run with a score, or whose items the judge left open."""
    lines: tuple[TaskLine, ...]
    remarks: tuple[str, ...]
    seconds: float = ASSUMED_S
    """The time that a task takes."""

    @property
    def to_answer(self) -> int:
        """The number of tasks that need an answer."""
        return sum(line.label != SETTLED for line in self.lines)

    def __repr__(self) -> str:
        return short_repr(self, **picked(self, "metric unit samples tasks=lines to_answer"))


def label_run(
    run: Run | str | PathLike[str],
    out: str | PathLike[str] | None = None,
    *,
    metric: str | None = None,
    samples: int | None = SAMPLES,
    items: int | None = SOME,
    other: Run | str | PathLike[str] | None = None,
) -> Tasks:
    """Draw tasks for annotators and write them to `out`; documented at `merilo.label`.

    `samples`, `items`: None, as `merilo label` has it, for whole samples, 30 to 40 of them, or 3 items of each of 40 if
    samples are long (design/labels-and-correction.md).
    """
    if min(each for each in (samples, items, 1) if each is not None) < 1:
        raise UsageError(f"A draw needs at least 1 sample and 1 item per sample, got {samples} and {items}.")
    if out is not None:
        task_format(Path(out))
    runs = [opened(each) for each in (run, other) if each is not None]
    text, *more = metrics_to_label(runs) if metric is None else (metric_to_label(runs, metric),)
    for each in runs:
        if text not in each.manifest.metrics:
            raise UsageError(f"{each.path} has no metric {text}. Evaluate it there too.")
    tasks = _Drawing(tuple(runs), text, samples, items).tasks()
    for other_text in more:
        with suppress(UsageError):  # no sample has a score of it
            tasks = _joined(tasks, _Drawing(tuple(runs), other_text, tasks.samples, items, text).tasks())
    if out is not None:
        write_tasks(Path(out), tasks.lines)
    return tasks


def _joined(tasks: Tasks, more: Tasks) -> Tasks:
    """Return the tasks of two metrics, those of each sample together; only the first if values are asked."""
    if Unit.VALUE in {tasks.unit, more.unit}:
        return tasks
    place = {sample: at for at, sample in enumerate(dict.fromkeys(line.ticket.sample for line in tasks.lines))}
    lines = sorted((*tasks.lines, *more.lines), key=lambda line: place.get(line.ticket.sample, len(place)))
    return replace(tasks, metric=f"{tasks.metric} and {more.metric}", lines=tuple(lines))


def tasks_file(runs: Sequence[str | PathLike[str]], tasks: Tasks) -> Path:
    """Return the file of these tasks next to the first run, with the labels given so far; write it if there is none."""
    first, *others = map(Path, runs)
    ids = "".join(line.ticket.task for line in tasks.lines)
    metric = re.sub(r"[^\w]+", "-", tasks.metric).strip("-")
    # The digest of the tasks in the name: the same command resumes, another draw has another file.
    names = [first.name, *(each.name for each in others), metric, blake2b(ids.encode(), digest_size=3).hexdigest()]
    path = first.with_name("-".join(names) + ".jsonl")
    if not path.exists():
        write_tasks(path, tasks.lines)
    return path


def metrics_to_label(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return what is labelled by default: `metric_to_label`, and with relevance sufficiency, which both runs have."""
    text = metric_to_label(runs)
    both = text.startswith(_RELEVANCE) and all(_SUFFICIENCY in each.manifest.metrics for each in runs)
    return (text, _SUFFICIENCY) if both else (text,)


def metric_to_label(runs: Sequence[Run], metric: str | None = None) -> str:
    """Return the full text of the metric to label; for None, one that has the verdicts of the fault table.

    For a pair of runs with different scores of context_relevance, that one. Raises UsageError if the metric has no
    judge.
    """
    first = runs[0]
    if metric is not None:
        (text,) = read_scores(first, metrics=(metric,), cluster="").columns
        if not asks_judge(text):
            raise UsageError(f"{text} is computed without a judge, so human labels cannot correct it.")
        return text
    with_judge = {text.partition("(")[0]: text for text in [*first.manifest.metrics][::-1] if asks_judge(text)}
    if not with_judge:
        raise UsageError(f"{first.path} has no metric that uses a judge, so there are no verdicts to label.")
    relevance = with_judge.get(_RELEVANCE)
    if relevance is not None and len(runs) > 1 and relevance in runs[1].manifest.metrics:
        one, other = (read_scores(run, metrics=(relevance,), cluster="") for run in runs)
        if _by_sample(one, relevance) != _by_sample(other, relevance):
            return relevance
    return next((with_judge[name] for name in _FAULT_METRICS if name in with_judge), [*with_judge.values()][-1])


def _by_sample(scores: RunScores, metric: str) -> dict[str, str]:
    return dict(zip(scores.ids, map(repr, scores.columns[metric].values.tolist()), strict=True))


def _studies(power: float) -> str:
    """Return a probability as a number of studies."""
    return "nearly every study" if power >= _NEARLY else f"about {round(10 * power)} of 10 studies"


class _Among(NamedTuple):
    """The population of one draw."""

    population: int
    mark: str


class _Side(NamedTuple):
    """A sample of one of the runs."""

    fingerprint: str
    """That of the run's samples."""
    case: JudgedSample


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The settings of one draw of tasks from a run or a pair of runs; equal settings give equal tasks."""

    runs: tuple[Run, ...]
    metric: str
    samples: int | None
    items: int | None
    like: str = ""
    """The metric whose draw has the same samples; empty for its own."""

    def tasks(self) -> Tasks:
        judged = [read_scores(run, metrics=(self.metric,), cluster="") for run in self.runs]
        scores = [with_not_judged(each) for each in judged]
        column = scores[0].columns[self.metric]
        own = [_scored(each, self.metric) for each in scores]
        both = set[str].intersection(*own)
        # A sample of one run counts too, so that the draw is random among the samples of each run and of both.
        shared = set[str].intersection(*({*each.ids} for each in scores))
        ids = [sample for sample in scores[0].ids if sample in shared and any(sample in each for each in own)]
        if not both:
            where = " and ".join(str(run.path) for run in self.runs)
            in_both = "in both " if len(self.runs) > 1 else ""
            raise UsageError(f"No sample of {where} has a score of {self.metric} {in_both}that could be labelled.")
        drawn_from = _Among(len(ids), population_mark(ids))
        chances = self._drawn(ids, self.samples or SAMPLES)
        drawn_samples = grouped(each for run in self.runs for each in self._cases(run, chances))
        unit = self._unit([case for cases in drawn_samples.values() for _, case in cases])
        amounts = [len({item.mark for _, case in cases for item in case.items}) for cases in drawn_samples.values()]
        long = sum(amounts) > _LONGEST * len(amounts)
        if unit is Unit.ITEMS and self.items is None and not long:
            unit = Unit.WHOLE  # these labels also correct metrics that need all items
        if unit is Unit.WHOLE and self.samples is None:
            fitting = _TARGET * len(amounts) // max(sum(amounts), 1)
            chances = self._drawn(ids, min(max(fitting, _FEWEST), SAMPLES))
            drawn_samples = {sample: cases for sample, cases in drawn_samples.items() if sample in chances}
        remarks = [f"{self.metric}: {_WHY_VALUE}."] if unit is Unit.VALUE else []
        if all(_scored(each, self.metric) >= both for each in judged):  # otherwise the spread of values is unknown
            remarks += self._power(scores, sorted(both), len(both & drawn_samples.keys()))
        lines = [
            line
            for sample in self._shuffled(drawn_samples)
            for line in self._lines(drawn_samples[sample], unit, chances[sample], drawn_from, column.span)
        ]
        return Tasks(self.metric, unit, len(drawn_samples), len(ids), tuple(lines), tuple(remarks))

    def _power(self, scores: Sequence[RunScores], ids: Sequence[str], labelled: int) -> list[str]:
        """Return how likely this number of labelled samples shows a difference of two runs, if the judge is useless."""
        low, high = scores[0].columns[self.metric].span
        if len(self.runs) == 1 or labelled < DECIDING_LABELLED or not isfinite(high - low):
            return []
        values = [dict(zip(each.ids, each.columns[self.metric].values.tolist(), strict=True)) for each in scores]
        spread = LabelSpread(variance(values[0][each] - values[1][each] for each in ids), 0.0, len(ids))
        effect = 0.1 * (high - low)
        found = f"A true difference of {effect:.2g} is found in {_studies(spread.power(effect, labelled))}."
        few = labelled < len(ids) and spread.power(effect, labelled) < _NEARLY
        more = f" With --number {len(ids)}: {_studies(spread.power(effect, len(ids)))}." if few else ""
        return [found + more]

    def _drawn(self, ids: Sequence[str], wanted: int) -> dict[str, float]:
        """Return the drawn samples with their probability, in (0, 1]; of a diagnosis, whole questions in all arms."""
        arms = all((run.path / CALLS).is_dir() for run in self.runs)
        groups = grouped((each.rpartition("/")[0] if arms else each, each) for each in ids)
        found = drawn([*groups], wanted, key=_name("draw", self.like or self.metric))
        return {each: len(found) / len(groups) for group in found for each in groups[group]}

    def _cases(self, run: Run, samples: Mapping[str, float]) -> Iterator[tuple[str, _Side]]:
        """Yield the samples of a run that can be labelled, by id."""
        found = judged_samples(run, (self.metric,), samples)
        for sample in samples:
            if (case := found.get((sample, self.metric))) is not None:
                yield sample, _Side(run.manifest.fingerprint, case)

    def _unit(self, cases: Sequence[JudgedSample]) -> Unit:
        by_id = grouped((case.sample.id, case) for case in cases if not case.by_rule)
        asked = [case for sample in self._shuffled(by_id)[:_TESTED] for case in by_id[sample]]
        if any(not case.items or not case.reads_labels() for case in asked):
            return Unit.VALUE
        if not asked and any(case.metric is None for case in cases):
            return Unit.VALUE
        return Unit.ITEMS if all(case.adds_up() for case in asked) else Unit.WHOLE

    def _shuffled(self, samples: Mapping[str, object]) -> list[str]:
        return sorted(samples, key=lambda each: self._key("order", each))

    def _lines(
        self, cases: Sequence[_Side], unit: Unit, chance: float, drawn_from: _Among, span: tuple[float, float]
    ) -> list[TaskLine]:
        """Return the tasks of one sample. Those of a pair are shuffled, and a question of both is asked once."""
        first, *others = (run.manifest.fingerprint for run in self.runs)
        own = cases[0].case.sample

        def ticket(mark: str, labels: tuple[str, ...] = ()) -> Ticket:
            return Ticket(
                fingerprint=first,
                metric=self.metric,
                sample=own.id,
                unit=unit,
                mark=mark,
                probability=chance,
                population=drawn_from.population,
                labels=labels,
                among=drawn_from.mark,
                other=others[0] if others else "",
            )

        if unit is Unit.VALUE:
            return [
                TaskLine(ticket(mark), *_value_asked(self.metric, case.sample, span))
                for mark, case in self._sides(cases)
            ]
        items = {item.mark: item for _, case in cases for item in self._drawn_items(case, unit)}
        if not items:
            return [TaskLine(ticket(""), "Nothing to judge: the value follows without a judge.", (), "", SETTLED)]
        order = sorted(items, key=lambda mark: self._key("item", f"{own.id} {mark}"))
        return [
            TaskLine(ticket(mark, form.labels), form.asked, _with_input(form.texts, own), form.explained())
            for mark, form in ((mark, items[mark].form) for mark in order)
        ]

    def _drawn_items(self, case: JudgedSample, unit: Unit) -> list[Item]:
        # The order depends on the item alone, so that items of both runs of a pair are mostly drawn in both.
        found = sorted(case.items, key=lambda each: self._key("item", f"{case.sample.id} {each.mark}"))
        return found[: self.items or SOME] if unit is Unit.ITEMS else found

    def _sides(self, cases: Sequence[_Side]) -> list[tuple[str, JudgedSample]]:
        """Return the samples whose value is asked, with the mark of their task, in random order."""
        if len({run.manifest.fingerprint for run in self.runs}) == 1:
            return [("", cases[0].case)]
        found = [(side_mark(fingerprint), case) for fingerprint, case in cases]
        return sorted(found, key=lambda each: self._key("item", f"{each[1].sample.id} {each[0]}"))

    def _key(self, what: str, name: str) -> bytes:
        return _dice(_name(what, self.metric), name)


def _scored(scores: RunScores, metric: str) -> set[str]:
    return {sample for sample, there in zip(scores.ids, scores.columns[metric].scored.tolist(), strict=True) if there}


def _name(what: str, metric: str) -> str:
    return f"{what} 0 {metric}"  # the number was a seed; with it, a draw contains each earlier one


def drawn(ids: Sequence[str], wanted: int, *, key: str) -> list[str]:
    """Return `wanted` of the ids, or all if there are fewer: those with the smallest digests under `key`."""
    return sorted(ids, key=lambda each: _dice(key, each))[:wanted]


def _dice(key: str, name: str) -> bytes:
    """Return pseudo-random bytes to sort by."""
    # A digest and not `random`: it is the same on every machine and in every Python version.
    return blake2b(f"{key} {name}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _with_input(texts: tuple[tuple[str, str], ...], sample: Sample) -> tuple[tuple[str, str], ...]:
    """Return the texts of a task, preceded by the user input, by which annotators understand a statement."""
    if not sample.user_input or {"user_input", "texts"} & {name for name, _ in texts}:
        return texts
    return (("user_input", sample.user_input), *texts)


def _value_asked(
    metric: str, sample: Sample, span: tuple[float, float]
) -> tuple[str, tuple[tuple[str, str], ...], str]:
    """Return the question, the texts and the possible answers of a task that asks for a metric's value."""
    low, high = span
    ends = f"a number from {low:g} to {high:g}" if isfinite(low) and isfinite(high) else "a number"
    contexts = [f"[{number}] {each.text}" for number, each in enumerate(sample.retrieved_contexts or (), start=1)]
    fields = {
        "history": "\n".join(sample.read_history) or None,
        "user_input": sample.user_input,
        "contexts": "\n\n".join(contexts) if sample.retrieved_contexts is not None else None,
        "response": sample.response,
        "reference": sample.reference,
    }
    texts = tuple((name, text) for name, text in fields.items() if text is not None)
    asked = _OWN_WORDS.get(metric) or f"Which value of {metric} is right for this sample?{_meaning(metric)}"
    return asked, texts, ends


def _meaning(metric: str) -> str:
    found = known_definition(metric)
    return "" if found is None else f" {found.card.summary}"
