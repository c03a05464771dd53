"""Takes a data set into a run: every record is checked before the first question is asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from merilo.data.sample import BadRecord, Fingerprint
from merilo.errors import DataError, Problem

if TYPE_CHECKING:
    from merilo.data.sample import Dataset, Sample
    from merilo.runs.store import Store

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Intake:
    """What was read from a data set."""

    samples: int
    fingerprint: str
    skipped: tuple[str, ...] = ()
    """One text for each record that was left out: a sentence for each of its problems."""
    in_every: frozenset[str] = frozenset()
    """Fields that every sample has."""
    in_some: frozenset[str] = frozenset()
    """Fields that at least one sample has."""


@dataclass(slots=True)
class _Tally:
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    samples: int = 0
    problems: list[Problem] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    in_every: frozenset[str] | None = None
    in_some: frozenset[str] = frozenset()

    def add(self, sample: Sample) -> None:
        self.fingerprint.add(sample)
        self.samples += 1
        present = sample.present
        if present != self.in_every:
            self.in_every = present if self.in_every is None else self.in_every & present
            self.in_some |= present


async def take_in(dataset: Dataset, store: Store, *, skip_invalid: bool) -> Intake:
    """Read a data set into the store, where `accept_samples` makes it the run's, and say what was read.

    Gives way to the event loop now and then, so that reading can be cancelled. Raises DataError with every problem
    found when records are bad and not to be skipped, or when no good record is left.
    """
    store.expect_samples()
    tally = _Tally()
    for number, item in enumerate(dataset, start=1):
        if isinstance(item, BadRecord):
            _note(tally, item.problems)
            continue
        earlier = store.add_sample(item)
        if earlier is None:
            tally.add(item)
        else:
            got = f"{item.id!r}, which sample {earlier} has already"
            _note(tally, (Problem("an id of its own", got, "id", dataset.name, number, "record"),))
        if store.due():
            store.commit()
            await asyncio.sleep(0)
    store.commit()
    if tally.skipped and not skip_invalid:
        raise DataError(_refusal(dataset.name, tally), problems=tuple(tally.problems))
    if not tally.samples:
        shown = "\n".join([f"{dataset.name}: no record can be evaluated.", *tally.skipped[:_SHOWN]])
        raise DataError(shown, problems=tuple(tally.problems))
    return Intake(
        tally.samples,
        tally.fingerprint.hexdigest(),
        tuple(tally.skipped),
        tally.in_every or frozenset(),
        tally.in_some,
    )


def _note(tally: _Tally, problems: tuple[Problem, ...]) -> None:
    tally.skipped.append(" ".join(problem.message for problem in problems))
    tally.problems.extend(problems)


def _refusal(name: str, tally: _Tally) -> str:
    shown = [problem.message for problem in tally.problems[:_SHOWN]]
    more = len(tally.problems) - len(shown)
    if more:
        shown.append(f"... and {more} more.")
    bad = len(tally.skipped)
    count = "1 record is" if bad == 1 else f"{bad} records are"
    good = "1 good one" if tally.samples == 1 else f"{tally.samples} good ones"
    advice = f"; {good} can run alone with --skip-invalid (skip_invalid=True)" if tally.samples else ""
    return "\n".join([f"{name}: {count} bad{advice}.", *shown])
