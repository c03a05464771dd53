"""Reads a data set into a run's store, and checks every record before the first question is asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from merilo.data.identification import with_identified_language
from merilo.data.problem_report import grouped_messages
from merilo.data.sample import BadRecord, Fingerprint
from merilo.errors import DataError, Problem
from merilo.runs.shards import ShardTally
from merilo.runs.unread import Unread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.data.sample import Dataset, Sample
    from merilo.runs.shards import Shard
    from merilo.runs.store import Store

    UnreadBy = Callable[[Sample], Mapping[str, tuple[str, str]]]

_SHOWN = 20
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Intake:
    """Result of reading a data set."""

    samples: int
    """Number of samples to evaluate."""
    fingerprint: str
    """Fingerprint of these samples."""
    read: int
    """Number of samples in the data; more than `samples` for a shard. Everything below describes all of them."""
    shard: Mapping[str, object] | None = None
    """The manifest's entry for the shard; None if all samples are evaluated."""
    skipped: tuple[str, ...] = ()
    """One text for each skipped record: a sentence for each of its problems."""
    in_some: frozenset[str] = frozenset()
    """Fields that at least one sample has."""
    unread: Mapping[str, Unread] = field(default_factory=dict[str, Unread])
    """Samples in languages that the judge of a metric does not support, by metric."""


@dataclass(slots=True)
class _Tally:
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    samples: int = 0
    problems: list[Problem] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    present: set[str] = field(default_factory=set[str])
    unread_by: UnreadBy | None = None
    resumed: bool = False
    """True if an earlier part of the run stored samples."""
    own: ShardTally | None = None
    """The samples of the shard; None if all samples are evaluated."""
    unread: dict[str, Unread] = field(default_factory=dict[str, Unread])

    @property
    def owns_next(self) -> bool:
        """True if the next sample is evaluated."""
        return self.own is None or self.own.shard.holds(self.samples + 1)

    def add(self, sample: Sample, given: Sample) -> None:
        """Count a sample; `given`: it as in the data, where its language is the one that the user stated."""
        if self.own is not None and self.owns_next:
            self.own.add(sample)
        self.fingerprint.add(sample)
        self.samples += 1
        self.present |= sample.present
        for metric, (judge, language) in () if self.unread_by is None else self.unread_by(given).items():
            self.unread.setdefault(metric, Unread(judge)).add(sample.id, language)


async def take_in(
    dataset: Dataset,
    store: Store,
    *,
    skip_invalid: bool,
    unread_by: UnreadBy | None = None,
    shard: Shard | None = None,
) -> Intake:
    """Read a data set into the store; `accept_samples` then makes its samples those of the run.

    `unread_by`: returns by metric the judge that does not support the language of a sample, and that language; None if
    this is not checked. `shard`: the
    samples to evaluate. All are read, because metrics and messages depend on all of them, as do positions. Yields to
    the event loop after each batch, so that reading can be cancelled. Raises DataError with every problem found if
    records are invalid and not to be skipped, or if no valid record is left, and UsageError for an empty shard.
    """
    store.expect_samples()
    own = None if shard is None else ShardTally(shard)
    tally = _Tally(unread_by=unread_by, resumed=store.sample_count() > 0, own=own)
    records = enumerate(dataset, start=1)
    while batch := list(islice(records, _BATCH)):
        _take(batch, dataset, store, tally)
        await asyncio.sleep(0)
    store.commit()
    if tally.skipped and not skip_invalid:
        raise DataError(_refusal(dataset.name, tally), problems=tuple(tally.problems))
    if not tally.samples:
        shown = [f"{dataset.name}: no record can be evaluated.", *_messages(tally)]
        raise DataError("\n".join(shown), problems=tuple(tally.problems))
    fingerprint = tally.fingerprint.hexdigest()
    return Intake(
        samples=tally.samples if own is None else own.samples,
        fingerprint=fingerprint if own is None else own.fingerprint.hexdigest(),
        read=tally.samples,
        shard=None if own is None else own.record(tally.samples, fingerprint),
        skipped=tuple(tally.skipped),
        in_some=frozenset(tally.present),
        unread=tally.unread,
    )


def _take(batch: list[tuple[int, Sample | BadRecord]], dataset: Dataset, store: Store, tally: _Tally) -> None:
    """Store the valid records of a batch, and note the problems of the others, in their order."""
    known = store.positions([item.id for _, item in batch if not isinstance(item, BadRecord)])
    for number, item in batch:
        if isinstance(item, BadRecord):
            _note(tally, item.problems)
        elif (earlier := known.get(item.id)) is not None:
            _note(tally, (_taken(item.id, earlier, dataset, number),))
        else:
            own = tally.owns_next
            stored = store.sample(item.id) if tally.resumed and own else None
            sample = with_identified_language(item, earlier=stored)
            tally.add(sample, item)
            known[sample.id] = tally.samples
            store.add_new(sample, own=own)


def _taken(sample_id: str, earlier: int, dataset: Dataset, number: int) -> Problem:
    """Return the problem of an id that an earlier sample has. Either of the two may have no id and use its record
    number.
    """
    numbered = dataset.columns.numbered(sample_id)
    if numbered is None:
        got, advice = f"{sample_id!r}, the id of sample {earlier}", ""
    elif numbered == number:
        got = f"none, so its number {number} is its id, which sample {earlier} has already"
        advice = "give every record an id, or none"
    else:
        got = f"{sample_id!r}, which is the id of record {numbered}: it has none, so its number is its id"
        advice = "give every record an id, or none"
    return Problem("a unique id", got, "id", dataset.name, number, "record", advice)


def _note(tally: _Tally, problems: tuple[Problem, ...]) -> None:
    tally.skipped.append(" ".join(problem.message for problem in problems))
    tally.problems.extend(problems)


def _refusal(name: str, tally: _Tally) -> str:
    bad = len(tally.skipped)
    count = "1 invalid record" if bad == 1 else f"{bad} invalid records"
    valid = "the valid one" if tally.samples == 1 else f"the {tally.samples} valid ones"
    advice = f" Evaluate {valid} with --skip-invalid (skip_invalid=True)." if tally.samples else ""
    return "\n".join([f"{name}: {count}.{advice}", *_messages(tally)])


def _messages(tally: _Tally) -> list[str]:
    """Return the problems as messages, equal ones grouped, and the number of those not shown."""
    messages = grouped_messages(tally.problems, records=tally.samples + len(tally.skipped))
    more = len(messages) - _SHOWN
    return [*messages[:_SHOWN], *([f"... and {more} more."] if more > 0 else [])]
