"""Checks that runs are all the shards of one evaluation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from merilo.errors import UsageError
from merilo.judging.json_types import compact
from merilo.runs.manifest_diff import judges_difference
from merilo.runs.run import opened
from merilo.runs.shards import Shard
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from merilo.runs.manifest import Manifest
    from merilo.runs.run import Run

_NAMED = 5
_NOT_OF_THE_WHOLE = frozenset({"shard", "samples", "fingerprint"})


@dataclass(frozen=True, slots=True)
class Part:
    """A finished run over one shard."""

    run: Run
    shard: Shard

    def __str__(self) -> str:
        return f"{self.run.path} (shard {self.shard})"


def parts_of(runs: Sequence[Run | str | PathLike[str]]) -> list[Part]:
    """Return the shards in these runs, in the order of their numbers.

    Raises UsageError unless they are all the shards of one evaluation, each once and finished, and RunError for a
    damaged run.
    """
    if not runs:
        raise UsageError("No run is given. Name the directories of all shards.")
    parts = sorted((_part(opened(each)) for each in runs), key=lambda part: part.shard.index)
    for part in parts[1:]:
        _check_same(parts[0], part)
    _check_all(parts)
    return parts


def whole_manifest(parts: Sequence[Part]) -> Manifest:
    """Return the manifest of the run over all data: that of a shard, with the samples of all."""
    manifest = parts[0].run.manifest
    whole = manifest.shard or {}
    samples, fingerprint = int(str(whole["samples"])), str(whole["fingerprint"])
    return replace(manifest, samples=samples, fingerprint=fingerprint, shard=None)


def _part(run: Run) -> Part:
    if run.manifest.shard is None:
        raise UsageError(f"{run.path} is not a shard. Evaluate each shard with merilo run --shard I/N.")
    part = Part(run, Shard.recorded(run.manifest.shard))
    if "replayed" in run.usage:
        raise UsageError(f"{part} was recomputed. Merge the evaluated shards, then recompute the merged run.")
    if not run.complete:
        raise UsageError(
            f"{part} is not finished: {run.done:,} of {run.manifest.samples:,} samples are done. Repeat its command "
            "to resume it."
        )
    if run.manifest.merilo != version():
        raise UsageError(
            f"{part} was evaluated with merilo {run.manifest.merilo}, and this is {version()}. Merge with that version."
        )
    return part


def _check_same(first: Part, other: Part) -> None:
    """Raise UsageError that names the difference unless both are shards of the same evaluation."""
    one, two = first.run.manifest, other.run.manifest
    if first.shard.of != other.shard.of:
        raise UsageError(f"{first} and {other} are not of the same number of shards.")
    if _whole(one) != _whole(two):
        raise UsageError(f"{first} and {other} are of different data, so they cannot be merged.")
    mine, theirs = one.to_fields(), two.to_fields()
    names = [
        name
        for name in dict.fromkeys([*mine, *theirs])
        if name not in _NOT_OF_THE_WHOLE and compact(mine.get(name)) != compact(theirs.get(name))
    ]
    if names:
        judges = judges_difference(one.judges, two.judges)
        detail = f" ({judges})" if judges else ""
        raise UsageError(f"{first} and {other} differ in {', '.join(names)}{detail}, so they cannot be merged.")


def _whole(manifest: Manifest) -> tuple[object, object]:
    found = manifest.shard or {}
    return found["samples"], found["fingerprint"]


def _check_all(parts: Sequence[Part]) -> None:
    """Raise UsageError if a shard is missing, or there twice."""
    by_index: dict[int, Part] = {}
    for part in parts:
        if part.shard.index in by_index:
            raise UsageError(f"{by_index[part.shard.index].run.path} and {part} are the same shard. Leave one out.")
        by_index[part.shard.index] = part
    total = parts[0].shard.of
    if len(by_index) < total:
        missing = [str(index) for index in range(1, total + 1) if index not in by_index]
        more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
        raise UsageError(f"{len(missing):,} of {total:,} shards are missing: {', '.join(missing[:_NAMED])}{more}.")
