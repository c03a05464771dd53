"""Labels of people beside verdicts of a judge, item by item, and which items belong together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from merilo.data.labels import Task
from merilo.judging.saying import chance_of, says_yes
from merilo.judging.verdicts import RelevanceVerdict
from merilo.metrics.base import Failed, Score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from merilo.data.labels import Labelled
    from merilo.judging.verdicts import Verdict
    from merilo.metrics.base import Outcome


class State(StrEnum):
    """What came of asking."""

    JUDGED = "judged"
    UNDEFINED = "undefined"
    """There was nothing to ask: a text is blank."""
    FAILED = "failed"
    """A question got no verdict."""


@dataclass(frozen=True, slots=True)
class Item:
    """One label of people and what the judge said of the same."""

    record: Labelled
    cluster: int
    people: float
    """The grade of a context where it has one, else 1.0 for yes and 0.0 for no."""
    state: State
    judge: float | None = None
    """As `people`; None where there is no verdict."""
    probability: float | None = None
    """The judge's own of yes (for contexts: of grade 1 or 2); None where it gives none."""
    verdict: Verdict | None = None
    """The judge's, where the record is one question; None where it is several."""


def items_of(records: Sequence[Labelled], outcomes: Mapping[str, Outcome], *, alone: bool = False) -> list[Item]:
    """The items of records of one task, each with the outcome on it (by the record's id), in their order.

    A record of labelled sentences has an item for each sentence. `alone`: they were asked about one by one. A record
    without an outcome was not asked about, and has no item.
    """
    clusters = clusters_of(records)
    found: list[Item] = []
    for record, cluster in zip(records, clusters, strict=True):
        outcome = outcomes.get(record.id)
        if outcome is None:
            continue
        if record.task is Task.SENTENCE_RELEVANCE:
            found += _sentences(record, cluster, outcome, alone=alone)
        else:
            found.append(_item(record, cluster, outcome))
    return found


def clusters_of(records: Iterable[Labelled]) -> list[int]:
    """The number of each record's cluster: records of one source that share a text are joined, and so on along them."""
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


def _state(outcome: Outcome) -> State:
    return State.FAILED if isinstance(outcome, Failed) else State.UNDEFINED


def _item(record: Labelled, cluster: int, outcome: Outcome) -> Item:
    people = float(record.yes) if record.grade is None else float(record.grade)
    if not isinstance(outcome, Score):
        return Item(record, cluster, people, _state(outcome))
    verdicts = [piece.verdict for piece in outcome.evidence]
    judge, probability = _JOINED[record.task](verdicts)
    return Item(record, cluster, people, State.JUDGED, judge, probability, verdicts[0] if len(verdicts) == 1 else None)


def _sentences(record: Labelled, cluster: int, outcome: Outcome, *, alone: bool) -> Iterator[Item]:
    if not isinstance(outcome, Score):
        for label in record.sentence_labels:
            yield Item(record, cluster, float(label), _state(outcome))
        return
    verdicts = [piece.verdict for piece in outcome.evidence]
    named = {index for each in verdicts[:1] if isinstance(each, RelevanceVerdict) for index in each.evidence}
    for index, label in enumerate(record.sentence_labels):
        said = says_yes(verdicts[index]) if alone else index in named
        probability = chance_of(verdicts[index]) if alone else None
        yield Item(record, cluster, float(label), State.JUDGED, float(said), probability)


def _grade(verdicts: Sequence[Verdict]) -> tuple[float, float | None]:
    (verdict,) = verdicts
    grade = verdict.grade if isinstance(verdict, RelevanceVerdict) else 0
    return float(grade), chance_of(verdict)


def _one(verdicts: Sequence[Verdict]) -> tuple[float, float | None]:
    (verdict,) = verdicts
    return float(says_yes(verdict)), chance_of(verdict)


def _all(verdicts: Sequence[Verdict]) -> tuple[float, float | None]:
    """A response is supported when each statement is; its probability is their mean (design/judge-check.md)."""
    chances = _chances(verdicts)
    return float(all(map(says_yes, verdicts))), sum(chances) / len(chances) if chances else None


def _any(verdicts: Sequence[Verdict]) -> tuple[float, float | None]:
    """A response answers when some statement of it does."""
    return float(any(map(says_yes, verdicts))), max(_chances(verdicts), default=None)


def _chances(verdicts: Sequence[Verdict]) -> list[float]:
    """The probabilities of all verdicts; none where one has none."""
    found = [chance for verdict in verdicts if (chance := chance_of(verdict)) is not None]
    return found if len(found) == len(verdicts) else []


_JOINED: Final = {
    Task.CHUNK_RELEVANCE: _grade,
    Task.SUFFICIENCY: _one,
    Task.GROUNDEDNESS: _all,
    Task.NLI: _one,
    Task.ANSWER_RELEVANCE: _any,
}
"""How the verdicts on one record become one label and one probability."""
