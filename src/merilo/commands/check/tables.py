"""Tables of a check: the rule for "yes", the figures by source and language, and the difference from another judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from merilo.data.labels import Task
from merilo.data.language import identify_language
from merilo.results.records import grouped
from merilo.stats.agreement_intervals import (
    Agreement,
    GradeAgreement,
    agreement,
    clustered_share,
    grade_agreement,
    kappa_difference,
    mean_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from merilo.commands.check.items import Item
    from merilo.data.labels import Labelled
    from merilo.stats.resampling import Measurement, Resampling

MIN_OF_EACH: Final = 30
"""The number of yes and of no labels that a source needs to count in the mean over sources."""
MIN_POOLED: Final = 1_000
"""The number of items below which the calibration of a task is unreliable."""
GRADES: Final = (0, 1, 2)
SEEN: Final = "(seen)"
"""Marks a source on which the judge's model was trained."""


@dataclass(frozen=True, slots=True)
class PositiveRule:
    """One way to read the labels of a task as yes and no."""

    name: str
    task: Task
    rule: str
    """The rule as text, for the report."""
    least: float = 1.0
    """The lowest label, of annotators or the judge, that counts as yes."""
    among: float = 0.0
    """The lowest human label of the items in this reading; others are left out."""

    def holds(self, item: Item) -> bool:
        """Return True if the item belongs to this reading."""
        if self.task is Task.CHUNK_RELEVANCE and self.least > 1 and item.record.grade is None:
            return False
        return item.people >= self.among

    def probability(self, item: Item) -> float | None:
        """Return the judge's probability of this reading's yes; None if it is that of another label."""
        return item.probability if self.least <= 1 else None

    def rank(self, item: Item) -> float | None:
        """Return the value by which AUROC ranks: the probability.

        For grade 2 as yes it is the grade, with ties broken by the probability of relevance.
        """
        if item.probability is None or self.least <= 1:
            return item.probability
        return 2 * (item.judge or 0.0) + item.probability


_SCALED: Final = "a label of 0.75 or more on a scale from 0 to 1 is yes"
READINGS: Final = (
    PositiveRule(
        "chunk_relevance", Task.CHUNK_RELEVANCE, "grade 2 is yes, 1 is no; 0 is left out", least=2.0, among=1.0
    ),
    PositiveRule("chunk_relevance>=1", Task.CHUNK_RELEVANCE, "grade 1 or 2 is yes, 0 is no"),
    PositiveRule(
        "sentence_relevance",
        Task.SENTENCE_RELEVANCE,
        "a sentence that annotators marked is yes; the judge's yes is a sentence of its evidence",
    ),
    PositiveRule("sufficiency", Task.SUFFICIENCY, f"{_SCALED}; the judge's yes is sufficient"),
    PositiveRule(
        "groundedness",
        Task.GROUNDEDNESS,
        f"{_SCALED}; the judge's yes is that each sentence of the response is supported, its probability their mean",
    ),
    PositiveRule("nli", Task.NLI, "entailment is yes; the judge's yes is supported"),
    PositiveRule(
        "answer_relevance",
        Task.ANSWER_RELEVANCE,
        f"{_SCALED}; the judge's yes is that a sentence of the response addresses the query, its probability the "
        "highest",
    ),
)
"""The readings of human labels."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Agreement of a judge with human labels on one set of items."""

    records: int
    agreement: Agreement
    """The agreement over the items with a verdict."""
    undefined: Measurement
    """The fraction of items without a verdict, failures included."""
    without: int
    """Number of items without a verdict."""
    failed: int
    """Number of items whose question failed."""
    grades: GradeAgreement | None = None
    seen: bool = False
    """True if the judge's model was trained on these items' source."""

    @property
    def counts(self) -> bool:
        """True if they count in the mean over sources: enough yes and no labels, of a source that was not seen."""
        yes = self.agreement.yes
        return not self.seen and min(yes, self.agreement.items - yes) >= MIN_OF_EACH


@dataclass(frozen=True, slots=True)
class TaskTable:
    """One reading of one task."""

    reading: PositiveRule
    sources: Mapping[str, Figures]
    """Figures by source. If only some items of a source are seen, these are listed as `SOURCE (seen)`."""
    macro: Mapping[str, Measurement]
    """Means over the sources that count, by measure: `kappa`, `balanced_accuracy`, `auroc`."""
    pooled: Figures
    """Figures over the items of all sources that the model has not seen; for calibration."""
    languages: Mapping[str, Figures]
    """Figures by language, pooled over the same items; empty if there is one language."""
    difference: Measurement | None = None
    """kappa minus that of the other judge, over items with a verdict of both; None without another judge."""

    @property
    def name(self) -> str:
        """The task, or one reading of its labels."""
        return self.reading.name

    @property
    def labels(self) -> int:
        """Number of labels with a verdict."""
        return self.pooled.agreement.items

    @property
    def agree(self) -> int:
        """Number of labels on which the judge agrees with people."""
        counts = self.pooled.agreement.confusion.counts
        return counts[0][0] + counts[1][1]

    @property
    def kappa(self) -> Measurement:
        """Agreement beyond chance: the mean over sources that count, otherwise over all labels."""
        return self.macro["kappa"] if self.macro["kappa"].value is not None else self.pooled.agreement.kappa

    @property
    def auroc(self) -> Measurement:
        """AUROC over the same labels as `kappa`."""
        return self.macro["auroc"] if self.macro["kappa"].value is not None else self.pooled.agreement.auroc

    @property
    def verdict(self) -> str:
        """The comparison with the other judge: better, worse, no difference shown, or cannot tell; "" without one."""
        if self.difference is None:
            return ""
        ends = self.difference.interval.ends
        if ends is None:
            return "no difference shown" if self.difference.value == 0 else "cannot tell"
        return "better" if ends[0] > 0 else "worse" if ends[1] < 0 else "no difference shown"


