"""Correction of a run's means by human labels, and agreement of its judge with them."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.agreement import ItemAgreement, LabelledItem, item_agreement
from merilo.commands.calibrate.correction import correction_of, match
from merilo.commands.calibrate.human_labels import attach_labels, attached_file, earlier_labels, read_people
from merilo.commands.calibrate.label_matching import MatchedLabels, remarks_of
from merilo.commands.calibrate.people import Disagreement, people_and_judge, sentences_of
from merilo.errors import DataError, Problem
from merilo.numbers import count
from merilo.results.judged_samples import with_not_judged
from merilo.results.scores import RunScores, read_scores
from merilo.runs.run import Run, opened
from merilo.short_repr import short_repr

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.commands.calibrate.human_labels import HumanLabel, HumanLabels
    from merilo.commands.label.tasks import Unit
    from merilo.stats.correction import Correction

_PROBLEMS_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class LabelledMetric:
    """One metric of a run, compared with human labels."""

    metric: str
    correction: Correction
    """The mean by the judge, by human labels, and corrected; which of them to report, and why."""
    agreement: tuple[ItemAgreement, ...]
    """Agreement by kind of question; empty if annotators gave numbers."""
    unit: Unit
    drawn_for: str
    """The metric that the tasks were drawn for."""
    labels: int
    """Number of human labels that count."""
    scored: int
    """Number of samples with a score, or without one that people can give; the means are over these."""
    remarks: tuple[str, ...]
    """Notes on the labels of this metric, one sentence each."""


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A run compared with human labels."""

    run: Run
    metrics: Mapping[str, LabelledMetric]
    """By the metric's full text, in the run's order."""
    remarks: tuple[str, ...]
    """Notes on the labels as a whole, one sentence each."""
    problems: tuple[Problem, ...]
    """Lines that could not be read."""
    attached: bool
    """True if the labels were stored with the run."""
    differ: tuple[Disagreement, ...]
    """The verdicts on which an annotator and the judge differ, the judge's most certain first."""
    judge: tuple[str, ...] = ()
    """The judge's use by the labels, one sentence for each kind of question."""
    other: LabelledRun | None = None
    """The second run of a pair, compared with the labels stored with it."""

    @property
    def has_estimate(self) -> bool:
        """True if an estimate can be reported for at least one metric."""
        return any(each.correction.estimate is not None for each in self.metrics.values())

    def __repr__(self) -> str:
        return short_repr(self, run=self.run.path, metrics=self.metrics, attached=self.attached, problems=self.problems)


def label_agreement(
    run: Run | str | PathLike[str],
    labels: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    metrics: Sequence[str] | None = None,
    attach: bool = False,
    other: Run | str | PathLike[str] | None = None,
) -> LabelledRun:
    """Compare the judge of a run with human labels, and correct the means of its metrics.

    `attach`: add the labels to those stored with the run, and with `other`, the second run of a pair; all of them
    count. Raises DataError if the labels cannot be read or fit no sample, with `attach` also for a single invalid one;
    UsageError for other arguments.
    """
    this = opened(run, labels=False)
    people = read_people([labels] if isinstance(labels, str | PathLike) else labels)
    own = _own(this, people)
    second = None if other is None else opened(other, labels=False)
    theirs = [] if second is None else _own(second, people)
    scores = with_not_judged(read_scores(this))
    wanted = scores.columns if metrics is None else read_scores(this, metrics=metrics, cluster="").columns
    matched = match(scores, own, tuple(wanted), named=metrics is not None)
    remarks = [*_remarks(people, len(own))]
    if attach:
        _refuse_invalid(
            [*(each.message for each in people.problems), *(odd for each in matched.values() for odd in each.odd)]
        )
        if earlier := earlier_labels(this, own):
            remarks.append(
                f"{count(sum(not each.ticket.settled for each in earlier), 'label')} attached before also count."
            )
            own = [*earlier, *own]
            matched = match(scores, own, tuple(wanted), named=metrics is not None)
    agreements: dict[tuple[LabelledItem, ...], tuple[ItemAgreement, ...]] = {}  # metrics may share their questions
    found: dict[str, LabelledMetric] = {}
    for text, each in matched.items():
        if (items := tuple(each.items)) not in agreements:
            agreements[items] = item_agreement(items)
        found[text] = _metric(scores, text, each, agreements[items])
    if attach:
        others = attach_labels(this, own)
        remarks += [f"Earlier labels remain: {count(amount, 'label')} for {text}." for text, amount in others.items()]
        if second is not None:
            attach_labels(second, [*earlier_labels(second, theirs), *theirs])
    compared = None
    if attach and second is not None:
        written = opened(second.path, labels=False)
        compared = label_agreement(written, attached_file(written), metrics=metrics)
    _, _, differ = people_and_judge(this, own)
    judge = tuple(sentences_of(this, own))
    return LabelledRun(this, found, tuple(remarks), people.problems, attach, differ, judge, compared)


