"""Agreement of a run's judge with human labels, by kind of question."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.judging.kinds.contexts import Relevance
from merilo.stats.agreement_intervals import (
    Agreement,
    LabelAgreement,
    agreement,
    label_kappa,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from merilo.results.judged_samples import Item

_TWO: Final = 2


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """One item with its human labels and the judge's label."""

    item: Item
    people: tuple[str, ...]
    """One label per annotator."""
    cluster: Hashable
    """Its sample, or its sample's cluster."""
    sample: str
    """The id of its sample."""

    @property
    def consensus(self) -> str:
        """The label that most annotators gave; on ties the first of them in the order of the form's labels."""
        return consensus(self.people, self.item.form.labels)


@dataclass(frozen=True, slots=True)
class ItemAgreement:
    """Agreement of the judge with human labels, over items of one kind."""

    kind: str
    labels: tuple[str, ...]
    """The possible labels. Of two labels, "yes" is the last if they are ordered, otherwise the first."""
    items: int
    yes_or_no: Agreement | None
    """For two labels, and for grades as "at least 1"; None for other labels."""
    several: LabelAgreement | None
    """For more than two labels, as their positions from 0; otherwise None."""
    disputed: int
    """Number of items on which annotators disagree."""
    agreed: int
    """Items with the same label by the judge and by most annotators; grades of at least 1 count as the same."""


def consensus(given: Sequence[str], labels: Sequence[str]) -> str:
    """Return the most frequent label; on ties the first of them in `labels`, so the lowest if these are ordered."""
    counts = Counter(given)
    return min(counts, key=lambda label: (-counts[label], labels.index(label)))


def item_agreement(items: Sequence[LabelledItem]) -> tuple[ItemAgreement, ...]:
    """Return the agreement by kind of question, sorted by name, over the items that the judge judged.

    Items of one sample or cluster are resampled together.
    """
    judged = [each for each in items if each.item.judged]
    kinds = sorted({each.item.form.kind for each in judged})
    return tuple(_of_kind([each for each in judged if each.item.form.kind == kind]) for kind in kinds)


def _of_kind(items: Sequence[LabelledItem]) -> ItemAgreement:
    form = items[0].item.form
    labels = form.labels if all(each.item.form.labels == form.labels for each in items) else _all_labels(items)
    clusters = [each.cluster for each in items]
    two = len(labels) == _TWO
    return ItemAgreement(
        kind=form.kind,
        labels=labels,
        items=len(items),
        yes_or_no=_yes_or_no(items, clusters) if two or form.kind == Relevance.kind else None,
        several=None
        if two
        else label_kappa(
            [labels.index(each.consensus) for each in items],
            [labels.index(each.item.judge) for each in items],
            labels=range(len(labels)),
            ordered=form.ordered,
            clusters=clusters,
        ),
        disputed=sum(len(set(each.people)) > 1 for each in items),
        agreed=sum(_same(each, yes_or_no=two or form.kind == Relevance.kind) for each in items),
    )


def _same(each: LabelledItem, *, yes_or_no: bool) -> bool:
    judge, people = each.item.judge, each.consensus
    return says_yes(each, judge) == says_yes(each, people) if yes_or_no else judge == people


def _yes_or_no(items: Sequence[LabelledItem], clusters: Sequence[Hashable]) -> Agreement:
    return agreement(
        [says_yes(each, each.consensus) for each in items],
        [says_yes(each, each.item.judge) for each in items],
        scores=[each.item.probability if each.item.form.ordered else None for each in items],
        clusters=clusters,
    )


def says_yes(each: LabelledItem, label: str) -> bool:
    """Return True for "yes": of ordered labels all except the first, of other labels the first."""
    labels = each.item.form.labels
    return label != labels[0] if each.item.form.ordered else label == labels[0]


def _all_labels(items: Sequence[LabelledItem]) -> tuple[str, ...]:
    """Return the labels of all items, in order of first appearance.

    Questions of one kind may offer different labels, for example in several languages.
    """
    return tuple(dict.fromkeys(label for each in items for label in each.item.form.labels))