def table_of(
    reading: PositiveRule,
    items: Sequence[Item],
    resampling: Resampling,
    trained_on: Collection[str] = (),
    others: Mapping[tuple[str, int], Item] | None = None,
) -> TaskTable | None:
    """Return the table of one reading; None if no item belongs to it.

    `trained_on`: the data sets that the judge's model has seen. Their items have separate figures. `others`: the items
    of another judge by key.
    """
    every = [item for item in items if reading.holds(item)]
    if not every:
        return None
    names = {comparable(name) for name in trained_on}
    own = [item for item in every if not _is_seen(item, names)]
    sources = {name: _figures(reading, part, resampling) for name, part in _by(own, lambda item: item.record.source)}
    for name, part in _by([item for item in every if _is_seen(item, names)], lambda item: item.record.source):
        figures = _figures(reading, part, resampling)
        sources[f"{name} {SEEN}" if name in sources else name] = replace(figures, seen=True)
    sources = dict(sorted(sources.items()))
    languages = [*_by(own, lambda item: _language(item.record))]
    counted = [name for name, figures in sources.items() if figures.counts]
    counting = [sources[name].agreement for name in counted]
    ranked = [each.auroc for each in counting if each.auroc.value is not None]
    return TaskTable(
        reading=reading,
        sources=sources,
        macro={
            "kappa": mean_of([each.kappa for each in counting]),
            "balanced_accuracy": mean_of([each.balanced_accuracy for each in counting]),
            "auroc": mean_of(ranked),
        },
        pooled=_figures(reading, own, resampling, full=False),
        languages={name: _figures(reading, part, resampling, full=False) for name, part in languages}
        if len(languages) > 1
        else {},
        difference=None if others is None else _difference(reading, own, others, counted, resampling),
    )


def _difference(
    reading: PositiveRule,
    items: Sequence[Item],
    others: Mapping[tuple[str, int], Item],
    counted: Sequence[str],
    resampling: Resampling,
) -> Measurement:
    """Return the mean difference of kappa over the sources that count; over all items if none does."""
    pairs = [(item, other) for item in items if (other := others.get(item.key)) is not None]
    both = [(item, other) for item, other in pairs if item.judge is not None and other.judge is not None]

    def over(part: Sequence[tuple[Item, Item]]) -> Measurement:
        return kappa_difference(
            [item.people >= reading.least for item, _ in part],
            *([(each[judge].judge or 0.0) >= reading.least for each in part] for judge in (0, 1)),
            clusters=[(item.record.source, item.cluster) for item, _ in part],
            resampling=resampling,
        )

    if not counted:
        return over(both)
    return mean_of([over([pair for pair in both if pair[0].record.source == name]) for name in counted])


def comparable(name: str) -> str:
    """Return the name of a data set without case and punctuation, so that `MS MARCO` equals `ms-marco`."""
    return "".join(filter(str.isalnum, name.casefold()))


def _is_seen(item: Item, names: Collection[str]) -> bool:
    record = item.record
    return comparable(record.source) in names or (record.origin is not None and comparable(record.origin) in names)


def _language(record: Labelled) -> str:
    """Return the language of a record: the one that it names, otherwise the one that its first text shows."""
    return record.language or identify_language(record.query or "".join(record.texts[:1]) or record.response)


def _figures(reading: PositiveRule, items: Sequence[Item], resampling: Resampling, *, full: bool = True) -> Figures:
    judged = [item for item in items if item.judge is not None]
    clusters = [(item.record.source, item.cluster) for item in judged]
    people = [item.people >= reading.least for item in judged]
    judge = [(item.judge or 0.0) >= reading.least for item in judged]
    graded = [item for item in judged if item.record.grade is not None]
    if len(graded) < len(judged):
        graded = []  # some labels are yes or no, not grades
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
        failed=sum(item.failed for item in items),
        grades=_grades(graded, resampling) if full and graded else None,
    )


def _grades(items: Sequence[Item], resampling: Resampling) -> GradeAgreement:
    return grade_agreement(
        [int(item.people) for item in items],
        [int(item.judge or 0) for item in items],
        labels=GRADES,
        clusters=[item.cluster for item in items],
        resampling=resampling,
    )


def _by(items: Sequence[Item], key: Callable[[Item], str]) -> list[tuple[str, list[Item]]]:
    """Group items by a text, sorted by the text."""
    return sorted(grouped((key(item), item) for item in items).items())
