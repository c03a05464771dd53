"""Human labels next to the judge's verdicts, the verdicts on which they differ, and the price of more labels."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.calibrate.human_labels import HumanLabel, labels_of
from merilo.commands.label.run import Tasks, label_run, metrics_to_label
from merilo.commands.label.tasks import SETTLED, labelling_time, seconds_per_task
from merilo.data.sanitize import command
from merilo.errors import RunError, UsageError
from merilo.judging.verdicts import probability_of
from merilo.numbers import count
from merilo.results.levels import by_levels, judge_sentence, labelled_kinds
from merilo.results.sample_detail import GivenLabel, HumanVerdict, SampleDetail, cases_of
from merilo.runs.run import Run, opened
from merilo.stats.correction import DECIDING_LABELLED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from os import PathLike


_PLANS: Final = 2
"""Maximum number of metrics whose labels are planned to find some that are missing."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A verdict of the judge from which annotators differ."""

    sample: str
    user_input: str
    about: str
    """For example `context 2`, `statement`, or the kind of question if it is about the sample as a whole."""
    text: str
    """The context or the statement; empty for the sample as a whole."""
    people: tuple[HumanVerdict, ...]
    """The verdicts of the annotators who differ."""

    @property
    def words(self) -> str:
        """The verdicts, the judge's with its probability of a yes."""
        judge, given = self.people[0].judge, probability_of(self.people[0].judge)
        own = f"judge {judge.in_words()}" + ("" if given is None else f" ({given:.2f})")
        return ", ".join([own, *(f"{each.annotator} {each.verdict.in_words()}" for each in self.people)])

    def record(self) -> dict[str, Any]:  # Any: JSON
        """Return this as a JSON-able object."""
        first = self.people[0]
        return {
            **{name: getattr(self, name) for name in ("sample", "user_input", "about", "text")},
            "kind": first.kind,
            "judge": first.judge.as_label(),
            "certainty": first.certainty,
            "people": {each.annotator: each.verdict.as_label() for each in self.people},
        }


def readable_labels(*runs: Run) -> list[HumanLabel]:
    """Return the labels stored with these runs, without those that cannot be used: corrected numbers report these."""
    found: list[HumanLabel] = []
    for run in runs:
        with suppress(RunError):
            found += labels_of(run)
    return found


def labels_by_sample(labels: Iterable[HumanLabel]) -> dict[str, tuple[GivenLabel, ...]]:
    """Return the labels of contexts, statements and whole samples; of one annotator's labels of a question, the last.

    Labels that are the value of a metric are left out.
    """
    found: dict[str, dict[tuple[str, str], GivenLabel]] = {}
    for each in labels:
        ticket = each.ticket
        if ticket.labels and not ticket.settled:
            found.setdefault(ticket.sample, {})[ticket.mark, each.annotator] = (ticket.mark, each.annotator, each.label)
    return {sample: tuple(own.values()) for sample, own in found.items()}


def people_and_judge(run: Run, labels: Iterable[HumanLabel]) -> tuple[int, int, tuple[Disagreement, ...]]:
    """Return the number of verdicts on which annotators and the judge agree, that of all, and where they differ.

    The judge's most certain verdicts come first.
    """
    by_sample = labels_by_sample(labels)
    known = dict.fromkeys(record["sample"] for record in run.records_of(frozenset(by_sample)))
    cases = [*cases_of(run, list(known), by_sample).values()]
    verdicts = [each.agrees for case in cases for each in case.people]
    found = sorted((each for case in cases for each in _differing(case)), key=lambda each: -each.people[0].certainty)
    return sum(verdicts), len(verdicts), tuple(found)


def _differing(case: SampleDetail) -> Iterator[Disagreement]:
    sample = case.result.sample
    for (kind, context, statement), own in groupby(case.people, lambda each: (each.kind, each.context, each.statement)):
        differing = tuple(each for each in own if not each.agrees)
        about, text = "statement" if statement else kind, statement
        if context is not None:
            about, text = f"context {context + 1}", " ".join(case.contexts[context].sentences)
        if differing:
            yield Disagreement(sample.id, sample.user_input or "", about, text, differing)


# -- the price of labels ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelPrice:
    """What labels of a run, or of a pair of runs, take; its text is the price, or why no label would help."""

    questions: int
    """Samples of the draw that are not labelled yet."""
    items: int
    """Tasks that are not labelled yet."""
    minutes: str
    """For example `about 14 min`."""
    population: int
    """Samples that could be drawn."""
    command: str
    """The command that asks for these labels; empty if no label would help."""

    def __str__(self) -> str:
        if self.population < DECIDING_LABELLED:
            have = f"{self.population:,} can be labelled here"
            return f"{DECIDING_LABELLED} labelled samples are needed; {have}. Evaluate more questions."
        if not self.command:
            return f"All {self.population:,} samples are labelled. Evaluate more questions."
        return f"{count(self.questions, 'question')}, {count(self.items, 'item')}, {self.minutes}"

    @property
    def advice(self) -> str:
        """What to do next: the command and its price, or why no label would help."""
        return f"{self.command} ({self})" if self.command else str(self)


