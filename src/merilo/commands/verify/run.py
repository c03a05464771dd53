"""Checks that a run is as merilo wrote it: compares it with its seal, and recomputes its numbers from its store.

The seal finds every accidental change. Recomputing also finds a change whose author computed the digests again:
outcomes must follow from the stored answers, and the summary from the outcomes. The manifest is compared with its copy
in the store.
"""

from __future__ import annotations

import json
from contextlib import closing, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.verify.replay import differing, recompute
from merilo.errors import RunError, UsageError
from merilo.judging.json_types import compact
from merilo.results.records import first_of
from merilo.runs.directory import local_run
from merilo.runs.files import (
    MANIFEST,
    OUTCOMES,
    PART,
    SEAL,
    SUMMARY,
    RunLock,
    no_run,
    read_json_bytes,
)
from merilo.runs.outcomes import outcome_lines
from merilo.runs.run import Run, open_store, unchecked_run
from merilo.runs.seal import inspect_seal, recover
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

    from merilo.commands.verify.replay import Difference

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
    if broken := inspect_seal(path).broken:
        return Verification(run=path, state=State.BROKEN, broken=tuple(broken.values()))
    run = unchecked_run(path)
    found = Verification(run=path, state=State.VERIFIED)
    with closing(open_store(run)) as store:
        store.check()
        found.samples = store.sample_count()
        found.answers = sum(store.asked(key) is not None for key in store.keys())  # noqa: SIM118  a store is not a dict
        copy = json.loads(store.remark(MANIFEST) or "null")
    if names := [*differing(_json(run, MANIFEST), copy)]:
        found.other.append(f"{path / MANIFEST} differs from its copy in the store: {first_of(names, _NAMED)}.")
    try:
        _recompute(found, run)
    except UsageError as error:
        found.state = State.DIFFERENT if found.other else State.CANNOT_TELL
        found.notes.append(str(error))
    return found


def _recompute(found: Verification, run: Run) -> None:
    """Compare the run with what follows from its answers, and set the state. Raises UsageError if that is unknown."""
    if run.manifest.origin is not None:
        raise UsageError(f"The scores come from {run.manifest.origin} and cannot be recomputed.")
    lines: list[str] = []
    now = recompute(run, lambda _: lines.append(""))
    found.recomputed, found.different, found.differences = len(lines), now.different, now.differences
    found.means = now.means
    found.outcomes = sum(1 for _ in outcome_lines(run.file(OUTCOMES)))
    was, here = ({**each, "metrics": []} for each in (_json(run, SUMMARY), json.loads(compact(now.summary))))
    if names := [*differing(was, here)]:
        found.other.append(f"{run.path / SUMMARY} does not follow from the outcomes: {first_of(names, _NAMED)}.")
    before, after = ({**each.metrics, **each.composites} for each in (run.manifest, now.manifest))
    changed = [text for text in before if after.get(text) != before[text]]
    found.notes += [f"{text} has version {before[text]} in the run and {after.get(text)} here." for text in changed]
    if run.manifest.merilo != version():
        found.notes.append(f"merilo {run.manifest.merilo} wrote the run; this is merilo {version()}.")
    wrong = found.different or found.means or found.other
    found.state = State.DIFFERENT if wrong else State.CANNOT_TELL if changed else State.VERIFIED


def _json(run: Run, name: str) -> Any:  # Any: JSON
    return json.loads(read_json_bytes(run.file(name)))
