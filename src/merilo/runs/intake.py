"""Takes a data set into a run: every record is checked before the first question is asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from merilo.data.faults import told_once
from merilo.data.sample import BadRecord, Fingerprint
from merilo.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.data.sample import Dataset, Sample
    from merilo.runs.store import Store

_SHOWN = 20
_NAMED = 5
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Intake:
    """What was read from a data set."""

    samples: int
    fingerprint: str
    skipped: tuple[str, ...] = ()
    """One text for each record that was left out: a sentence for each of its problems."""
    in_some: frozenset[str] = frozenset()
    """Fields that at least one sample has."""
    unknown: int = 0
    """Samples in a language that a judge does not know."""
    unknown_first: tuple[str, ...] = ()
    """The ids of the first of them."""


@dataclass(slots=True)
class _Tally:
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    samples: int = 0
    problems: list[Problem] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    present: set[str] = field(default_factory=set[str])
    knows: Callable[[Sample], bool] | None = None
    unknown: int = 0
    unknown_first: list[str] = field(default_factory=list[str])

    def add(self, sample: Sample) -> None:
        self.fingerprint.add(sample)
        self.samples += 1
        self.present |= sample.present
        if self.knows is not None and not self.knows(sample):
            self.unknown += 1
            if self.unknown <= _NAMED:
                self.unknown_first.append(sample.id)


async def take_in(
    dataset: Dataset, store: Store, *, skip_invalid: bool, knows: Callable[[Sample], bool] | None = None
) -> Intake:
    """Read a data set into the store, where `accept_samples` makes it the run's, and say what was read.

    `knows`: whether the judges know the language of a sample; None where there is nothing to say of it.
    Gives way to the event loop now and then, so that reading can be cancelled. Raises DataError with every problem
    found when records are bad and not to be skipped, or when no good record is left.
    """
    store.expect_samples()
    tally = _Tally(knows=knows)
    records = enumerate(dataset, start=1)
    while batch := list(islice(records, _BATCH)):
        _take(batch, dataset, store, tally)
        await asyncio.sleep(0)
    store.commit()
    if tally.skipped and not skip_invalid:
        raise DataError(_refusal(dataset.name, tally), problems=tuple(tally.problems))
    if not tally.samples:
        shown = [f"{dataset.name}: no record can be evaluated.", *_told(tally)]
        raise DataError("\n".join(shown), problems=tuple(tally.problems))
    return Intake(
        samples=tally.samples,
        fingerprint=tally.fingerprint.hexdigest(),
        skipped=tuple(tally.skipped),
        in_some=frozenset(tally.present),
        unknown=tally.unknown,
        unknown_first=tuple(tally.unknown_first),
    )


def _take(batch: list[tuple[int, Sample | BadRecord]], dataset: Dataset, store: Store, tally: _Tally) -> None:
    """Store the good records of a batch, and note what is wrong with the others, in their order."""
    known = store.positions([item.id for _, item in batch if not isinstance(item, BadRecord)])
    for number, item in batch:
        if isinstance(item, BadRecord):
            _note(tally, item.problems)
        elif (earlier := known.get(item.id)) is not None:
            _note(tally, (_taken(item.id, earlier, dataset, number),))
        else:
            tally.add(item)
            known[item.id] = tally.samples
            store.add_new(item)


def _taken(sample_id: str, earlier: int, dataset: Dataset, number: int) -> Problem:
    """What to say of an id that an earlier sample has; one of the two may go by its number, for want of an id."""
    numbered = dataset.columns.numbered(sample_id)
    if numbered is None:
        got, advice = f"{sample_id!r}, which sample {earlier} has already", ""
    elif numbered == number:
        got = f"none, so that it goes by its number {number}, which sample {earlier} has as its id"
        advice = "give every record an id, or none"
    else:
        got = f"{sample_id!r}, by which record {numbered} goes already, since it has none and {numbered} is its number"
        advice = "give every record an id, or none"
    return Problem("an id of its own", got, "id", dataset.name, number, "record", advice)


def _note(tally: _Tally, problems: tuple[Problem, ...]) -> None:
    tally.skipped.append(" ".join(problem.message for problem in problems))
    tally.problems.extend(problems)


def _refusal(name: str, tally: _Tally) -> str:
    bad = len(tally.skipped)
    count = "1 record is" if bad == 1 else f"{bad} records are"
    good = "1 good one" if tally.samples == 1 else f"{tally.samples} good ones"
    advice = f"; {good} can run alone with --skip-invalid (skip_invalid=True)" if tally.samples else ""
    return "\n".join([f"{name}: {count} bad{advice}.", *_told(tally)])


def _told(tally: _Tally) -> list[str]:
    """The faults, equal ones once, and how many more there are."""
    told = told_once(tally.problems, records=tally.samples + len(tally.skipped))
    more = len(told) - _SHOWN
    return [*told[:_SHOWN], *([f"... and {more} more."] if more > 0 else [])]
