"""The outcomes, aggregates and usage of a merged run."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, get_args

from merilo.engine.budget import Unanswered, spent_record
from merilo.errors import MeriloError, RunError, UsageError
from merilo.metrics.base import is_composite
from merilo.metrics.registry import parse_recorded
from merilo.results.summary import Tallies
from merilo.runs.clusters import cluster_numbers
from merilo.runs.files import LEDGER, OUTCOMES
from merilo.runs.ledger import Balance, Charges, Ledger, opening_of
from merilo.runs.outcome_lines import outcome_lines
from merilo.runs.outcomes import outcome_from
from merilo.runs.publish import part_of
from merilo.runs.run import open_store
from merilo.runs.scales import recorded_scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from merilo.commands.merge.fitting import Part
    from merilo.metrics.base import Composite, Outcome
    from merilo.runs.manifest import Manifest
    from merilo.runs.outcomes import OutcomeRecord
    from merilo.runs.store import Store

_DECODE: Final = json.JSONDecoder().raw_decode  # a third of the time of json.loads, for lines that the seal covers


def merge_outcomes(path: Path, parts: Sequence[Part], manifest: Manifest, store: Store) -> dict[str, object]:
    """Write the part file of the outcomes, in the order of the data; return the summary. `store`: the merged one."""
    spans = {text: recorded_scale(manifest, text).span for text in manifest.metrics}
    tallies = Tallies(spans, _composites(parts[0], manifest), manifest.fingerprint)
    clusters = cluster_numbers(store, manifest.cluster)
    lines = [outcome_lines(part.run.file(OUTCOMES), reopen=True) for part in parts]
    metrics, done = [*manifest.metrics], 0
    with part_of(path / OUTCOMES).open("wb") as out:
        for done, sample in enumerate(store.sample_ids(), start=1):
            place = (done - 1) % len(parts)
            own = [*islice(lines[place], len(metrics))]
            tallies.add(_outcomes(own, sample, metrics, parts[place]), next(clusters))
            out.writelines(own)
    for part, rest in zip(parts, lines, strict=True):
        if next(rest, None) is not None:
            raise _unfitting(part)
    aggregates = [each.to_fields() for each in tallies.aggregates()]
    return {"complete": done == manifest.samples, "samples": done, "metrics": aggregates}


def _composites(part: Part, manifest: Manifest) -> dict[str, tuple[Composite, tuple[str, ...]]]:
    found: dict[str, tuple[Composite, tuple[str, ...]]] = {}
    for text, version in manifest.composites.items():
        try:
            composite = parse_recorded(text, version).definition
        except MeriloError as error:
            raise UsageError(f"{text} cannot be built here, so its value for all data is unknown. {error}") from error
        if not is_composite(composite) or composite.version != version:
            raise UsageError(f"{text} has version {version} in the shards and {composite.version} here.")
        found[text] = (composite, part.run.metrics[text].parts)
    return found


def _outcomes(lines: Sequence[bytes], sample: str, metrics: Sequence[str], part: Part) -> Mapping[str, Outcome]:
    """Return the outcomes of a sample by metric, without their evidence. Raises RunError for other outcomes."""
    try:
        records: list[OutcomeRecord] = [_DECODE(line.decode())[0] for line in lines]
        for each in records:
            each["evidence"] = []
        found = {each["metric"]: outcome_from(each) for each in records}
        if [*found] == metrics and all(each["sample"] == sample for each in records):
            return found
    except (AttributeError, KeyError, TypeError, ValueError):
        pass  # reported below, like outcomes of another sample
    raise _unfitting(part)


def _unfitting(part: Part) -> RunError:
    return RunError(f"{part} is damaged: its outcomes do not match its samples. Repeat the command that wrote it.")


def merge_usage(path: Path, parts: Sequence[Part], store: Store) -> dict[str, Any]:  # Any: JSON
    """Write the ledger, if the shards have one; return the usage of all shards together."""
    usages = [part.run.usage for part in parts]
    balance = _merge_ledgers(path, parts, store) or Balance(store.charges())
    cost = sum(float(each.get("cost_usd") or 0.0) for each in usages)
    # how unanswered requests count is an option of the shards, which only their costs show
    ways = [spent_record(balance, how) for how in get_args(Unanswered)]
    spent = min(ways, key=lambda way: abs(float(str(way["cost_usd"] or 0.0)) - cost))
    adaptations: dict[str, Any] = {}
    for each in usages:
        adaptations |= each.get("adaptations") or {}
    return {
        **spent,
        "cached": store.spent().cached,
        "seconds": round(sum(float(each.get("seconds") or 0.0) for each in usages), 3),
        "adaptations": adaptations,
        "stopped": None,
        "raise_to": None,
    }


def _merge_ledgers(path: Path, parts: Sequence[Part], store: Store) -> Balance | None:
    """Write the ledger of all requests and return its balance; None if no shard has a ledger."""
    opening, known = Charges(), dict[int, int]()  # index of a shard with a ledger: its number of lines
    for part in parts:
        shard = open_store(part.run)
        try:
            if shard.ledger_lines:
                known[part.shard.index] = shard.ledger_lines
                opening += opening_of(part.run.path / LEDGER)
            else:
                opening += shard.charges()
        finally:
            shard.close()
    if not known:
        return None
    ledger = Ledger(path / LEDGER, opening)
    try:
        for part in parts:
            if part.shard.index in known:
                ledger.add_ledger(part.run.path / LEDGER, lines=known[part.shard.index])
    finally:
        ledger.close()
    store.note_ledger(ledger.lines)
    return ledger.balance
