"""Merges the runs over all shards of a data set, or runs of one sample each, into one run."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from merilo.data.remote import refuse_url
from merilo.data.sample import Fingerprint, Sample
from merilo.engine.budget import Unanswered, spent_record
from merilo.engine.event_loop import rare_collections
from merilo.errors import RunError, UsageError
from merilo.judging.json_types import compact
from merilo.metrics.base import is_composite
from merilo.metrics.registry import parse_recorded
from merilo.results.records import first_of, grouped
from merilo.results.summary import Tallies
from merilo.runs.clusters import cluster_numbers
from merilo.runs.directory import built, free_directory, judges_difference
from merilo.runs.files import LEDGER, OUTCOMES, SEAL, STORE, part_of
from merilo.runs.ledger import Ledger
from merilo.runs.outcomes import outcome_from, outcome_lines
from merilo.runs.run import Run, open_store, opened, publish_new
from merilo.runs.run_metrics import recorded_scale
from merilo.runs.shards import Shard, merge_stores
from merilo.runs.store import Store
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from merilo.runs.manifest import Manifest

_NAMED: Final = 5
_NOT_OF_THE_WHOLE: Final = frozenset({"shard", "samples", "fingerprint"})
_OF_THE_SAMPLES: Final = _NOT_OF_THE_WHOLE | {"notes", "undefined", "skipped"}
_DECODE: Final = json.JSONDecoder().raw_decode  # a third of the time of json.loads, for lines that the seal covers


def merge_runs(runs: Sequence[Run | str | PathLike[str]], out: str | PathLike[str]) -> Run:
    """Merge the finished runs over all shards of a data set into a new run, and return it.

    It has the results that one process would have written, byte for byte. If `out` holds the same run, that run stays.
    Raises UsageError if a shard is missing, given twice or unfinished, or shards differ in data, judge, metrics or
    versions; RunError if a shard is damaged, shards have different answers to the same question, or the directory
    cannot be used.
    """
    refuse_url(out)
    parts, target = _parts_of(runs), Path(out)
    samples, fingerprint = _whole(parts[0].run.manifest)
    manifest = replace(parts[0].run.manifest, samples=samples, fingerprint=fingerprint, shard=None)
    with built(target) as path, rare_collections():
        _build(path, parts, manifest)
    return Run.open(target)


def join_runs(paths: Iterable[Path], name: str) -> list[Path]:
    """Join finished runs of one sample each into new runs, one per evaluation configuration; return their directories.

    Samples are in the order of their ids; of several runs of an id, the last written one counts. Runs with different
    answers to the same question stay apart. Raises RunError if a run cannot be read.
    """
    last: dict[str, tuple[Sample, Run]] = {}
    for path in sorted(paths, key=lambda path: (path / SEAL).stat().st_mtime_ns):
        run = Run.open(path)
        for each in run.samples:
            last[each.sample.id] = each.sample, run
    # The manifest without what depends on the samples is the configuration.
    named = [(name, run.manifest.to_fields()) for name, (_, run) in sorted(last.items())]
    keys = [compact([item for item in found.items() if item[0] not in _OF_THE_SAMPLES]) for _, found in named]
    waiting = [*grouped((key, last[each]) for key, (each, _) in zip(keys, named, strict=True)).values()]
    found: list[Path] = []
    while waiting:
        group, target = waiting.pop(0), free_directory(name)
        try:
            _join(target, group, name)
            found.append(target)
        except RunError:
            if len(group) == 1:
                raise
            waiting[:0] = group[: len(group) // 2], group[len(group) // 2 :]
    return found


def _join(target: Path, group: Sequence[tuple[Sample, Run]], name: str) -> None:
    fingerprint = Fingerprint()
    for sample, _ in group:
        fingerprint.add(sample)
    parts = [Part(run, Shard(at, len(group), alone=True)) for at, (_, run) in enumerate(group, start=1)]
    first, digest = parts[0].run.manifest, fingerprint.hexdigest()
    manifest = replace(first, samples=len(parts), fingerprint=digest, data=name, skipped=(), notes=(), undefined={})
    with built(target) as path:
        _build(path, parts, manifest)


def _build(path: Path, parts: Sequence[Part], manifest: Manifest) -> None:
    merge_stores(path / STORE, {part.shard: part.run.file(STORE) for part in parts}, manifest.samples)
    with closing(Store.open(path / STORE)) as store:
        summary = _merged_outcomes(path, parts, manifest, store)
        usage = _merged_usage(path, parts, store)
        for part in parts:  # raises if a shard was written in the meantime
            for name in (STORE, OUTCOMES):
                part.run.file(name)
        publish_new(path, manifest, summary, usage, store)


class Part(NamedTuple):
    """A finished run over one shard."""

    run: Run
    shard: Shard

    def __str__(self) -> str:
        return f"{self.run.path} (shard {self.shard})"


def _parts_of(runs: Sequence[Run | str | PathLike[str]]) -> list[Part]:
    """Return the shards in these runs, in the order of their numbers.

    Raises UsageError unless they are all the shards of one evaluation, each once and finished, and RunError for a
    damaged run.
    """
    if not runs:
        raise UsageError("No run is given. Name the directories of all shards.")
    parts = sorted((_part(opened(each)) for each in runs), key=lambda part: part.shard.index)
    for one, two in pairwise(parts):
        _check_same(one, two)
    total = parts[0].shard.of
    if len(parts) < total:
        found = {part.shard.index for part in parts}
        missing = [str(index) for index in range(1, total + 1) if index not in found]
        raise UsageError(f"{len(missing):,} of {total:,} shards are missing: {first_of(missing, _NAMED)}.")
    return parts


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
    """Raise UsageError that names the difference unless these are two shards of the same evaluation."""
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
    if first.shard == other.shard:
        raise UsageError(f"{first.run.path} and {other} are the same shard. Leave one out.")


def _whole(manifest: Manifest) -> tuple[int, str]:
    """Return the number and the fingerprint of the samples of all shards."""
    found = manifest.shard or {}
    return int(str(found["samples"])), str(found["fingerprint"])


def _merged_outcomes(path: Path, parts: Sequence[Part], manifest: Manifest, store: Store) -> dict[str, object]:
    """Write the part file of the outcomes, in the order of the data; return the summary. `store`: the merged one."""
    spans = {text: recorded_scale(manifest, text).span for text in manifest.metrics}
    found = {text: parse_recorded(text) for text in manifest.composites}
    composites = {text: (each, parts[0].run.metrics[text].parts) for text, each in found.items() if is_composite(each)}
    tallies = Tallies(spans, composites, manifest.fingerprint)
    clusters = cluster_numbers(store, manifest.cluster)
    lines = [outcome_lines(part.run.file(OUTCOMES), reopen=True) for part in parts]
    with part_of(path / OUTCOMES).open("wb") as out:
        for of_part in islice(cycle(lines), manifest.samples):
            own = [*islice(of_part, len(manifest.metrics))]
            records: list[Any] = [{**_DECODE(line.decode())[0], "evidence": []} for line in own]  # Any: JSON
            tallies.add({each["metric"]: outcome_from(each) for each in records}, next(clusters))
            out.writelines(own)
    aggregates = [each.to_fields() for each in tallies.aggregates()]
    return {"complete": True, "samples": manifest.samples, "metrics": aggregates}


def _merged_usage(path: Path, parts: Sequence[Part], store: Store) -> dict[str, Any]:  # Any: JSON
    """Write the ledger, if the shards have one; return the usage of all shards together."""
    usages = [part.run.usage for part in parts]
    with closing(Ledger(path / LEDGER)) as ledger:
        for part in parts:
            with closing(open_store(part.run)) as shard:
                if shard.ledger_lines:
                    ledger.add_ledger(part.run.path / LEDGER, lines=shard.ledger_lines)
    if ledger.lines:
        store.note_ledger(ledger.lines)
    cost = sum(float(each.get("cost_usd") or 0.0) for each in usages)
    # how unanswered requests count is an option of the shards, which only their costs show
    ways = [spent_record(ledger.balance, how) for how in get_args(Unanswered)]
    spent = min(ways, key=lambda way: abs(float(str(way["cost_usd"] or 0.0)) - cost))
    adaptations: dict[str, Any] = {}  # Any: JSON
    for each in usages:
        adaptations |= each.get("adaptations") or {}
    return {
        **spent,
        "cached": store.answer_count(cached=True),
        "seconds": round(sum(float(each.get("seconds") or 0.0) for each in usages), 3),
        "adaptations": adaptations,
        "stopped": None,
        "raise_to": None,
    }
