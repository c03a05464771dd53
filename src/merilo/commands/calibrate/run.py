"""A judge's means beside what people said, and how far the judge agrees with them."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.agreement import ItemAgreement, LabelledItem, item_agreement
from merilo.commands.calibrate.attached_labels import attach_labels
from merilo.commands.calibrate.correction import correction_of, match, rate_of
from merilo.commands.calibrate.human_labels import read_people
from merilo.commands.calibrate.label_matching import remarks_of
from merilo.errors import DataError, UsageError
from merilo.rendering.wording import count
from merilo.results.scores import read_scores
from merilo.runs.run import opened
from merilo.stats.intervals import LEVEL, SEED, check_level

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.commands.calibrate.human_labels import PeopleLabels, PersonLabel
    from merilo.commands.calibrate.label_matching import Matched
    from merilo.commands.label.tasks import Unit
    from merilo.errors import Problem
    from merilo.results.scores import RunScores
    from merilo.runs.run import Run
    from merilo.stats.correction import Correction
    from merilo.stats.rogan_gladen import CorrectedRate

_PROBLEMS_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class CalibratedMetric:
    """One metric of a run, beside what people said."""

    metric: str
    correction: Correction
    """The judge's mean, people's and the corrected one; which of them to report, and why."""
    rate: CorrectedRate | None
    """By Rogan and Gladen, where judge and people give each sample 0 or 1 and samples stand alone; else None."""
    agreement: tuple[ItemAgreement, ...]
    """By kind of question; empty where people gave numbers."""
    unit: Unit
    drawn_for: str
    """The metric that the tasks were drawn for."""
    stratified: bool
    labels: int
    """Labels of people that count."""
    scored: int
    """Samples of the run with a score: what the means are over."""
    remarks: tuple[str, ...]
    """What must be said beside it, a sentence each."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What labels of people say of a run."""

    run: Run
    metrics: Mapping[str, CalibratedMetric]
    """By the metric's whole text, in the run's order."""
    remarks: tuple[str, ...]
    """What must be said of the labels, a sentence each."""
    problems: tuple[Problem, ...]
    """Lines that could not be read."""
    attached: bool
    """Whether the labels are kept with the run now."""
    level: float

    @property
    def told(self) -> bool:
        """Whether an estimate can be reported of any metric."""
        return any(each.correction.estimate is not None for each in self.metrics.values())


def calibrate_run(
    run: Run | str | PathLike[str],
    labels: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    metrics: Sequence[str] | None = None,
    cluster: str | None = None,
    level: float = LEVEL,
    seed: int = SEED,
    attach: bool = False,
) -> Calibrated:
    """What labels of people say of a run; explained at `merilo.calibrate`."""
    try:
        check_level(level)
    except ValueError as error:
        raise UsageError(str(error)) from error
    this = opened(run, labels=False)
    people = read_people([labels] if isinstance(labels, str | PathLike) else labels)
    own = _own(this, people)
    scores = read_scores(this, cluster=cluster)
    wanted = scores.columns if metrics is None else read_scores(this, metrics=metrics, cluster="").columns
    matched = match(scores, own, tuple(wanted), named=metrics is not None)
    agreements = dict[tuple[LabelledItem, ...], tuple[ItemAgreement, ...]]()
    for each in matched.values():  # metrics of the same questions agree alike
        if (items := tuple(each.items)) not in agreements:
            agreements[items] = item_agreement(items, level=level, seed=seed)
    found = {
        text: _metric(scores, text, each, agreements[tuple(each.items)], level=level, seed=seed)
        for text, each in matched.items()
    }
    remarks = [*_remarks(people, len(own))]
    if attach:
        kept = attach_labels(this, own)
        remarks += [f"{count(amount, 'label')} attached earlier for {text} kept." for text, amount in kept.items()]
    if this.manifest.until is not None:
        remarks.append("This run stopped once its gates were decided: its means, corrected or not, lean to one side.")
    return Calibrated(this, found, tuple(remarks), people.problems, attach, level)


def _own(run: Run, people: PeopleLabels) -> list[PersonLabel]:
    """The labels whose tasks were drawn from the run's samples. Raises DataError where there is none."""
    own = [each for each in people.labels if each.ticket.fingerprint == run.manifest.fingerprint]
    if any(not each.ticket.settled for each in own):
        return own
    problems = "".join(f" {problem.message}" for problem in people.problems[:_PROBLEMS_SHOWN])
    given = [each for each in people.labels if not each.ticket.settled]
    if given:
        raise DataError(
            f"None of the {count(len(given), 'label')} is of the samples of {run.path}: the tasks were drawn from a "
            f"run over other data. Calibrate that one, or draw tasks from this: merilo label {run.path}.{problems}"
        )
    if not people.tasks:
        raise DataError(f"The file holds no task that can be read.{problems}")
    raise DataError(
        f"None of the {count(people.tasks, 'task')} has a label yet; fill in the field label, or have them asked: "
        f"merilo label FILE --ask.{problems}"
    )


def _metric(
    scores: RunScores, text: str, found: Matched, agreement: tuple[ItemAgreement, ...], *, level: float, seed: int
) -> CalibratedMetric:
    scored = int(scores.columns[text].scored.sum())
    return CalibratedMetric(
        metric=text,
        correction=correction_of(scores, text, found, level=level, seed=seed),
        rate=rate_of(scores, text, found, level=level),
        agreement=agreement,
        unit=found.unit,
        drawn_for=found.drawn_for,
        stratified=found.stratified,
        labels=found.labels,
        scored=scored,
        remarks=(*remarks_of(found), *_beside(found, scored)),
    )


def _beside(found: Matched, scored: int) -> Iterator[str]:
    if found.population != scored and not found.elsewhere:
        yield (
            f"The tasks were drawn from {count(found.population, 'sample')} with a score of {found.drawn_for}; "
            f"{scored:,} of them have one of this metric, and the estimate is over these."
        )
    if found.stratified and found.items:
        yield (
            "The samples were drawn by verdict, so the agreement is that on these items and not over the run. The "
            "corrected mean accounts for how they were drawn."
        )


def _remarks(people: PeopleLabels, own: int) -> Iterator[str]:
    """What must be said of the labels as a whole."""
    if people.blank:
        yield (
            f"{people.blank:,} of {count(people.tasks, 'task')} {'has' if people.blank == 1 else 'have'} no label; the "
            "others stand for them."
        )
    if others := len(people.labels) - own:
        yield f"{count(others, 'label')} of other data left out."
    if people.repeated:
        yield f"{count(people.repeated, 'label')} given twice by the same person, and counted once."
    if people.changed:
        yield f"{count(people.changed, 'label')} given anew by the same person, and differently: the last one counts."
    if people.problems:
        amount = len(people.problems)
        more = f" And {amount - _PROBLEMS_SHOWN} more." if amount > _PROBLEMS_SHOWN else ""
        shown = " ".join(each.message for each in people.problems[:_PROBLEMS_SHOWN])
        yield f"{count(amount, 'line')} left out, since not to be read: {shown}{more}"
