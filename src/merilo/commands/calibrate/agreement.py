"""Agreement of a run's judge with human labels, overall and by group, and of the annotators with each other."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError
from merilo.judging.kinds.contexts import Relevance
from merilo.runs.clusters import clusters
from merilo.runs.run import open_store
from merilo.stats.agreement import Distance
from merilo.stats.agreement_intervals import (
    Agreement,
    AnnotatorAgreement,
    GradeAgreement,
    agreement,
    annotator_agreement,
    grade_agreement,
    rates_by_group,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from merilo.results.judged_samples import Item
    from merilo.runs.run import Run
    from merilo.stats.agreement_intervals import GroupRates

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
    grades: GradeAgreement | None
    """For more than two ordered labels, as their positions from 0; None for other labels."""
    nominal: AnnotatorAgreement | None
    """For more than two labels without an order: the judge and the consensus as two annotators; otherwise None."""
    annotators: AnnotatorAgreement | None
    """Agreement among annotators; None if no item has labels of two annotators."""
    disputed: int
    """Number of items on which annotators disagree."""
    groups: tuple[FieldRates, ...] = ()
    """The judge's rates by group, one entry for each requested field; empty for labels that are not yes or no."""
    agreed: int = 0
    """Items with the same label by the judge and by most annotators; grades of at least 1 count as the same."""


@dataclass(frozen=True, slots=True)
class FieldRates:
    """A judge's rates by the values of one field."""

    field: str
    groups: tuple[GroupRates, ...]


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
        grades=grade_agreement(
            [labels.index(each.consensus) for each in items],
            [labels.index(each.item.judge) for each in items],
            labels=range(len(labels)),
            clusters=clusters,
        )
        if form.ordered and not two
        else None,
        nominal=annotator_agreement(
            [(each.consensus, each.item.judge) for each in items],
            labels=labels,
            clusters=clusters,
        )
        if not form.ordered and not two
        else None,
        annotators=_annotators(items, labels),
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


def _annotators(items: Sequence[LabelledItem], labels: Sequence[str]) -> AnnotatorAgreement | None:
    several = [each for each in items if len(each.people) > 1]
    if not several:
        return None
    ordered = items[0].item.form.ordered
    return annotator_agreement(
        [[labels.index(label) for label in each.people] for each in several],
        labels=range(len(labels)),
        distance=Distance.ORDINAL if ordered else Distance.NOMINAL,
        clusters=[each.cluster for each in several],
    )


def _all_labels(items: Sequence[LabelledItem]) -> tuple[str, ...]:
    """Return the labels of all items, in order of first appearance.

    Questions of one kind may offer different labels, for example in several languages.
    """
    return tuple(dict.fromkeys(label for each in items for label in each.item.form.labels))


LANGUAGE: Final = "language"
LENGTH: Final = "length"
_CONTEXTS: Final = frozenset({"context", "contexts", "texts"})


@dataclass(frozen=True, slots=True)
class Groups:
    """The fields that items are grouped by, with the values of the samples."""

    fields: tuple[str, ...]
    values: Mapping[str, Mapping[str, str | None]]
    """By field, the value of each sample; only for fields that must be read from the samples."""

    @classmethod
    def of(cls, run: Run, fields: Sequence[str], samples: Collection[str]) -> Groups:
        """Read the fields of these samples. Raises UsageError for a field that none of them has."""
        named = tuple(dict.fromkeys(fields))
        values = {field: _values(run, field, samples) for field in named if field not in {LANGUAGE, LENGTH}}
        if LENGTH in named:
            values[LENGTH] = _read(run, "response", samples)
        return cls(named, values)

    def added(self, found: tuple[ItemAgreement, ...], items: Sequence[LabelledItem]) -> tuple[ItemAgreement, ...]:
        """Return the agreement with the judge's rates by group."""
        return tuple(
            each if each.yes_or_no is None else replace(each, groups=self._of(each.kind, items)) for each in found
        )

    def _of(self, kind: str, items: Sequence[LabelledItem]) -> tuple[FieldRates, ...]:
        own = [item for item in items if item.item.judged and item.item.form.kind == kind]
        rates = (
            rates_by_group(
                [says_yes(each, each.consensus) for each in own],
                [says_yes(each, each.item.judge) for each in own],
                self._names(field, own),
                clusters=[each.cluster for each in own],
            )
            for field in self.fields
        )
        return tuple(FieldRates(field, each) for field, each in zip(self.fields, rates, strict=True) if each)

    def _names(self, field: str, items: Sequence[LabelledItem]) -> list[str | None]:
        if field == LANGUAGE:
            return [each.item.question.language for each in items]
        values = self.values[field]
        if field == LENGTH:
            return _halves([_length(each, values.get(each.sample)) for each in items])
        return [values.get(each.sample) for each in items]


def _values(run: Run, field: str, samples: Collection[str]) -> dict[str, str | None]:
    """Return the field of each of these samples. Raises UsageError if there are samples and none has it."""
    found = _read(run, field, samples)
    if not samples or any(each is not None for each in found.values()):
        return found
    with closing(open_store(run)) as store:
        known = [sample for name in samples if (sample := store.sample(name)) is not None]
    keys = sorted({key for sample in known for key in sample.metadata})
    listed = ", ".join([LANGUAGE, LENGTH, *keys])
    raise UsageError(f"--by: no labelled sample has the field {field!r}. Possible: {listed}.")


def _read(run: Run, field: str, samples: Collection[str]) -> dict[str, str | None]:
    with closing(open_store(run)) as store:
        return {each.sample: each.cluster for each in clusters(store, field) if each.sample in samples}


def _length(each: LabelledItem, response: str | None) -> int | None:
    """Return the number of characters of the contexts that the judge read; of the response if it read none."""
    contexts = [len(text) for name, text in each.item.form.texts if name in _CONTEXTS]
    if contexts:
        return sum(contexts)
    return None if response is None else len(response)


def _halves(lengths: Sequence[int | None]) -> list[str | None]:
    """Return the half of each length, split at the median."""
    known = [each for each in lengths if each is not None]
    if not known:
        return [None] * len(lengths)
    middle = int(median(known))
    return [
        None if each is None else f"up to {middle:,} characters" if each <= middle else f"over {middle:,} characters"
        for each in lengths
    ]
