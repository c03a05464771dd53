"""Checks that a run is as merilo wrote it: compares it with its seal, and recomputes its numbers from its store.

The seal finds every accidental change. Recomputing also finds a change whose author computed the digests again:
outcomes must follow from the stored answers, summary and manifest from the outcomes, and usage from the ledger. The
rest of the manifest, such as the names of judges, is compared with the copy in the store. `compared.NOT_RECOMPUTED`
lists the fields that may differ.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, get_args

from merilo.commands.replay.run import Replaying
from merilo.commands.verify.compared import JSON, NOT_RECOMPUTED, differing
from merilo.data.sample import Fingerprint
from merilo.engine.budget import Unanswered, spent_record
from merilo.errors import RunError, UsageError
from merilo.judges.routed import recorded_parts
from merilo.judging.json_types import compact
from merilo.metrics.text import FOREIGN
from merilo.results.summary import Tally
from merilo.runs.balance import balance_in
from merilo.runs.clusters import cluster_numbers
from merilo.runs.fetched import local_run
from merilo.runs.files import LEDGER, read_json_bytes
from merilo.runs.ledger import Balance, Ledger
from merilo.runs.lock import RunLock
from merilo.runs.outcome_lines import outcome_lines
from merilo.runs.outcomes import outcome_from
from merilo.runs.publish import PART
from merilo.runs.run import MANIFEST, OUTCOMES, SEAL, STORE, SUMMARY, UNSPENT, USAGE, Run, open_store, unchecked_run
from merilo.runs.scales import recorded_scale
from merilo.runs.seal import digest_of_file, inspect_seal, publish, recover, results_of
from merilo.runs.store import Store
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.commands.replay.run import Difference
    from merilo.runs.outcomes import OutcomeRecord
    from merilo.runs.seal import Inspected

_NAMED: Final = 5
"""Differing fields that a sentence names, at most."""


class State(StrEnum):
    """The result of a verification."""

    VERIFIED = "verified"
    DIFFERENT = "recomputes to other numbers"
    BROKEN = "broken"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """The findings about a run."""

    run: Path
    state: State
    sealed: bool
    """True if the run has a seal now."""
    sealed_now: bool = False
    """True if this verification wrote the seal."""
    broken: tuple[str, ...] = ()
    """A sentence for each file that does not fit the seal."""
    samples: int = 0
    answers: int = 0
    """Number of stored answers that were read."""
    outcomes: int = 0
    """Number of outcomes in the run."""
    recomputed: int = 0
    """Number of recomputed outcomes."""
    different: int = 0
    differences: tuple[Difference, ...] = ()
    """The first 100 recomputed outcomes that differ."""
    means: tuple[str, ...] = ()
    """Metrics whose row in the summary differs from the recomputed one."""
    other: tuple[str, ...] = ()
    """A sentence for each other part of the run that differs."""
    notes: tuple[str, ...] = ()
    """Parts that could not be checked, and explanations of differences; a sentence each."""


def verify_run(source: str | PathLike[str]) -> Verification:
    """Verify a run. A lost seal is written again if the run recomputes.

    Raises RunError if there is no run, or it cannot be read.
    """
    path = local_run(source)
    if not path.is_dir() or not ((path / MANIFEST).exists() or (path / SEAL).exists()):
        raise RunError(f"Not a run directory: {path} (no {MANIFEST}).")
    if any(path.glob(f"*{PART}")):
        with suppress(RunError), RunLock(path):  # unless a running command is writing them
            recover(path)
    inspected = inspect_seal(path)
    if broken := _broken(path, inspected):
        return Verification(run=path, state=State.BROKEN, sealed=inspected.seal is not None, broken=broken)
    found = _recomputed(unchecked_run(path), inspected)
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
    with _Reading(run) as reading:
        samples, notes = reading.samples()
        answers = reading.answers()
        facts = reading.facts(inspected)
    balance_in(run.path)  # raises for a damaged ledger
    found = Verification(
        run=run.path,
        state=State.VERIFIED,
        sealed=inspected.seal is not None,
        samples=samples,
        answers=answers,
        other=facts.wrong,
        notes=(*notes, *facts.notes),
    )
    if run.manifest.origin is not None:
        note = f"The scores come from {run.manifest.origin} and cannot be recomputed; the means follow from them."
        return _concluded(replace(found, notes=(*found.notes, note)), run, _imported(run), {})
    try:
        return _replayed(found, run)
    except UsageError as error:
        state = State.DIFFERENT if found.other else State.CANNOT_TELL
        return replace(found, state=state, notes=(*found.notes, str(error)))


def _replayed(found: Verification, run: Run) -> Verification:
    """Recompute the outcomes from the stored answers, and the summary and the manifest from the outcomes."""
    folder = Path(tempfile.mkdtemp(prefix="merilo-verify-"))
    try:
        work = Replaying(run, run.path, folder, None, None, kept=False)
        work.do()
        now = Run.open(folder)
        recomputed = sum(1 for _ in outcome_lines(now.file(OUTCOMES)))
        summary = _json(now, SUMMARY)
        found = replace(found, recomputed=recomputed, different=work.different, differences=tuple(work.differences))
        return _concluded(found, run, summary, _json(now, MANIFEST))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _imported(run: Run) -> JSON:
    """Return the summary that follows from the outcomes of an import."""
    tallies = {text: Tally(recorded_scale(run.manifest, text).span, text) for text in run.manifest.metrics}
    done = 0
    with closing(open_store(run)) as store:
        clusters = cluster_numbers(store, run.manifest.cluster)
        for _, records in groupby(run.records(), key=_sample_of):
            number = next(clusters)
            done += 1
            for record in records:
                tallies[record["metric"]].add(outcome_from(record), number)
    rows = [tally.aggregate().to_fields() for tally in tallies.values()]
    found: JSON = json.loads(compact({"complete": done == run.manifest.samples, "samples": done, "metrics": rows}))
    return found


def _sample_of(record: OutcomeRecord) -> str:
    return record["sample"]


def _concluded(found: Verification, run: Run, summary: JSON, manifest: JSON) -> Verification:
    """Compare the summary and the manifest with the recomputed ones, and return the finished verification."""
    _ = run.metrics  # raises for a damaged summary
    stored = _json(run, SUMMARY)
    here = {row["metric"]: row for row in summary["metrics"]}
    means = tuple(row["metric"] for row in stored["metrics"] if any(differing(row, here.get(row["metric"]))))
    other, notes, unknown = [*found.other], [*found.notes], False
    outcomes = sum(1 for _ in outcome_lines(run.file(OUTCOMES)))
    if outcomes != (expected := run.done * len(run.manifest.metrics)):
        other.append(f"The run has {outcomes:,} outcomes, but should have {expected:,}.")
    rest = [*differing(_without(stored, {"metrics"}), _without(summary, {"metrics"}))]
    if [row["metric"] for row in stored["metrics"]] != [row["metric"] for row in summary["metrics"]]:
        rest.append("the order of its metrics")
    if rest:
        other.append(f"{run.path / SUMMARY} does not follow from the outcomes: {_listed(rest)}.")
    if manifest:
        ignored = {*NOT_RECOMPUTED[MANIFEST], "metrics", "composites"}
        now = [*differing(_without(_json(run, MANIFEST), ignored), _without(manifest, ignored))]
        if now:
            other.append(f"{run.path / MANIFEST} does not agree with the metrics: {_listed(now)}.")
        was, is_now = ({**each["metrics"], **each.get("composites", {})} for each in (_json(run, MANIFEST), manifest))
        for text in was:
            if is_now.get(text) != was[text]:
                notes.append(f"{text} has version {was[text]} in the run and {is_now.get(text)} here.")
                unknown = True
    if run.manifest.merilo != version():
        notes.append(f"merilo {run.manifest.merilo} wrote the run; this is merilo {version()}.")
    wrong = found.different or means or other
    return replace(
        found,
        state=State.DIFFERENT if wrong else State.CANNOT_TELL if unknown else State.VERIFIED,
        outcomes=outcomes,
        means=means,
        other=tuple(other),
        notes=tuple(notes),
    )


def _json(run: Run, name: str) -> JSON:
    found: JSON = json.loads(read_json_bytes(run.file(name)))
    return found


def _without(fields: Mapping[str, Any], names: Collection[str]) -> JSON:
    return {name: value for name, value in fields.items() if name not in names}


def _rounded(usage: Mapping[str, object]) -> JSON:
    """Return the usage with amounts of money to 12 places: the last bits depend on the order of adding up."""
    return {name: round(value, 12) if isinstance(value, float) else value for name, value in usage.items()}


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _lower(value: object, other: object) -> bool:
    return isinstance(value, int | float) and (other is None or (isinstance(other, int | float) and value < other))


@dataclass(frozen=True, slots=True)
class _Facts:
    """The findings about facts of a run that do not follow from its answers."""

    wrong: tuple[str, ...]
    notes: tuple[str, ...]


class _Reading:
    """Reads everything in a run's store once; a row that does not match its seal raises RunError."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __enter__(self) -> Self:
        self._store = open_store(self._run)
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
            return count, ("The order of the data is not stored, so its fingerprint was not checked.",)
        if fingerprint.hexdigest() != manifest.fingerprint:
            raise RunError(f"{self._run.path} is damaged: its samples do not match its manifest.")
        return count, ()

    def answers(self) -> int:
        """Return the number of answers, each read with its question, rubric and replies."""
        return sum(1 for _ in self._all())

    def facts(self, inspected: Inspected) -> _Facts:
        """Compare the manifest, the usage and imported scores with what the store and the ledger hold of them."""
        run, wrong, notes = self._run, list[str](), list[str]()
        copy = self._store.remark(MANIFEST)
        if copy is not None:
            names = [*differing(_json(run, MANIFEST), json.loads(copy))]
            if names:
                wrong.append(f"{run.path / MANIFEST} differs from its copy in the store: {_listed(names)}.")
        else:
            wrong.append(f"{run.path / STORE} lacks its copy of the manifest.")
        wrong += self._unknown_judges()
        if run.manifest.origin is not None:
            wrong += self._import_problems()
        if len(inspected.recorded) > 1:
            notes.append("A command was interrupted while it wrote the results, so the usage was not checked.")
        elif names := self._usage_differences():
            wrong.append(f"{run.path / USAGE} does not follow from the recorded requests: {_listed(names)}.")
        return _Facts(tuple(wrong), tuple(notes))

    def _unknown_judges(self) -> list[str]:
        """Return a sentence if the store holds answers of a judge that the manifest does not name."""
        known: set[str] = set()
        for judge in self._run.manifest.judges.values():
            for part in recorded_parts(judge):
                known.add(part.name)
        for record in self._run.records():
            for key in record.get("trail", ()):
                asked = self._store.asked(bytes.fromhex(key))
                if asked is not None and asked.judge and asked.judge not in known:
                    return [f"{self._run.path / MANIFEST} does not name {asked.judge}, which gave answers."]
        return []

    def _import_problems(self) -> list[str]:
        """Return a sentence for each contradiction to the claim that the scores were imported."""
        run, wrong = self._run, list[str]()
        answered = next(self._store.keys(), None) is not None
        if answered or run.manifest.judges or any(not text.startswith(FOREIGN) for text in run.manifest.metrics):
            wrong.append(f"{run.path / MANIFEST} names {run.manifest.origin} as origin, but the run was not imported.")
        copy = self._store.remark(OUTCOMES)
        if copy is None:
            wrong.append(f"{run.path / STORE} lacks the digest of the imported scores.")
        elif copy != digest_of_file(run.file(OUTCOMES)):
            wrong.append(f"{run.path / OUTCOMES} does not hold the scores that were imported.")
        return wrong

    def _usage_differences(self) -> list[str]:
        """Return the fields of the usage that do not follow from the ledger and the store."""
        run = self._run
        if not (run.path / USAGE).exists():
            return []
        usage = _rounded(_without(run.usage, NOT_RECOMPUTED[USAGE]))
        found = min(([*differing(usage, _rounded(each))] for each in self._expected_usage()), key=len)
        if self._store.ledger_lines == 0 and not run.complete:
            spent = self._store_usage("charged")  # a resumed command may have stored more before it was killed
            found = [name for name in found if not _lower(usage.get(name), spent.get(name))]
        return [*found, *(["stopped"] if run.complete and run.usage.get("stopped") is not None else [])]

    def _expected_usage(self) -> list[Mapping[str, object]]:
        """Return the usage that follows from the ledger or the store, by each way to count unanswered requests."""
        run, lines = self._run, self._store.ledger_lines
        if run.manifest.origin is not None or ("replayed" in run.usage and not lines):
            return [_without(UNSPENT, NOT_RECOMPUTED[USAGE])]
        if not lines:
            return [self._store_usage("charged")]
        balance = Ledger.read(run.path / LEDGER, lines=lines, first=lines).balance
        cached = self._store.spent().cached
        if not run.complete:  # a resumed command may have taken more from the cache before it was killed
            cached = min(cached, int(run.usage.get("cached") or 0))
        return [{**spent_record(balance, how), "cached": cached} for how in get_args(Unanswered)]

    def _store_usage(self, how: Unanswered) -> Mapping[str, object]:
        return {**spent_record(Balance(self._store.charges()), how), "cached": self._store.spent().cached}

    def _all(self) -> Iterator[object]:
        for key in self._store.keys():  # noqa: SIM118  a store is not a dict
            yield self._store.asked(key)


def _seal(path: Path) -> None:
    """Seal a run that recomputes."""
    with RunLock(path):
        recover(path)
        run, store = unchecked_run(path), Store.open(path / STORE)
        try:
            publish(path, {}, usage=run.usage, store=store)
        finally:
            store.close()
