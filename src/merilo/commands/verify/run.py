"""Checks that a run is as merilo wrote it: compares it with its seal, and recomputes its numbers from its store.

The seal finds every accidental change. Recomputing also finds a change whose author computed the digests again:
outcomes must follow from the stored answers, summary and manifest from the outcomes, and usage from the ledger. The
rest of the manifest, such as the names of judges, is compared with the copy in the store. `NOT_RECOMPUTED` lists the
fields that may differ.
"""

from __future__ import annotations

import json
from contextlib import closing, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, get_args

from merilo.commands.verify.replay import differing, other_means, recompute
from merilo.data.sample import Fingerprint
from merilo.engine.budget import Unanswered, spent_record
from merilo.errors import RunError, UsageError
from merilo.judges.routed import recorded_parts
from merilo.judging.json_types import compact
from merilo.results.records import first_of
from merilo.runs.directory import balance_in, local_run
from merilo.runs.files import (
    LEDGER,
    MANIFEST,
    OUTCOMES,
    PART,
    SEAL,
    STORE,
    SUMMARY,
    USAGE,
    RunLock,
    no_run,
    read_json_bytes,
)
from merilo.runs.ledger import Balance, Ledger
from merilo.runs.outcomes import outcome_lines
from merilo.runs.run import UNSPENT, Run, open_store, unchecked_run
from merilo.runs.seal import inspect_seal, recover
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from merilo.commands.verify.replay import Difference
    from merilo.runs.seal import Inspected
    from merilo.runs.store import Store

JSON = dict[str, Any]  # Any: JSON

NOT_RECOMPUTED: Final[Mapping[str, frozenset[str]]] = {
    MANIFEST: frozenset({"merilo"}),
    USAGE: frozenset({"seconds", "adaptations", "stopped", "raise_to", "replayed", "seal"}),
}
"""Fields that may differ: the version that recomputes, times, and what a server or a limit did."""
_NAMED: Final = 5
"""Differing fields that a sentence names, at most."""


class State(StrEnum):
    """The result of a verification."""

    VERIFIED = "verified"
    DIFFERENT = "recomputes to other numbers"
    BROKEN = "broken"
    CANNOT_TELL = "cannot tell"


@dataclass(kw_only=True, slots=True)
class Verification:
    """The findings about a run, completed while it is read."""

    run: Path
    state: State
    broken: Sequence[str] = ()
    """A sentence for each file that does not fit the seal."""
    samples: int = 0
    answers: int = 0
    """Number of stored answers that were read."""
    outcomes: int = 0
    """Number of outcomes in the run."""
    recomputed: int = 0
    """Number of recomputed outcomes."""
    different: int = 0
    differences: Sequence[Difference] = ()
    """The first 100 recomputed outcomes that differ."""
    means: Sequence[str] = ()
    """Metrics whose row in the summary differs from the recomputed one."""
    other: list[str] = field(default_factory=list[str])
    """A sentence for each other part of the run that differs."""
    notes: list[str] = field(default_factory=list[str])
    """Parts that could not be checked, and explanations of differences; a sentence each."""


def verify_run(source: str | PathLike[str]) -> Verification:
    """Verify a run.

    Raises RunError if there is no run, or it cannot be read.
    """
    path = local_run(source)
    if not path.is_dir() or not ((path / MANIFEST).exists() or (path / SEAL).exists()):
        raise no_run(path, MANIFEST)
    if any(path.glob(f"*{PART}")):
        with suppress(RunError), RunLock(path):  # unless a running command is writing them
            recover(path)
    inspected = inspect_seal(path)
    if inspected.broken:
        return Verification(run=path, state=State.BROKEN, broken=tuple(inspected.broken.values()))
    return _recomputed(unchecked_run(path), inspected)


def _recomputed(run: Run, inspected: Inspected) -> Verification:
    found = Verification(run=run.path, state=State.VERIFIED)
    with closing(open_store(run)) as store:
        store.check()
        _read_samples(found, run, store)
        _check_facts(found, run, store, inspected)
    if run.manifest.origin is not None:
        return _unknown(found, f"The scores come from {run.manifest.origin} and cannot be recomputed.")
    lines: list[None] = []
    try:
        now = recompute(run, lambda _: lines.append(None))
    except UsageError as error:
        return _unknown(found, str(error))
    found.recomputed, found.different, found.differences = len(lines), now.different, now.differences
    _conclude(found, run, now.summary, now.manifest.to_fields())
    return found


def _unknown(found: Verification, note: str) -> Verification:
    found.state = State.DIFFERENT if found.other else State.CANNOT_TELL
    found.notes.append(note)
    return found


def _read_samples(found: Verification, run: Run, store: Store) -> None:
    """Read every sample, and every answer with its question, rubric and replies. Raises RunError for other samples."""
    manifest, fingerprint = run.manifest, Fingerprint()
    for sample in store.samples():
        fingerprint.add(sample)
        found.samples += 1
    if found.samples != manifest.samples:
        numbers = f"its store has {found.samples:,} samples, its manifest {manifest.samples:,}"
        raise RunError(f"{run.path} is damaged: {numbers}.")
    if fingerprint.hexdigest() != manifest.fingerprint:
        raise RunError(f"{run.path} is damaged: its samples do not match its manifest.")
    found.answers = sum(store.asked(key) is not None for key in store.keys())  # noqa: SIM118  a store is not a dict


