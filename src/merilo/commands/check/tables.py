"""Agreement of a judge with human labels: how labels are read as yes and no, and the figures by task and source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.data.labels import Task
from merilo.results.records import grouped
from merilo.stats.agreement_intervals import Agreement, agreement, mean_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from merilo.commands.check.items import Item
    from merilo.stats.resampling import Measurement, Resampling

MIN_OF_EACH: Final = 30
"""The number of yes and of no labels that a source needs to count in the mean over sources."""
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

    agreement: Agreement
    """The agreement over the items with a verdict."""
    without: int
    """Number of items without a verdict."""
    failed: int
    """Number of items whose question failed."""
    seen: bool = False
    """True if the judge's model was trained on these items' source."""

    @property
    def agree(self) -> int:
        """Number of labels on which the judge agrees with people."""
        counts = self.agreement.confusion.counts
        return counts[0][0] + counts[1][1]

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
    pooled: Figures
    """Figures over the items of all sources that the model has not seen."""

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
        return self.pooled.agree

    @property
    def is_mean(self) -> bool:
        """True if the measures are means over sources; otherwise they are over all labels."""
        return any(each.counts for each in self.sources.values())

    @property
    def kappa(self) -> Measurement:
        """Agreement beyond chance: the mean over sources that count; over all labels if none does."""
        return self._measure("kappa")

    @property
    def balanced_accuracy(self) -> Measurement:
        """The mean of the rates at which human yes and human no are found, over the same labels as `kappa`."""
        return self._measure("balanced_accuracy")

    @property
    def auroc(self) -> Measurement:
        """AUROC over the same labels as `kappa`."""
        return self._measure("auroc")

    def _measure(self, name: str) -> Measurement:
        if not self.is_mean:
            return _measure(self.pooled, name)
        found = [_measure(each, name) for each in self.sources.values() if each.counts]
        return mean_of([each for each in found if each.value is not None])


def _measure(figures: Figures, name: str) -> Measurement:
    found: Measurement = getattr(figures.agreement, name)
    return found


def table_of(
    reading: PositiveRule, items: Sequence[Item], resampling: Resampling, trained_on: Collection[str] = ()
) -> TaskTable | None:
    """Return the table of one reading; None if no item belongs to it.

    `trained_on`: the data sets that the judge's model has seen. Their items have separate figures.
    """
    every = [item for item in items if reading.holds(item)]
    if not every:
        return None
    names = {_comparable(name) for name in trained_on}
    own, seen = ([item for item in every if _is_seen(item, names) is known] for known in (False, True))
    sources = {name: _figures(reading, part, resampling) for name, part in _by_source(own)}
    for name, part in _by_source(seen):
        key = f"{name} {SEEN}" if name in sources else name
        sources[key] = _figures(reading, part, resampling, seen=True)
    return TaskTable(reading, dict(sorted(sources.items())), _figures(reading, own, resampling))


def _comparable(name: str) -> str:
    """Return the name of a data set without case and punctuation, so that `MS MARCO` equals `ms-marco`."""
    return "".join(filter(str.isalnum, name.casefold()))


def _is_seen(item: Item, names: Collection[str]) -> bool:
    record = item.record
    return any(_comparable(name) in names for name in (record.source, record.origin) if name is not None)


def _by_source(items: Sequence[Item]) -> list[tuple[str, list[Item]]]:
    return [*grouped((item.record.source, item) for item in items).items()]


def _figures(reading: PositiveRule, items: Sequence[Item], resampling: Resampling, *, seen: bool = False) -> Figures:
    judged = [item for item in items if item.judge is not None]
    return Figures(
        agreement=agreement(
            [item.people >= reading.least for item in judged],
            [(item.judge or 0.0) >= reading.least for item in judged],
            scores=[reading.rank(item) for item in judged],
            clusters=[(item.record.source, item.cluster) for item in judged],
            resampling=resampling,
        ),
        without=len(items) - len(judged),
        failed=sum(item.failed for item in items),
        seen=seen,
    )
