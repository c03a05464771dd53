"""Recomputes the scores of a run from its recorded answers, without asking a judge.

Each metric's plan is run again, and its questions are answered from the recorded trail. A verification also compares
the run with its seal, and the manifest with its copy in the store. The seal finds every accidental change. Recomputing
finds a change whose author computed the digests again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import time
import weakref
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.commands.evaluate.preparation import Chosen, Selection, definitions_of, metrics_of, missing_fields
from merilo.commands.verify.answers import Recorded, Reread, question_text
from merilo.data.remote import refuse_url
from merilo.engine.plan_run import PlanRun
from merilo.engine.repeated import draws_of, repeated, reworded, unmeasured, wordings_of
from merilo.errors import RunError, UsageError
from merilo.judges.base import decided_kinds
from merilo.judging.json_types import compact
from merilo.metrics.base import Definition, Metric, is_composite
from merilo.metrics.registry import parse_recorded
from merilo.metrics.text import metric_text
from merilo.results.records import first_of
from merilo.results.summary import Tallies, spans_of
from merilo.runs.clusters import cluster_numbers
from merilo.runs.directory import built, local_run
from merilo.runs.files import (
    MANIFEST,
    OUTCOMES,
    PART,
    SEAL,
    STORE,
    SUMMARY,
    RunLock,
    no_run,
    part_of,
    read_json_bytes,
)
from merilo.runs.outcomes import OutcomeRecord, Result, outcome_lines
from merilo.runs.run import UNSPENT, Run, open_store, publish_new, unchecked_run
from merilo.runs.run_metrics import recorded_weak_kinds, scales_of, weak_metrics
from merilo.runs.seal import inspect_seal, recover
from merilo.runs.store import Store
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.commands.verify.answers import Take
    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.runs.manifest import Manifest


_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """An outcome that is not bit-equal to the recorded one."""

    sample: str
    metric: str
    recorded: OutcomeRecord
    now: OutcomeRecord

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that differ: `value`, `outcome`, `evidence`, `trail`, ..."""
        old, new = cast("dict[str, object]", self.recorded), cast("dict[str, object]", self.now)
        return tuple(name for name in old | new if _text(old.get(name)) != _text(new.get(name)))


@dataclass(kw_only=True, slots=True)
class Recomputation:
    """The results that follow from the stored answers of a run."""

    manifest: Manifest
    summary: dict[str, object] = field(default_factory=dict[str, object])
    equal: int = 0
    """Outcomes that are bit-equal to the recorded ones."""
    different: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])
    """The first 100 outcomes that differ."""
    means: tuple[str, ...] = ()
    """Metrics and composites whose aggregate differs from the recorded one."""

    def compared(self, result: Result, recorded: tuple[bytes, OutcomeRecord] | None) -> str:
        """Return the line of an outcome, after comparing it with the recorded line."""
        line = result.line().encode("utf-8", "replace")
        if recorded is not None:
            same = line == recorded[0] or line.decode().rstrip("\n") == _text(recorded[1])
            self.equal += same
            self.different += not same
            if not same and len(self.differences) < _SHOWN:
                now = cast("OutcomeRecord", json.loads(line))  # what is written
                self.differences.append(Difference(result.sample, result.metric, recorded[1], now))
        return line.decode()


@dataclass(kw_only=True)
class Replay(Recomputation):
    """The result of a replay."""

    run: Run
    """The recomputed run. Its files are deleted with this object, unless a directory was named for it."""
    source: Path
    """The run that was recomputed."""
    new: tuple[str, ...]
    """Metrics that the run did not have."""
    versions: Mapping[str, tuple[int, int]]
    """Metrics whose version differs → the recorded and the current version."""
    reread: Reread | None = None
    """The result of parsing the raw replies again; None if not requested."""

    @property
    def same(self) -> bool:
        """True if every recorded outcome and aggregate was recomputed bit-equal."""
        return not self.different and not self.means


