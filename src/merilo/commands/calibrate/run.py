"""Correction of a run's means by human labels, and agreement of its judge with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.agreement import SYSTEM, Grouped, Groups, ItemAgreement, LabelledItem, item_agreement
from merilo.commands.calibrate.correction import correction_of, match, rate_of
from merilo.commands.calibrate.human_labels import attach_labels, read_people
from merilo.commands.calibrate.label_matching import remarks_of
from merilo.errors import DataError, UsageError
from merilo.rendering.overview import command
from merilo.rendering.wording import count
from merilo.results.scores import read_scores
from merilo.runs.run import opened
from merilo.short_repr import short_repr
from merilo.stats.intervals import LEVEL, SEED, check_level
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from merilo.commands.calibrate.human_labels import HumanLabel, HumanLabels
    from merilo.commands.calibrate.label_matching import MatchedLabels
    from merilo.commands.label.tasks import Unit
    from merilo.errors import Problem
    from merilo.results.scores import RunScores
    from merilo.runs.run import Run
    from merilo.stats.correction import Correction
    from merilo.stats.rogan_gladen import CorrectedRate

_PROBLEMS_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class LabelledMetric:
    """One metric of a run, compared with human labels."""

    metric: str
    correction: Correction
    """The mean by the judge, by human labels, and corrected; which of them to report, and why."""
    rate: CorrectedRate | None
    """Corrected mean by Rogan and Gladen; None unless all values are 0 or 1 and samples are independent and uniform."""
    agreement: tuple[ItemAgreement, ...]
    """Agreement by kind of question; empty if annotators gave numbers."""
    unit: Unit
    drawn_for: str
    """The metric that the tasks were drawn for."""
    stratified: bool
    labels: int
    """Number of human labels that count."""
    scored: int
    """Number of samples with a score; the means are over these."""
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
    level: float

    @property
    def has_estimate(self) -> bool:
        """True if an estimate can be reported for at least one metric."""
        return any(each.correction.estimate is not None for each in self.metrics.values())

    def __repr__(self) -> str:
        """Return the main facts, shortened."""
        return short_repr(self, run=self.run.path, metrics=self.metrics, attached=self.attached, problems=self.problems)


def label_agreement(
    run: Run | str | PathLike[str],
    labels: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    metrics: Sequence[str] | None = None,
    cluster: str | None = None,
    level: float = LEVEL,
    seed: int = SEED,
    attach: bool = False,
    other: Run | str | PathLike[str] | None = None,
    by: Sequence[str] = (),
) -> LabelledRun:
    """Compare the judge of a run with human labels, and correct the means of its metrics.

    `attach`: store the labels with the run (and with `other`). `other`: the second run of a pair, whose errors are then
    compared. `by`: fields for the judge's rates by group: language, length, system (needs `other`), a field or a
    metadata key. Raises DataError for labels that cannot be read or fit no sample, UsageError for other arguments.
    """
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
    second = _second(this, other, by)
    pairs = {} if second is None else _items_of_pair(scores, read_scores(second, cluster=cluster), own, matched)
    fields = by if second is None or SYSTEM in by else (*by, SYSTEM)
    groups = Groups.of(this, fields, {item.sample for each in matched.values() for item in each.items})
    agreements = _Agreements(groups, Resampling(seed=seed, level=level))
    found = {
        text: _metric(scores, text, each, agreements.of(each.items, pairs.get(text, ())), level=level, seed=seed)
        for text, each in matched.items()
    }
    remarks = [*_remarks(people, len(own))]
    if fields and not any(each.groups for metric in found.values() for each in metric.agreement):
        remarks.append("There are no rates by group: they need labels of items with a yes and a no.")
    if attach:
        others = attach_labels(this, own)
        remarks += [f"Earlier labels remain: {count(amount, 'label')} for {text}." for text, amount in others.items()]
        if second is not None:
            attach_labels(second, _own(second, people))
    if this.manifest.until is not None:
        remarks.append("This run stopped once its gates were decided, so its means are biased, corrected or not.")
    return LabelledRun(this, found, tuple(remarks), people.problems, attach, level)


@dataclass(frozen=True, slots=True)
class _Agreements:
    """The agreement of the metrics; metrics with the same questions share one."""

    groups: Groups
    resampling: Resampling
    _found: dict[tuple[tuple[LabelledItem, ...], tuple[Grouped, ...]], tuple[ItemAgreement, ...]] = field(
        default_factory=dict["tuple[tuple[LabelledItem, ...], tuple[Grouped, ...]]", "tuple[ItemAgreement, ...]"]
    )

    def of(self, items: Sequence[LabelledItem], pairs: Sequence[Grouped]) -> tuple[ItemAgreement, ...]:
        """Return the agreement on these items; `pairs`: the items of both runs of a pair."""
        key = (tuple(items), tuple(pairs))
        if key not in self._found:
            resampling = self.resampling
            found = item_agreement(items, level=resampling.level, seed=resampling.seed)
            self._found[key] = self.groups.added(found, items, pairs, resampling)
        return self._found[key]


def _second(run: Run, other: Run | str | PathLike[str] | None, by: Sequence[str]) -> Run | None:
    """Return the other run of a pair. Raises UsageError if systems are to be compared without one."""
    if other is not None:
        return opened(other, labels=False)
    if SYSTEM in by:
        raise UsageError(f"--by {SYSTEM} compares two runs. Name both: merilo label {run.path} OTHER --labels FILE.")
    return None


def _items_of_pair(
    first: RunScores, second: RunScores, labels: Sequence[HumanLabel], metrics: Collection[str]
) -> dict[str, list[Grouped]]:
    """Return the labelled items of both runs, by metric. Raises UsageError if no label is of this pair."""
    prints = {each.run.manifest.fingerprint for each in (first, second)}
    both = [each for each in labels if each.ticket.other and {each.ticket.fingerprint, each.ticket.other} == prints]
    paths = [str(each.run.path) for each in (first, second)]
    if not both:
        raise UsageError(
            f"None of the labels is of both runs, so the judge's errors cannot be compared. To draw such tasks: "
            f"{command('label', *paths)}"
        )
    folders = [each.run.path.name for each in (first, second)]
    names = paths if folders[0] == folders[1] else folders
    common = [text for text in metrics if text in second.columns]
    found: dict[str, list[Grouped]] = {}
    for name, scores in zip(names, (first, second), strict=True):
        for text, each in match(scores, both, common).items():
            found.setdefault(text, []).extend((item, name) for item in each.items)
    return found


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


def _metric(
    scores: RunScores, text: str, found: MatchedLabels, agreement: tuple[ItemAgreement, ...], *, level: float, seed: int
) -> LabelledMetric:
    scored = int(scores.columns[text].scored.sum())
    return LabelledMetric(
        metric=text,
        correction=correction_of(scores, text, found, level=level, seed=seed),
        rate=rate_of(scores, text, found, level=level),
        agreement=agreement,
        unit=found.unit,
        drawn_for=found.drawn_for,
        stratified=found.stratified,
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
    if found.stratified and found.items:
        yield (
            "The samples were stratified by score, so the agreement describes these items, not the whole run. The "
            "corrected mean accounts for the stratification."
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
    if people.repeated:
        yield f"{count(people.repeated, 'label')} repeated by the same annotator; each counts once."
    if people.changed:
        yield f"{count(people.changed, 'label')} changed by the same annotator; the last one counts."
    if people.problems:
        amount = len(people.problems)
        more = f" And {amount - _PROBLEMS_SHOWN} more." if amount > _PROBLEMS_SHOWN else ""
        shown = " ".join(each.message for each in people.problems[:_PROBLEMS_SHOWN])
        yield f"{count(amount, 'unreadable line')} left out: {shown}{more}"
