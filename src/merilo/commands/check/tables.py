"""Items as tables: which of them a figure is over, what counts as yes, and the figures by source and language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.commands.check.items import State
from merilo.data.labels import Task
from merilo.stats.agreement_intervals import (
    LEAST_SYSTEMS,
    Agreement,
    AnnotatorAgreement,
    GradeAgreement,
    agreement,
    annotator_agreement,
    clustered_share,
    grade_agreement,
    mean_of,
    system_agreement,
)
from merilo.stats.agreement_tables import Distance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.commands.check.items import Item
    from merilo.stats.resampling import Measured, Resampling

LEAST_OF_EACH: Final = 30
"""A source with fewer records of yes or of no is shown, but is not in the mean over sources."""
LEAST_POOLED: Final = 1_000
"""Calibration of a task over fewer records says little."""
GRADES: Final = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read the labels of a task as yes and no."""

    name: str
    task: Task
    rule: str
    """In words, for the report."""
    least: float = 1.0
    """People's and the judge's label count as yes from here."""
    among: float = 0.0
    """Items to which people gave less are left out."""
    alone: bool = False
    """The reading of sentences that were asked about one by one."""

    def holds(self, item: Item) -> bool:
        """Whether an item is in this reading."""
        if self.task is Task.CHUNK_RELEVANCE and self.least > 1 and item.record.grade is None:
            return False
        return item.people >= self.among

    def probability(self, item: Item) -> float | None:
        """The judge's probability of this reading's yes; None where it gives one of something else only."""
        return item.probability if self.least <= 1 else None

    def rank(self, item: Item) -> float | None:
        """What AUROC ranks by: the probability; for grade 2 the grade, and within it the probability of relevance."""
        if item.probability is None or self.least <= 1:
            return item.probability
        return 2 * (item.judge or 0.0) + item.probability


def _plain(task: Task, rule: str) -> Reading:
    return Reading(task.value, task, rule)


_SCALED: Final = "a label of 0.75 or more on a scale from 0 to 1 is yes"
_COMMON: Final = (
    _plain(Task.SENTENCE_RELEVANCE, "a sentence that people marked is yes; the judge's are those it names as evidence"),
    Reading(
        "sentence_relevance_alone",
        Task.SENTENCE_RELEVANCE,
        "a sentence that people marked is yes; the judge is shown each sentence alone, grade 1 or 2 is yes",
        alone=True,
    ),
    _plain(Task.SUFFICIENCY, _SCALED + "; the judge's yes is sufficient"),
    _plain(
        Task.GROUNDEDNESS,
        _SCALED + "; the judge's yes is that each sentence of the response is supported, its probability their mean",
    ),
    _plain(Task.NLI, "entailment is yes; the judge's yes is supported"),
    _plain(
        Task.ANSWER_RELEVANCE,
        _SCALED
        + "; the judge's yes is that a sentence of the response addresses the query, its probability the highest",
    ),
)
_AT_LEAST_1: Final = "grade 1 or 2 is yes, 0 is no"

PEOPLE: Final = (
    Reading("chunk_relevance", Task.CHUNK_RELEVANCE, "grade 2 is yes, 1 is no; 0 is left out", least=2.0, among=1.0),
    Reading("chunk_relevance>=1", Task.CHUNK_RELEVANCE, _AT_LEAST_1),
    *_COMMON,
)
"""How labels are read where every one is a person's."""
ALL: Final = (
    Reading("chunk_relevance", Task.CHUNK_RELEVANCE, _AT_LEAST_1),
    Reading("chunk_relevance=2", Task.CHUNK_RELEVANCE, "grade 2 is yes, 0 and 1 are no", least=2.0),
    *_COMMON,
)
"""How labels are read where some were made by rule."""


@dataclass(frozen=True, slots=True)
class Figures:
    """How a judge agrees with people on one set of items."""

    records: int
    agreement: Agreement
    """Over the items with a verdict."""
    undefined: Measured
    """The share of items without a verdict, failures among them."""
    without: int
    """How many items have none."""
    failed: int
    """Those among them whose questions failed."""
    grades: GradeAgreement | None = None
    systems: Measured | None = None
    """Kendall's tau-b over the systems that wrote the responses; None where fewer than five are named."""
    annotators: AnnotatorAgreement | None = None
    """The single people among themselves, where their votes are known."""

    @property
    def counts(self) -> bool:
        """Whether there are enough of yes and of no to stand in the mean over sources."""
        yes = self.agreement.yes
        return min(yes, self.agreement.items - yes) >= LEAST_OF_EACH


