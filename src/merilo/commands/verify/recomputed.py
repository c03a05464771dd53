"""Recomputes the values that gates decide on, so that a run whose author edited a value and its digests does not pass.

An outcome must follow from the stored answers, and an answer from its raw replies, where it has any. Of a large run
only a random sample is recomputed. A run whose answers and replies were made up as a whole cannot be found, because
nothing in it contradicts them.
"""

from __future__ import annotations

import json
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from secrets import SystemRandom
from typing import TYPE_CHECKING, Final

from merilo.commands.verify.answers import Recorded, Reread
from merilo.commands.verify.replay import outcome_of, selected, trail_of
from merilo.data.sanitize import command
from merilo.errors import RunError, UsageError
from merilo.judges.routed import recorded_parts
from merilo.judging.verdicts import Failure
from merilo.results.scores import RunScores, read_scores
from merilo.runs.files import MANIFEST, OUTCOMES, STORE, SUMMARY, read_json_bytes
from merilo.runs.run import Run, open_store, opened
from merilo.runs.run_metrics import scales_of
from merilo.runs.seal import stamp
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from merilo.judging.ask import Answer
    from merilo.metrics.base import Metric
    from merilo.runs.outcomes import Result
    from merilo.runs.store import Store
    from merilo.stats.column import Column

MAX_SAMPLES: Final = 1_000
"""Samples that are recomputed. If 0.5 % of the values are forged, a random 1,000 miss all of them in 0.7 % of draws."""
_SPOT: Final = 30
"""Samples that are recomputed before values are shown. If 10 % are forged, all are missed in 4 % of draws."""
_SLACK: Final = 1e-9
"""Tolerance for values, whose last bits may depend on the machine."""
_MAX_KNOWN: Final = 100
_WITHOUT_REPLIES: Final = frozenset({"embedded", "local", "scripted", "callable", "splitter"})
"""Fingerprints of judges whose answers have no raw replies."""
_known: dict[tuple[object, ...], list[str]] = {}


def recompute(scores: RunScores) -> list[str]:
    """Recompute the outcomes of the metrics in `scores`; return a sentence for what was not recomputed.

    The same files are recomputed once per process. Raises RunError for an outcome that does not follow from the stored
    answers.
    """
    stamps = (stamp(scores.run.file(name)) for name in (MANIFEST, OUTCOMES, STORE))
    key = (scores.run.path, (*scores.columns,), len(scores.ids), *stamps)
    if key not in _known:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[key] = _notes(scores)
    return _known[key]


def spot_checked(paths: Iterable[str]) -> list[Run]:
    """Return the runs at these paths, after recomputing a few samples of finished ones. Raises RunError as `recompute`.

    A run that cannot be recomputed here passes.
    """
    runs = [*map(opened, paths)]
    for run in runs:
        try:
            if run.complete:
                _notes(read_scores(run, cluster=""), _SPOT)
        except _Different:
            raise
        except (RunError, UsageError):  # the command that shows the run reports them
            continue
    return runs


def _notes(scores: RunScores, most: int = 0) -> list[str]:
    run = scores.run
    if run.manifest.origin is not None:
        return [f"The scores of {run.path} come from {run.manifest.origin} and were not recomputed."]
    current = run.manifest.merilo == version()
    with closing(open_store(run)) as store:
        _check_manifest(scores, store)
        try:
            return _recomputed(scores, store, most or MAX_SAMPLES, current=current)
        except UsageError as error:  # a metric that cannot be built here
            reason: Exception = error
        except RunError as error:
            if current or isinstance(error, _Different):
                raise
            reason = error
    return [f"The values of {run.path} were not recomputed. {reason}"]


class _Different(RunError):
    """A part of a run does not follow from the others."""


