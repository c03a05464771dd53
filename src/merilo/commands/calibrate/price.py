"""The price of labels: the questions, items and minutes that `merilo label` would ask for. Nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from merilo.commands.calibrate.people import readable_labels
from merilo.commands.label.run import label_run, metric_to_label
from merilo.commands.label.tasks import SETTLED, labelling_time, seconds_per_task
from merilo.rendering.overview import command
from merilo.rendering.wording import count
from merilo.runs.run import opened
from merilo.stats.correction import DECIDING_LABELLED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from merilo.commands.calibrate.human_labels import HumanLabel
    from merilo.commands.label.run import Tasks
    from merilo.runs.run import Run


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
    drawn = label_run(own[0], metric=metric, samples=None, items=None, other=other)
    left = without_labelled(drawn, labels)
    if not left.to_answer and drawn.samples < drawn.population:
        more = min(2 * drawn.samples, drawn.population)
        drawn = label_run(own[0], metric=metric, samples=more, items=None, other=other)
        left = without_labelled(drawn, labels)
    helps = left.to_answer and drawn.population >= DECIDING_LABELLED
    words = [str(run.path) for run in own]
    if drawn.metric != metric_to_label(own):
        words += ["--metric", drawn.metric]
    if labels:  # otherwise the number is that of `merilo label` by default
        words += ["--number", str(drawn.samples)]
    typed = command("label", *words) if helps else ""
    minutes = labelling_time(left.to_answer, seconds_of(labels))
    return LabelPrice(left.samples, left.to_answer, minutes, drawn.population, typed)


def seconds_of(labels: Iterable[HumanLabel], annotator: str = "") -> float:
    """Return the seconds per task of an annotator, or of all, by their median or as assumed."""
    timed = {each.ticket.task: each.seconds for each in labels if each.seconds and annotator in {"", each.annotator}}
    return seconds_per_task([*filter(None, timed.values())])


def without_labelled(tasks: Tasks, labels: Iterable[HumanLabel], annotator: str | None = None) -> Tasks:
    """Return the tasks without those that have a label; a draw contains each smaller draw with its seed.

    `annotator`: leave out only what this annotator labelled in smaller draws, as a file has all labels of its draw.
    """
    chance = min(line.ticket.probability for line in tasks.lines)
    done = {  # the ticket of an item differs between these draws in its probability alone
        replace(each.ticket, probability=1.0)
        for each in labels
        if annotator is None or (each.annotator == annotator and each.ticket.probability < chance)
    }
    asked = [line for line in tasks.lines if line.label != SETTLED and replace(line.ticket, probability=1.0) in done]
    lines = tuple(line for line in tasks.lines if line not in asked)
    samples = len({line.ticket.sample for line in lines if line.label != SETTLED}) if asked else tasks.samples
    return replace(tasks, lines=lines, samples=samples)