@dataclass(frozen=True, slots=True)
class TaskTable:
    """One reading of one task."""

    reading: Reading
    sources: Mapping[str, Figures]
    macro: Mapping[str, Measured]
    """Means over the sources that count: `kappa`, `balanced_accuracy`, `auroc`."""
    pooled: Figures
    """Over all items whatever their source: for calibration."""
    languages: Mapping[str, Figures]
    """By language, pooled over sources, where there are several."""


def table_of(reading: Reading, items: Sequence[Item], resampling: Resampling) -> TaskTable | None:
    """The table of one reading; None where no item is in it."""
    held = [item for item in items if reading.holds(item)]
    if not held:
        return None
    sources = {name: _figures(reading, own, resampling) for name, own in _by(held, lambda item: item.record.source)}
    languages = [*_by(held, lambda item: item.record.language or "not named")]
    counting = [figures.agreement for figures in sources.values() if figures.counts]
    ranked = [each.auroc for each in counting if each.auroc.value is not None]
    return TaskTable(
        reading=reading,
        sources=sources,
        macro={
            "kappa": mean_of([each.kappa for each in counting]),
            "balanced_accuracy": mean_of([each.balanced_accuracy for each in counting]),
            "auroc": mean_of(ranked),
        },
        pooled=_figures(reading, held, resampling, beside=False),
        languages={name: _figures(reading, own, resampling, beside=False) for name, own in languages}
        if len(languages) > 1
        else {},
    )


def _figures(reading: Reading, items: Sequence[Item], resampling: Resampling, *, beside: bool = True) -> Figures:
    judged = [item for item in items if item.judge is not None]
    clusters = [(item.record.source, item.cluster) for item in judged]
    people = [item.people >= reading.least for item in judged]
    judge = [(item.judge or 0.0) >= reading.least for item in judged]
    graded = [item for item in judged if item.record.grade is not None]
    if len(graded) < len(judged):
        graded = []  # people said yes or no only, or graded some and not others
    return Figures(
        records=len({(item.record.task, item.record.id) for item in items}),
        agreement=agreement(
            people,
            judge,
            probabilities=[reading.probability(item) for item in judged],
            scores=[reading.rank(item) for item in judged],
            clusters=clusters,
            resampling=resampling,
        ),
        undefined=clustered_share(
            [item.judge is None for item in items],
            clusters=[(item.record.source, item.cluster) for item in items],
            resampling=resampling,
        ),
        without=len(items) - len(judged),
        failed=sum(item.state is State.FAILED for item in items),
        grades=_grades(graded, resampling) if beside and graded else None,
        systems=_systems(judged, resampling) if beside else None,
        annotators=_annotators(items, resampling) if beside else None,
    )


def _grades(items: Sequence[Item], resampling: Resampling) -> GradeAgreement:
    return grade_agreement(
        [int(item.people) for item in items],
        [int(item.judge or 0) for item in items],
        labels=GRADES,
        clusters=[item.cluster for item in items],
        resampling=resampling,
    )


def _systems(items: Sequence[Item], resampling: Resampling) -> Measured | None:
    named = [item for item in items if item.record.system is not None]
    if len({item.record.system for item in named}) < LEAST_SYSTEMS:
        return None
    return system_agreement(
        [item.record.system or "" for item in named],
        [item.record.label01 for item in named],
        [item.judge or 0.0 for item in named],
        clusters=[item.cluster for item in named],
        resampling=resampling,
    )


def _annotators(items: Sequence[Item], resampling: Resampling) -> AnnotatorAgreement | None:
    voted = [item for item in items if len(item.record.votes) > 1]
    if not voted:
        return None
    return annotator_agreement(
        [item.record.votes for item in voted],
        distance=Distance.ORDINAL,
        clusters=[item.cluster for item in voted],
        resampling=resampling,
    )


def _by(items: Sequence[Item], key: Callable[[Item], str]) -> list[tuple[str, list[Item]]]:
    """Items by a text, in alphabetical order of the texts."""
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return sorted(found.items())