def _refuse_invalid(found: Sequence[str]) -> None:
    """Raise DataError that names the first invalid labels, so that a faulty file changes nothing."""
    problems = list(dict.fromkeys(found))  # metrics may share a label
    if problems:
        more = f"; and {len(problems) - _PROBLEMS_SHOWN} more" if len(problems) > _PROBLEMS_SHOWN else ""
        shown = "; ".join(each.rstrip(".") for each in problems[:_PROBLEMS_SHOWN])
        raise DataError(f"No label was attached, because {count(len(problems), 'line')} cannot be used: {shown}{more}.")


def _own(run: Run, people: HumanLabels) -> list[HumanLabel]:
    """Return the labels whose tasks were drawn from the run's samples. Raises DataError if there are none."""
    own = [each for each in people.labels if each.ticket.drawn_from(run.manifest.fingerprint)]
    if any(not each.ticket.settled for each in own):
        return own
    problems = "".join(f" {problem.message}" for problem in people.problems[:_PROBLEMS_SHOWN])
    labels = [each for each in people.labels if not each.ticket.settled]
    if labels:
        raise DataError(
            f"None of the {count(len(labels), 'label')} fits {run.path}: their tasks were drawn from a run over other "
            f"data. Name that run, or draw new tasks: merilo label {run.path}.{problems}"
        )
    if not people.tasks:
        raise DataError(f"No readable task in the file.{problems}")
    raise DataError(
        f"None of the {count(people.tasks, 'task')} has a label yet. Fill in the `label` field, or run: "
        f"merilo label FILE.{problems}"
    )


def _metric(scores: RunScores, text: str, found: MatchedLabels, agreement: tuple[ItemAgreement, ...]) -> LabelledMetric:
    scored = int(scores.columns[text].scored.sum())
    return LabelledMetric(
        metric=text,
        correction=correction_of(scores, text, found),
        agreement=agreement,
        unit=found.unit,
        drawn_for=found.drawn_for,
        labels=found.labels,
        scored=scored,
        remarks=(*remarks_of(found), *_draw_remarks(found, scored)),
    )


def _draw_remarks(found: MatchedLabels, scored: int) -> Iterator[str]:
    """Yield notes on how the labelled samples were drawn."""
    if found.population != scored and not found.elsewhere:
        yield (
            f"The tasks were drawn from {count(found.population, 'sample')} with a score of {found.drawn_for}. The "
            f"estimate covers the {scored:,} of them that have a score of this metric."
        )


def _remarks(people: HumanLabels, own: int) -> Iterator[str]:
    """Yield notes on the labels as a whole."""
    if people.blank:
        yield (
            f"{people.blank:,} of {count(people.tasks, 'task')} {'has' if people.blank == 1 else 'have'} no label; "
            "merilo treats the others as representative."
        )
    if others := len(people.labels) - own:
        yield f"{count(others, 'label')} left out: drawn from other data."
    if people.problems:
        amount = len(people.problems)
        more = f" And {amount - _PROBLEMS_SHOWN} more." if amount > _PROBLEMS_SHOWN else ""
        shown = " ".join(each.message for each in people.problems[:_PROBLEMS_SHOWN])
        yield f"{count(amount, 'unreadable line')} left out: {shown}{more}"