def _recomputed(scores: RunScores, store: Store, most: int, *, current: bool) -> list[str]:
    run, forged = scores.run, _Forged()
    recorded = Recorded(store, run.manifest, again=forged if current else None)
    selection = selected(run, store, recorded, None)
    here = {text: metric.version for text, metric in selection.metrics.items()}
    versions = {text: (run.manifest.metrics[text], here.get(text)) for text in scores.columns}
    wanted = {text: selection.metrics[text] for text, (stored, now) in versions.items() if stored == now}
    _check_scales(scores, wanted)
    chosen = frozenset(scores.ids if len(scores.ids) <= most else SystemRandom().sample(scores.ids, most))
    places, found = {each: place for place, each in enumerate(scores.ids)}, 0
    for sample_id, records in groupby(run.records_of(chosen), key=itemgetter("sample")):
        sample = store.sample(sample_id)
        if sample is None:
            raise _different(run.path, f"the store has no sample {sample_id!r}")
        outcomes = [*records]
        recorded.look_up([key for record in outcomes for key in trail_of(record)])
        for record in outcomes:
            text = record["metric"]
            trail = recorded.trail(trail_of(record))
            if text in wanted:
                found += 1
                now = outcome_of(run, wanted[text], text, sample, trail)
                if not _same(now, scores.columns[text], places[sample_id]):
                    raise _different(run.path, f"{text} of sample {sample_id!r} has another value")
    if found != len(chosen) * len(wanted):
        raise _different(run.path, "it has not one outcome of each metric for each sample")
    if forged.answers:
        raise _different(run.path, f"{forged.answers:,} stored answers are not what their replies say")
    notes = [
        f"The values of {text} were not recomputed: {run.path} has version {stored}, this merilo version {now}."
        for text, (stored, now) in versions.items()
        if text not in wanted
    ]
    if wanted and _has_replies(run) and (not current or forged.unread):
        which = f"{forged.unread:,}" if current else f"The (merilo {run.manifest.merilo})"
        notes.append(f"{which} stored answers of {run.path} were not compared with their raw replies.")
    if wanted and len(chosen) < len(scores.ids):
        notes.append(
            f"{len(chosen):,} of {len(scores.ids):,} samples of {run.path}, drawn at random, were recomputed from the "
            f"stored answers. To recompute all: {command('runs', 'verify', str(run.path))}"
        )
    return notes


def _check_manifest(scores: RunScores, store: Store) -> None:
    """Raise RunError if samples are missing or were added, or if the manifest is not that of the store."""
    run = scores.run
    known = {*store.sample_ids()}
    if not run.done == run.manifest.samples == len(known) or not set(scores.ids) <= known:
        raise _different(run.path, "its samples are not those of the store")
    for text, column in scores.columns.items():
        mean = float(column.values[column.scored].mean()) if column.scored.any() else None
        if mean is not None and abs(mean - (run.metrics[text].mean or 0.0)) > _SLACK * max(1.0, abs(mean)):
            raise _different(run.path, f"{SUMMARY} has another mean of {text}")
    copy = store.remark(MANIFEST)
    if copy is not None and json.loads(copy) != json.loads(read_json_bytes(run.file(MANIFEST))):
        raise _different(run.path, f"{MANIFEST} differs from its copy in the store")


def _has_replies(run: Run) -> bool:
    """Return True if a judge of the run may leave replies; those of this machine and scripts leave none."""
    parts = [part for judge in run.manifest.judges.values() for part in recorded_parts(judge)]
    return any(part.fingerprint.get("judge") not in _WITHOUT_REPLIES for part in parts)


def _check_scales(scores: RunScores, metrics: Mapping[str, Metric]) -> None:
    """Raise RunError if the manifest has another range or direction for a metric."""
    known = scores.run.manifest.scales
    for text, scale in scales_of(metrics).items():
        if text in known and known[text] != json.loads(json.dumps(scale)):
            raise _different(scores.run.path, f"{MANIFEST} has another scale for {text}")


class _Forged(Reread):
    """Counts verdicts whose raw replies give another verdict; a failure may have become readable since."""

    answers = 0

    def count(self, key: bytes, stored: Answer, now: Answer | None) -> None:
        """Count one question."""
        super().count(key, stored, now)
        verdicts = now is not None and not isinstance(now, Failure) and not isinstance(stored, Failure)
        self.answers += verdicts and now != stored


def _same(result: Result, column: Column, place: int) -> bool:
    """Return True if a result is what the gate decides on, whatever else a line of outcomes says."""
    now = result.record()
    if now["outcome"] != ("score" if column.scored[place] else "failed" if column.failed[place] else "undefined"):
        return False
    mine, theirs = now.get("value"), float(column.values[place])
    return mine is None or abs(mine - theirs) <= _SLACK * max(1.0, abs(mine))


def _different(path: Path, problem: str) -> _Different:
    return _Different(
        f"{path / OUTCOMES} does not follow from the stored answers: {problem}. To list all differences: "
        f"{command('runs', 'verify', str(path))}"
    )
