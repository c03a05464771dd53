"""Human labels paired with verdicts of a judge, item by item, and the clusters of the items."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from merilo.data.labels import Task
from merilo.judging.kinds.relevance import RelevanceVerdict
from merilo.judging.verdicts import is_positive, probability_of
from merilo.metrics.base import Failed, Score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from merilo.data.labels import Labelled
    from merilo.judging.verdicts import Verdict
    from merilo.metrics.base import Outcome


class ItemStatus(StrEnum):
    """The outcome of asking about an item."""

    JUDGED = "judged"
    UNDEFINED = "undefined"
    """A text is blank, so there was nothing to ask."""
    FAILED = "failed"
    """A question got no verdict."""


@dataclass(frozen=True, slots=True)
class Item:
    """One human label and the judge's verdict on the same texts."""

    record: Labelled
    cluster: int
    people: float
    """The grade of a context if it has one, otherwise 1.0 for yes and 0.0 for no."""
    state: ItemStatus
    judge: float | None = None
    """The judge's label on the same scale; None if there is no verdict."""
    probability: float | None = None
    """The judge's probability of yes (for contexts: of grade 1 or 2); None if it gives none."""


def items_of(records: Sequence[Labelled], outcomes: Mapping[str, Outcome]) -> list[Item]:
    """Return the items of the records of one task, in order, with their outcomes (by record id).

    A record of labelled sentences has one item per sentence. A record without
    an outcome was not asked about and has no item.
    """
    clusters = clusters_of(records)
    found: list[Item] = []
    for record, cluster in zip(records, clusters, strict=True):
        outcome = outcomes.get(record.id)
        if outcome is None:
            continue
        if record.task is Task.SENTENCE_RELEVANCE:
            found += _sentences(record, cluster, outcome)
        else:
            found.append(_item(record, cluster, outcome))
    return found


def clusters_of(records: Iterable[Labelled]) -> list[int]:
    """Return the cluster number of each record.

    Records of one source that share a text are in one cluster, also through other records (connected components).
    """
    # Union-find: `parents` holds the trees, `first` the first record with each shared text.
    parents: list[int] = []
    first: dict[tuple[str, str], int] = {}

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    for place, record in enumerate(records):
        parents.append(place)
        for mark in record.same:
            parents[root(place)] = root(first.setdefault((record.source, mark), place))
    return [root(place) for place in range(len(parents))]


def _state(outcome: Outcome) -> ItemStatus:
    return ItemStatus.FAILED if isinstance(outcome, Failed) else ItemStatus.UNDEFINED


def _item(record: Labelled, cluster: int, outcome: Outcome) -> Item:
    people = float(record.yes) if record.grade is None else float(record.grade)
    if not isinstance(outcome, Score):
        return Item(record, cluster, people, _state(outcome))
    verdicts = [piece.verdict for piece in outcome.evidence]
    judge, probability = _JOINED[record.task](verdicts)
    return Item(record, cluster, people, ItemStatus.JUDGED, judge, probability)


def _sentences(record: Labelled, cluster: int, outcome: Outcome) -> Iterator[Item]:
    if not isinstance(outcome, Score):
        for label in record.sentence_labels:
            yield Item(record, cluster, float(label), _state(outcome))
        return
    verdicts = [piece.verdict for piece in outcome.evidence]
    named = {index for each in verdicts[:1] if isinstance(each, RelevanceVerdict) for index in each.evidence}
    for index, label in enumerate(record.sentence_labels):
        yield Item(record, cluster, float(label), ItemStatus.JUDGED, float(index in named))


def _grade(verdicts: Sequence[Verdict]) -> tuple[float, float | None]:
    (verdict,) = verdicts
    grade = verdict.grade if isinstance(verdict, RelevanceVerdict) else 0
    return float(grade), probability_of(verdict)


def _one(verdicts: Sequence[Verdict]) -> tuple[float, float | None]:
    (verdict,) = verdicts
    return float(is_positive(verdict)), probability_of(verdict)


def _all(verdicts: Sequence[Verdict]) -> tuple[float, float | None]:
    """Join statements: all must be supported; the probability is their mean (design/judges.md)."""
    chances = _chances(verdicts)
    return float(all(map(is_positive, verdicts))), sum(chances) / len(chances) if chances else None


def _any(verdicts: Sequence[Verdict]) -> tuple[float, float | None]:
    """Join statements: one must address the question; the probability is their maximum."""
    return float(any(map(is_positive, verdicts))), max(_chances(verdicts), default=None)


def _chances(verdicts: Sequence[Verdict]) -> list[float]:
    """Return the probabilities of all verdicts; empty if one verdict has none."""
    found = [chance for verdict in verdicts if (chance := probability_of(verdict)) is not None]
    return found if len(found) == len(verdicts) else []


_JOINED: Final = {
    Task.CHUNK_RELEVANCE: _grade,
    Task.SUFFICIENCY: _one,
    Task.GROUNDEDNESS: _all,
    Task.NLI: _one,
    Task.ANSWER_RELEVANCE: _any,
}
"""Task → the function that joins the verdicts on one record into one label and one probability."""