def replay_run(
    source: str | PathLike[str],
    *,
    metrics: Sequence[str | Definition] | None = None,
    out: str | PathLike[str] | None = None,
    reread: bool = False,
) -> Replay:
    """Recompute the scores of a run from its stored answers, without asking a judge.

    `metrics`: as in `evaluate`; one that is not in the run uses its answers to equal questions of the same judge. None:
    those of the run. `out`: a new directory for the recomputed run; None: a temporary one, deleted with the result.
    `reread`: parse the raw replies of language models again. Raises RunError if the run cannot be read or lacks an
    answer, UsageError for a metric that cannot be built.
    """
    asked = [metrics] if isinstance(metrics, str) else metrics
    if asked is not None and not asked:
        raise UsageError("metrics is empty; leave it out to use those of the run.")
    refuse_url(out)
    run, began, again = Run.open(source), time.monotonic(), Reread() if reread else None
    if run.manifest.origin is not None:
        raise UsageError(f"Cannot recompute {run.path}: its scores were imported from {run.manifest.origin}.")
    with _temporary() if out is None else built(Path(out)) as into:
        try:
            with part_of(into / OUTCOMES).open("w", encoding="utf-8", errors="replace", newline="\n") as lines:
                found = recompute(run, lines.write, asked, reread=again)
            with closing(open_store(run)) as store:
                store.copy(into / STORE)
            usage = {**UNSPENT, "seconds": round(time.monotonic() - began, 3), "replayed": str(run.path)}
            with closing(Store.open(into / STORE)) as own:
                publish_new(into, found.manifest, found.summary, usage, own)
        except (sqlite3.Error, OSError) as error:
            raise RunError(f"Cannot recompute {run.path} ({error}).") from error
    now = Run.open(into if out is None else out)
    if out is None:
        weakref.finalize(now, shutil.rmtree, into, ignore_errors=True)
    versions = {**run.manifest.metrics, **run.manifest.composites}
    here = {**found.manifest.metrics, **found.manifest.composites}
    return Replay(
        **{each.name: getattr(found, each.name) for each in fields(found)},
        run=now,
        source=run.path,
        new=tuple(text for text in here if text not in versions),
        versions={text: (versions[text], here[text]) for text in here if versions.get(text, here[text]) != here[text]},
        reread=again,
    )


@contextmanager
def _temporary() -> Generator[Path]:
    """Yield a temporary directory, which is removed if the block raises."""
    path = Path(tempfile.mkdtemp(prefix="merilo-verify-"))
    try:
        yield path
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def recompute(
    run: Run,
    write: Callable[[str], object],
    asked: Sequence[str | Definition] | None = None,
    *,
    reread: Reread | None = None,
) -> Recomputation:
    """Recompute a run; `write` is called with the line of each outcome.

    `asked`: the metrics; None for those of the run. Raises what `replay_run` raises.
    """
    with closing(open_store(run)) as store:
        recorded = Recorded(store, run.manifest, again=reread)
        chosen = selected(run, store, recorded, asked)
        manifest = _manifest(run.manifest, chosen, everything=asked is None)
        found, done = Recomputation(manifest=manifest), 0
        tallies = Tallies(spans_of(chosen.metrics), chosen.composites, manifest.fingerprint)
        clusters = cluster_numbers(store, manifest.cluster)
        for sample, outcomes in _samples(run, store):
            trails = {text: trail_of(record) for text, (_, record) in outcomes.items()}
            recorded.look_up([key for keys in trails.values() for key in keys])
            results = [
                outcome_of(run, metric, text, sample, recorded.trail(trails.get(text, [])))
                for text, metric in chosen.metrics.items()
            ]
            tallies.add({result.metric: result.outcome for result in results}, next(clusters))
            for result in results:
                write(found.compared(result, outcomes.get(result.metric)))
            done += 1
    metrics = [each.to_fields() for each in tallies.aggregates()]
    found.summary = {"complete": done == manifest.samples, "samples": done, "metrics": metrics}
    found.means = _other_means(run, found.summary)
    return found


def selected(run: Run, store: Store, recorded: Recorded, asked: Sequence[str | Definition] | None) -> Selection:
    """Return the metrics to recompute; `asked`: None for those of the run. Raises UsageError if one is unknown."""
    stored = run.manifest
    in_some: frozenset[str] | None = None
    if asked is None:
        given: list[Definition] = []
        for text in (*stored.metrics, *stored.composites):
            try:
                given.append(parse_recorded(text))
            except UsageError as error:
                why = f"which cannot be built here ({str(error).rstrip('.')}). Choose others (--metrics)."
                raise UsageError(f"{run.path} has the metric {text}, {why}") from error
    else:
        given = definitions_of(asked)
        in_some = frozenset[str]().union(*(sample.present for sample in store.samples()))
    metrics: dict[str, Metric] = {}
    composites: dict[str, Chosen] = {}
    for each in given:
        parts = metrics_of(each, recorded.names)
        for text, metric in parts.items():
            if in_some is not None and (missing := missing_fields(metric, in_some)) is not None:
                raise UsageError(f"{text} cannot be computed: {missing}.")
            metrics.setdefault(text, metric)
        if is_composite(each):
            composites[metric_text(each)] = Chosen(each, tuple(parts))
    # The wordings and draws are those of the stored run, and what it could not measure stays undefined.
    own = {text: metric for text, metric in metrics.items() if text in stored.wordings}
    asking = unmeasured(repeated({**metrics, **(reworded(own) if own else {})}, stored.draws), stored.undefined)
    return Selection(asking, {}, composites)