def _check_facts(found: Verification, run: Run, store: Store, inspected: Inspected) -> None:
    """Compare the manifest, the usage and imported scores with what the store and the ledger hold of them."""
    copy = store.remark(MANIFEST)
    if copy is None:
        found.other.append(f"{run.path / STORE} lacks its copy of the manifest.")
    elif names := [*differing(_json(run, MANIFEST), json.loads(copy))]:
        found.other.append(f"{run.path / MANIFEST} differs from its copy in the store: {first_of(names, _NAMED)}.")
    found.other += _unknown_judges(run, store)
    balance_in(run.path)  # raises for a damaged ledger
    if len(inspected.recorded) > 1 or not run.complete:
        found.notes.append("A command was interrupted, so the usage was not checked.")
    elif names := _usage_differences(run, store):
        found.other.append(f"{run.path / USAGE} does not follow from the recorded requests: {first_of(names, _NAMED)}.")


def _unknown_judges(run: Run, store: Store) -> list[str]:
    """Return a sentence if the store holds answers of a judge that the manifest does not name."""
    known = {part.name for judge in run.manifest.judges.values() for part in recorded_parts(judge)}
    for record in run.records():
        for key in record.get("trail", ()):
            asked = store.asked(bytes.fromhex(key))
            if asked is not None and asked.judge and asked.judge not in known:
                return [f"{run.path / MANIFEST} does not name {asked.judge}, which gave answers."]
    return []


def _usage_differences(run: Run, store: Store) -> list[str]:
    """Return the fields of the usage of a complete run that do not follow from the ledger and the store."""
    if not (run.path / USAGE).exists():
        return []
    usage, lines = _rounded(_without(run.usage, NOT_RECOMPUTED[USAGE])), store.ledger_lines
    if run.manifest.origin is not None or ("replayed" in run.usage and not lines):
        expected = [_without(UNSPENT, NOT_RECOMPUTED[USAGE])]
    else:  # how unanswered requests count is an option of the run, which only its usage shows
        ledger = Ledger.read(run.path / LEDGER, lines=lines, first=lines) if lines else None
        balance, cached = Balance() if ledger is None else ledger.balance, store.cached_count()
        expected = [{**spent_record(balance, how), "cached": cached} for how in get_args(Unanswered)]
    found = min(([*differing(usage, _rounded(each))] for each in expected), key=len)
    return [*found, *(["stopped"] if run.usage.get("stopped") is not None else [])]


def _conclude(found: Verification, run: Run, summary: JSON, manifest: JSON) -> None:
    """Compare the summary and the manifest with the recomputed ones, and set the state."""
    found.means, stored, now = other_means(run, summary), _json(run, SUMMARY), json.loads(compact(summary))
    found.outcomes = sum(1 for _ in outcome_lines(run.file(OUTCOMES)))
    if found.outcomes != (expected := run.done * len(run.manifest.metrics)):
        found.other.append(f"The run has {found.outcomes:,} outcomes, but should have {expected:,}.")
    rest = [*differing(_without(stored, {"metrics"}), _without(now, {"metrics"}))]
    if [row["metric"] for row in stored["metrics"]] != [row["metric"] for row in now["metrics"]]:
        rest.append("the order of its metrics")
    if rest:
        found.other.append(f"{run.path / SUMMARY} does not follow from the outcomes: {first_of(rest, _NAMED)}.")
    was, here = _json(run, MANIFEST), json.loads(compact(manifest))
    ignored = {*NOT_RECOMPUTED[MANIFEST], "metrics", "composites"}
    if names := [*differing(_without(was, ignored), _without(here, ignored))]:
        found.other.append(f"{run.path / MANIFEST} does not agree with the metrics: {first_of(names, _NAMED)}.")
    before, after = ({**each["metrics"], **each.get("composites", {})} for each in (was, here))
    changed = [text for text in before if after.get(text) != before[text]]
    found.notes += [f"{text} has version {before[text]} in the run and {after.get(text)} here." for text in changed]
    if run.manifest.merilo != version():
        found.notes.append(f"merilo {run.manifest.merilo} wrote the run; this is merilo {version()}.")
    wrong = found.different or found.means or found.other
    found.state = State.DIFFERENT if wrong else State.CANNOT_TELL if changed else State.VERIFIED


def _json(run: Run, name: str) -> JSON:
    found: JSON = json.loads(read_json_bytes(run.file(name)))
    return found


def _without(fields: Mapping[str, Any], names: Collection[str]) -> JSON:
    return {name: value for name, value in fields.items() if name not in names}


def _rounded(usage: Mapping[str, object]) -> JSON:
    """Return the usage with amounts of money to 12 places: the last bits depend on the order of adding up."""
    return {name: round(value, 12) if isinstance(value, float) else value for name, value in usage.items()}