def labelling_price(runs: Sequence[Run | str | PathLike[str]], metric: str | None = None) -> LabelPrice:
    """Return the price of the next labels. Raises UsageError as `merilo.label`."""
    own = [opened(each) for each in runs]
    labels = readable_labels(*own)
    other = own[1] if len(own) > 1 else None
    metric = None if metric in metrics_to_label(own) else metric
    drawn = label_run(own[0], metric=metric, samples=None, items=None, other=other)
    left = without_labelled(drawn, labels)
    if not left.to_answer and drawn.samples < drawn.population:
        more = min(2 * drawn.samples, drawn.population)
        drawn = label_run(own[0], metric=metric, samples=more, items=None, other=other)
        left = without_labelled(drawn, labels)
    helps = left.to_answer and drawn.population >= DECIDING_LABELLED
    words = [str(run.path) for run in own]
    if metric is not None:
        words += ["--metric", metric]
    if labels:  # otherwise the number is that of `merilo label` by default
        words += ["--number", str(drawn.samples)]
    typed = command("label", *words) if helps else ""
    minutes = labelling_time(left.to_answer, seconds_of(labels))
    return LabelPrice(left.samples, left.to_answer, minutes, drawn.population, typed)


def next_step(runs: Sequence[Run | str | PathLike[str]], metrics: Sequence[str] = ()) -> str:
    """Return the labels that would decide, as every page names them: the command and what it takes, or why none would.

    `metrics`: those to decide, the clearest first; the one that is labelled by default is chosen if it is among them.
    """
    own = [opened(each) for each in runs]
    try:
        default = metrics_to_label(own)
        asked = metrics or default[:1]
        others = [metric for metric in asked if metric not in default]
        named = [*[metric for metric in asked if metric in default][:1], *others][:_PLANS]
        plans = [labelling_price(own, metric) for metric in named]
        return next((each for each in plans if each.command), plans[0]).advice
    except UsageError:  # such as no sample with a score in both runs
        return command("label", *(str(run.path) for run in own), *(["--metric", metrics[0]] if metrics else []))


def seconds_of(labels: Iterable[HumanLabel], annotator: str = "") -> float:
    """Return the seconds per task of an annotator, or of all, by their median or as assumed."""
    timed = {each.ticket.task: each.seconds for each in labels if each.seconds and annotator in {"", each.annotator}}
    return seconds_per_task([*filter(None, timed.values())])


def without_labelled(tasks: Tasks, labels: Iterable[HumanLabel], annotator: str | None = None) -> Tasks:
    """Return the tasks without those that have a label; a draw contains each smaller one.

    `annotator`: leave out only what this annotator labelled in smaller draws, as a file has all labels of its draw.
    """
    chance = {line.ticket.metric: line.ticket.probability for line in tasks.lines}
    done = {  # the ticket of an item differs between these draws in its probability alone
        replace(each.ticket, probability=1.0)
        for each in labels
        if annotator is None
        or (each.annotator == annotator and each.ticket.probability < chance.get(each.ticket.metric, 0))
    }
    asked = [line for line in tasks.lines if line.label != SETTLED and replace(line.ticket, probability=1.0) in done]
    lines = tuple(line for line in tasks.lines if line not in asked)
    samples = len({line.ticket.sample for line in lines if line.label != SETTLED}) if asked else tasks.samples
    return replace(tasks, lines=lines, samples=samples)


def levelled(run: Run) -> Run:
    """Return the run with its verdicts by the levels that its labels set; the run itself if they set none."""
    found = labelled_kinds(run, labels_by_sample(readable_labels(run)))
    return by_levels(run, {kind: each.level for kind, each in found.items() if each.level is not None})


def sentences_of(run: Run, labels: Iterable[HumanLabel], *, levels: bool = True) -> list[str]:
    """Return, for each kind of question, one sentence on the use of the run's judge; none if it is usable.

    `levels`: False for a page that does not use the levels.
    """
    found = labelled_kinds(run, labels_by_sample(labels))
    said = {kind: judge_sentence(each.agreement, each.level if levels else None) for kind, each in found.items()}
    return [f"{kind}: {sentence}" for kind, sentence in said.items() if sentence]


def judge_sentences(*runs: Run, levels: bool = True) -> list[str]:
    """Return the sentences of `sentences_of` on the labels stored with these runs, each once."""
    own = (sentences_of(run, readable_labels(run), levels=levels) for run in runs if run.labels is not None)
    return list(dict.fromkeys(sentence for sentences in own for sentence in sentences))
