"""Check that a run is what merilo wrote: compare it with its seal, and recompute its numbers from its store.

The seal finds every accidental change. Recomputing also finds a change whose author computed the digests again:
outcomes must follow from the stored answers, and the summary from the outcomes.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from merilo.data.sample import Fingerprint
from merilo.errors import RunError, UsageError
from merilo.judging.untyped import compact
from merilo.replaying.replay import Replaying
from merilo.reports.summary import Tally
from merilo.runs.clusters import cluster_numbers
from merilo.runs.ledger import balance_in
from merilo.runs.lock import RunLock
from merilo.runs.outcomes import outcome_from
from merilo.runs.publish import PART
from merilo.runs.run import MANIFEST, OUTCOMES, SEAL, STORE, Run
from merilo.runs.scales import recorded_scale
from merilo.runs.seal import inspect_seal, publish, recover, results_of
from merilo.runs.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from merilo.replaying.replay import Difference
    from merilo.runs.run import Aggregate
    from merilo.runs.seal import Inspected


class State(StrEnum):
    """The result of a verification."""

    VERIFIED = "verified"
    DIFFERENT = "recomputes to other numbers"
    BROKEN = "broken"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """What was found of a run."""

    run: Path
    state: State
    sealed: bool
    """Whether the run has a seal now."""
    sealed_now: bool = False
    """Whether this verification wrote it."""
    broken: tuple[str, ...] = ()
    """A sentence for each file that does not fit the seal."""
    samples: int = 0
    answers: int = 0
    """Stored answers that were read."""
    outcomes: int = 0
    """Outcomes in the run."""
    recomputed: int = 0
    """Those of them that were recomputed."""
    different: int = 0
    differences: tuple[Difference, ...] = ()
    """The first 100 recomputed outcomes that differ."""
    means: tuple[str, ...] = ()
    """Metrics whose row in the summary differs from the recomputed one."""
    notes: tuple[str, ...] = ()
    """What could not be checked, and what explains a difference; a sentence each."""


def verify_run(source: str | PathLike[str]) -> Verification:
    """Verify a run. One without a seal, which merilo 0.1.0 wrote, is sealed if it recomputes.

    Raises RunError if there is no run, or it cannot be read.
    """
    path = Path(source)
    if not path.is_dir() or not ((path / MANIFEST).exists() or (path / SEAL).exists()):
        raise RunError(f"{path} is not the directory of a run: it has no {MANIFEST}; name one that has.")
    if any(path.glob(f"*{PART}")):
        with suppress(RunError), RunLock(path):  # unless a running command is writing them
            recover(path)
    inspected = inspect_seal(path)
    if broken := _broken(path, inspected):
        return Verification(run=path, state=State.BROKEN, sealed=inspected.seal is not None, broken=broken)
    found = _recomputed(Run(path), inspected)
    if inspected.seal is None and found.state is State.VERIFIED:
        _seal(path)
        return replace(found, sealed=True, sealed_now=True)
    return found


def _broken(path: Path, inspected: Inspected) -> tuple[str, ...]:
    """Return a sentence for each broken file; none for a lost seal if everything else is as it was sealed."""
    broken = inspected.broken
    if set(broken) != {SEAL}:
        return tuple(broken.values())
    if results_of(path) in inspected.recorded:
        return ()
    text = "is missing or was changed, and so was another file: the results are not those that the store belongs to."
    return (f"{path / SEAL} {text}",)


def _recomputed(run: Run, inspected: Inspected) -> Verification:
    manifest = run.manifest
    with _Reading(run) as reading:
        samples, notes = reading.samples()
        answers = reading.answers()
    balance_in(run.path)  # raises for a damaged ledger
    found = Verification(
        run=run.path, state=State.VERIFIED, sealed=inspected.seal is not None, samples=samples, answers=answers
    )
    if manifest.origin is not None:
        note = f"The scores come from {manifest.origin} and cannot be recomputed; the means follow from them."
        return _concluded(replace(found, notes=(*notes, note)), run, _imported(run))
    try:
        return _replayed(replace(found, notes=notes), run)
    except UsageError as error:
        return replace(found, state=State.CANNOT_TELL, notes=(*notes, str(error)))


def _replayed(found: Verification, run: Run) -> Verification:
    """Recompute the outcomes from the stored answers, and the summary from the outcomes."""
    folder = Path(tempfile.mkdtemp(prefix="merilo-verify-"))
    try:
        work = Replaying(run, run.path, folder, None, None, kept=False)
        work.do()
        now = Run(folder)
        with now.file(OUTCOMES).open("rb") as lines:
            recomputed = sum(1 for _ in lines)
        stored = run.manifest
        old, new = {**stored.metrics, **stored.composites}, {**now.manifest.metrics, **now.manifest.composites}
        notes = [
            f"{text} has version {old[text]} in the run and {new[text]} here."
            for text in old
            if new.get(text) != old[text]
        ]
        if (now.done, now.complete, now.until_decided) != (run.done, run.complete, run.until_decided):
            notes.append("The summary differs in how far the run is, or in what was decided.")
            work.different += 1
        if run.cascades:
            notes.append("Which judge of the cascade answered what is sealed, but not recomputed.")
        found = replace(
            found,
            recomputed=recomputed,
            different=work.different,
            differences=tuple(work.differences),
            notes=(*found.notes, *notes),
        )
        return _concluded(found, run, now.metrics.values())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _imported(run: Run) -> list[Aggregate]:
    """Return the aggregates that follow from the outcomes of an import."""
    tallies = {text: Tally(recorded_scale(run.manifest, text).span, text) for text in run.manifest.metrics}
    store = Store.read(run.path / STORE)
    try:
        clusters = cluster_numbers(store, run.manifest.cluster)
        sample, number = None, None
        for record in run.records():
            if record["sample"] != sample:
                sample, number = record["sample"], next(clusters)
            tallies[record["metric"]].add(outcome_from(record), number)
    finally:
        store.close()
    return [tally.aggregate() for tally in tallies.values()]


def _concluded(found: Verification, run: Run, now: Iterable[Aggregate]) -> Verification:
    """Compare the aggregates, and return the finished verification."""
    outcomes = sum(1 for _ in run.records())
    expected = run.done * len(run.manifest.metrics)
    notes = [] if outcomes == expected else [f"The run has {outcomes:,} outcomes, but should have {expected:,}."]
    means: list[str] = []
    other_method: list[str] = []
    for each in now:
        stored = run.metrics[each.metric]
        if stored.method != each.method:
            other_method.append(each.metric)
        if _text(_compared(each, stored)) != _text(_compared(stored, each)):
            means.append(each.metric)
    if other_method:
        notes.append(f"Intervals are made by another method now, and were not compared: {', '.join(other_method)}.")
    wrong = found.different or means or outcomes != expected
    return replace(
        found,
        state=State.DIFFERENT if wrong else State.VERIFIED,
        outcomes=outcomes,
        means=tuple(means),
        notes=(*found.notes, *notes),
    )


def _compared(aggregate: Aggregate, other: Aggregate) -> Aggregate:
    """Return the aggregate, without its intervals if the other one has them by another method."""
    if aggregate.method == other.method:
        return aggregate
    return replace(aggregate, interval=None, note="", remark="", method=None, seed=None, shares={}, clusters=None)


def _text(aggregate: Aggregate) -> str:
    return compact(asdict(aggregate))


class _Reading:
    """Reads everything in a run's store once; a row that does not match its seal raises RunError."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __enter__(self) -> Self:
        self._store = Store.read(self._run.path / STORE)
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def samples(self) -> tuple[int, tuple[str, ...]]:
        """Return the number of samples, and notes on what could not be checked. Raises RunError for other samples."""
        manifest, fingerprint, count = self._run.manifest, Fingerprint(), 0
        for sample in self._store.samples():
            fingerprint.add(sample)
            count += 1
        if count != manifest.samples:
            raise RunError(
                f"{self._run.path} is damaged: its store has {count:,} samples, its manifest {manifest.samples:,}."
            )
        if manifest.until is not None:  # stored in random order, while the fingerprint is of the order of the data
            return count, ("The order of the data is not stored, so its fingerprint was not recomputed.",)
        if fingerprint.hexdigest() != manifest.fingerprint:
            raise RunError(f"{self._run.path} is damaged: its samples are not those that its manifest names.")
        return count, ()

    def answers(self) -> int:
        """Return the number of answers, each read with its question, rubric and replies."""
        return sum(1 for _ in self._all())

    def _all(self) -> Iterator[object]:
        for key in self._store.keys():  # noqa: SIM118  a store is not a dict
            yield self._store.asked(key)


def _seal(path: Path) -> None:
    """Seal a run that recomputes."""
    with RunLock(path):
        recover(path)
        run, store = Run(path), Store.open(path / STORE)
        try:
            publish(path, {}, usage=run.usage, store=store)
        finally:
            store.close()