def outcome_of(run: Run, metric: Metric, text: str, sample: Sample, take: Take) -> Result:
    """Return the outcome of a plan with the recorded answers. Raises RunError for a question without an answer."""
    plan_run = PlanRun(metric, text, sample).start()
    while plan_run.step is not None:
        try:
            questions = [question for group in plan_run.step for question in group]
        except Exception as error:  # noqa: BLE001  a plan yielded something that is not a step
            plan_run.broke(error)
            break
        answers: list[tuple[bytes, Answer]] = []
        for question in questions:
            found = take(question)
            if found is None:
                plan_run.close()
                raise RunError(
                    f"{run.path} has no answer to a question of {text} about sample {sample.id!r}: "
                    f"{question_text(question)}. Evaluate the data with this metric: merilo run DATA --metrics {text}"
                )
            answers.append(found)
        plan_run.send(answers)
    return plan_run.result()


def trail_of(record: OutcomeRecord) -> list[bytes]:
    """Return the keys of the questions of an outcome. Raises RunError for a damaged one."""
    try:
        return [bytes.fromhex(key) for key in record.get("trail", ())]
    except ValueError as error:
        raise RunError(f"The trail of an outcome is damaged ({error}). Make the run again.") from error


def _samples(run: Run, store: Store) -> Iterator[tuple[Sample, dict[str, tuple[bytes, OutcomeRecord]]]]:
    """Yield every sample that has outcomes, with their lines and records by metric, in the order of the data."""
    samples = store.samples()
    for sample_id, records in groupby(run.lines(), key=lambda each: each[1]["sample"]):
        sample = next(samples, None)
        if sample is None or sample.id != sample_id:
            raise RunError(f"{run.path} is damaged: its outcomes do not match its samples.")
        yield sample, {record["metric"]: (line, record) for line, record in records}


def _manifest(stored: Manifest, chosen: Selection, *, everything: bool) -> Manifest:
    return replace(
        stored,
        merilo=version(),
        metrics={text: each.version for text, each in chosen.metrics.items()},
        composites={text: each.composite.version for text, each in chosen.composites.items()},
        scales=scales_of(chosen.metrics),
        left_out=stored.left_out if everything else {},
        draws=draws_of(chosen.metrics),
        wordings=wordings_of(chosen.metrics),
        judges=_judges(stored, chosen),
    )


def _judges(stored: Manifest, chosen: Selection) -> Mapping[str, Mapping[str, object]]:
    """Return the judges, with the metrics that the stored run did not compute among the weak ones if they are."""
    kinds, known = recorded_weak_kinds(stored), weak_metrics(stored)
    found = {text for text, each in chosen.metrics.items() if any(kind.kind in kinds for kind in decided_kinds(each))}
    found |= {text for text, each in chosen.composites.items() if found.intersection(each.parts)}
    more = [text for text in (*chosen.metrics, *chosen.composites) if text in found - known]
    judge = stored.judges.get("judge")
    if not more or judge is None:
        return stored.judges
    return {**stored.judges, "judge": {**judge, "weak": [*sorted(known), *more]}}


def _other_means(run: Run, summary: Mapping[str, object]) -> tuple[str, ...]:
    """Return the metrics whose recomputed row of the summary differs from the stored one, if both have one."""
    path = run.file(SUMMARY)
    if not path.exists():  # stopped between writing outcomes and means
        return ()
    _ = run.metrics  # raises for a damaged summary
    texts = (read_json_bytes(path), compact(summary))
    stored, now = ({row["metric"]: row for row in json.loads(text)["metrics"]} for text in texts)
    return tuple(text for text, row in stored.items() if text in now and _differing(row, now[text]))


def _differing(stored: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Return the names of the fields that differ between two JSON objects."""
    return [name for name in {**stored, **now} if compact(stored.get(name)) != compact(now.get(name))]


def _text(value: object) -> str:
    """Return compact JSON as in the stored files, so that equal numbers give equal text."""
    return compact(value).encode("utf-8", "replace").decode()


# -- verification -----------------------------------------------------------------------------------------

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
        found.samples = sum(1 for _ in store.sample_ids())
        found.answers = store.answer_count()
        copy = json.loads(store.remark(MANIFEST) or "{}")
    if names := _differing(_json(run, MANIFEST), copy):
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
    was, here = ({**each, "metrics": None} for each in (_json(run, SUMMARY), json.loads(compact(now.summary))))
    if names := _differing(was, here):
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
