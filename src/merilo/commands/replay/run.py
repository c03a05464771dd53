"""Recomputes the scores of a run from its recorded answers, without asking a judge.

Each metric's plan is run again, and its questions are answered from the recorded trail.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import time
import weakref
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from merilo.commands.replay.metric_choice import Choosing
from merilo.commands.replay.recorded_answers import Recorded, Reread, question_text
from merilo.data.remote import refuse_url
from merilo.engine.installed.worded import worded, wordings_of
from merilo.engine.plan_run import PlanRun
from merilo.engine.repeated import draws_of, repeated, unmeasured
from merilo.errors import RunError, UsageError
from merilo.judges.measured_agreement import decided_kinds
from merilo.judging.json_types import compact
from merilo.results.early_stopping import stop_of
from merilo.results.summary import Tallies, spans_of
from merilo.runs.clusters import cluster_numbers
from merilo.runs.fetched import local_run
from merilo.runs.files import RUN_FILES, SEAL
from merilo.runs.lock import RunLock
from merilo.runs.publish import part_of
from merilo.runs.run import MANIFEST, OUTCOMES, STORE, SUMMARY, UNSPENT, Run, json_text, open_store, unchecked_run
from merilo.runs.scales import scales_of
from merilo.runs.seal import belongs, publish, recover
from merilo.runs.store import Store
from merilo.runs.weak import recorded_weak_kinds, weak_metrics
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.commands.replay.metric_choice import Selection
    from merilo.commands.replay.recorded_answers import Trail
    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.metrics.base import Definition, Metric
    from merilo.runs.manifest import Manifest
    from merilo.runs.outcomes import OutcomeRecord, Result

    Outcomes = dict[str, OutcomeRecord]

_SHOWN = 100


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


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The result of a replay."""

    run: Run
    """The recomputed run. Its files are deleted with this object, unless a directory was named for it."""
    source: Path
    """The run that was recomputed."""
    equal: int
    """Outcomes that are bit-equal to the recorded ones."""
    different: int
    differences: tuple[Difference, ...]
    """The first 100 outcomes that differ."""
    means: tuple[str, ...]
    """Metrics and composites whose aggregate differs from the recorded one."""
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
    path = local_run(source)
    asked = [metrics] if isinstance(metrics, str) else metrics
    if asked is not None and not asked:
        raise UsageError("metrics is empty; leave it out to use those of the run.")
    refuse_url(out)
    kept = None if out is None else Path(out)
    work = Path(tempfile.mkdtemp(prefix="merilo-replay-"))
    try:
        with ExitStack() as stack:
            if kept is not None:
                stack.enter_context(_claimed(kept))
            run = Run.open(path)
            _check_ours(run, path)
            into = work / "run" if kept is None else kept
            into.mkdir(exist_ok=True)
            return _replayed(Replaying(run, path, into, asked, Reread() if reread else None, kept is not None))
    except BaseException as error:
        shutil.rmtree(work, ignore_errors=True)
        if isinstance(error, sqlite3.Error | OSError):
            raise RunError(f"Cannot recompute {path} ({error}).") from error
        raise
    finally:
        if kept is not None:
            shutil.rmtree(work, ignore_errors=True)


def _replayed(work: Replaying) -> Replay:
    work.do()
    run = Run.open(work.into)
    if not work.kept:
        weakref.finalize(run, shutil.rmtree, work.into.parent, ignore_errors=True)
    stored = work.run.manifest
    versions = {**stored.metrics, **stored.composites}
    now = {**run.manifest.metrics, **run.manifest.composites}
    return Replay(
        run=run,
        source=work.source,
        equal=work.equal,
        different=work.different,
        differences=tuple(work.differences),
        means=_other_means(work.run, run),
        new=tuple(text for text in now if text not in versions),
        versions={text: (versions[text], now[text]) for text in now if versions.get(text, now[text]) != now[text]},
        reread=work.reread,
    )


@dataclass(slots=True)
class Replaying:
    """Runs the plans of one replay and writes the results."""

    run: Run
    source: Path
    into: Path
    asked: Sequence[str | Definition] | None
    reread: Reread | None
    kept: bool
    """True if the user named `into`; it then must be a complete run that needs no other directory."""
    equal: int = 0
    different: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])

    def do(self) -> None:
        """Recompute everything and write a run to `into`."""
        began = time.monotonic()
        store = open_store(self.run)
        try:
            recorded = Recorded(store, self.run.manifest, again=self.reread)
            selection = Choosing(self.run.manifest, store, recorded, self.source).selection(self.asked)
            selection = replace(selection, metrics=as_asked(selection.metrics, self.run.manifest))
            manifest = _manifest(self.run.manifest, selection, everything=self.asked is None)
            summary = self._stream(store, recorded, selection, manifest)
            usage = {**UNSPENT, "seconds": round(time.monotonic() - began, 3), "replayed": str(self.source)}
            own = self._keep_store(store)
        finally:
            store.close()
        texts = {MANIFEST: json_text(manifest.to_fields()), SUMMARY: json_text(summary)}
        if own is not None and not (self.into / SEAL).exists():
            own.put_copy(MANIFEST, texts[MANIFEST])
        with nullcontext() if own is None else closing(own):
            publish(self.into, texts, streamed=True, usage=usage, store=own, linked=own is None, same=True)

    def _stream(self, store: Store, recorded: Recorded, selection: Selection, manifest: Manifest) -> dict[str, object]:
        tallies = Tallies(spans_of(selection.metrics), selection.composites, manifest.fingerprint)
        stop = stop_of(manifest)
        deciding = None if stop is None else stop.deciding(selection.metrics, lenient=True)
        done = 0
        clusters = cluster_numbers(store, manifest.cluster)
        with part_of(self.into / OUTCOMES).open("w", encoding="utf-8", errors="replace", newline="\n") as out:
            for sample, outcomes in self._samples(store):
                results = [
                    self.result(metric, text, sample, recorded.trail(trail_of(outcomes.get(text))))
                    for text, metric in selection.metrics.items()
                ]
                recorded.forget()
                cluster = next(clusters)
                tallies.add({result.metric: result.outcome for result in results}, cluster)
                out.writelines(self._compared(result, outcomes.get(result.metric)) for result in results)
                if deciding is not None:
                    deciding.add(results, cluster)
                done += 1
        aggregates = tallies.aggregates()
        whole = done == manifest.samples
        if deciding is None:
            return {"complete": whole, "samples": done, "metrics": [each.to_fields() for each in aggregates]}
        return {
            "complete": whole or (deciding.decided and self.run.file(SUMMARY).exists() and self.run.complete),
            "samples": done,
            "metrics": [deciding.valid(each).to_fields() for each in aggregates],
            "until_decided": deciding.record(manifest.samples),
        }

    def _samples(self, store: Store) -> Iterator[tuple[Sample, Outcomes]]:
        """Yield every sample that has outcomes, with their records by metric, in the order of the data."""
        samples = store.samples()
        for sample_id, records in groupby(self.run.records(), key=_sample_of):
            sample = next(samples, None)
            if sample is None or sample.id != sample_id:
                raise RunError(f"{self.source} is damaged: its outcomes do not match its samples.")
            yield sample, {record.get("metric", ""): record for record in records}

    def result(self, metric: Metric, text: str, sample: Sample, trail: Trail) -> Result:
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
                found = trail.take(question)
                if found is None:
                    plan_run.close()
                    raise RunError(self._missing(question, text, sample))
                answers.append(found)
            plan_run.send(answers)
        return plan_run.result()

    def _compared(self, result: Result, recorded: OutcomeRecord | None) -> str:
        line = _text(result.record())
        if recorded is not None:
            self.equal += (same := line == _text(recorded))
            self.different += not same
            if not same and len(self.differences) < _SHOWN:
                now = cast("OutcomeRecord", json.loads(line))  # what was just written
                self.differences.append(Difference(result.sample, result.metric, recorded, now))
        return line + "\n"

    def _missing(self, question: Question[Any], text: str, sample: Sample) -> str:
        return (
            f"{self.source} has no answer to a question of {text} about sample {sample.id!r}: "
            f"{question_text(question)}. Evaluate the data with this metric: merilo run DATA --metrics {text}"
        )

    def _keep_store(self, store: Store) -> Store | None:
        """Return an open copy of the run's store; None for a link to it, which suffices for a temporary run."""
        target = self.into / STORE
        if not self.kept:
            with suppress(OSError):  # Windows allows symbolic links only with a privilege
                target.symlink_to((self.run.path / STORE).resolve())
                return None
        if not belongs(self.into):  # True if the same replay finished earlier: its store is complete
            store.copy(part_of(target))
            part_of(target).replace(target)
        return Store.open(target)


def as_asked(metrics: Mapping[str, Metric], stored: Manifest) -> dict[str, Metric]:
    """Return the metrics with the wordings and the draws of the stored run, and those undefined that it could not
    measure. Raises UsageError as `worded` does.
    """
    own = {text: metric for text, metric in metrics.items() if text in stored.wordings}
    return unmeasured(repeated({**metrics, **(worded(own) if own else {})}, stored.draws), stored.undefined)


def _manifest(stored: Manifest, selection: Selection, *, everything: bool) -> Manifest:
    return replace(
        stored,
        merilo=version(),
        metrics=dict(selection.versions),
        composites={text: chosen.composite.version for text, chosen in selection.composites.items()},
        scales=scales_of(selection.metrics),
        left_out=stored.left_out if everything else {},
        draws=draws_of(selection.metrics),
        wordings=wordings_of(selection.metrics),
        judges=_judges(stored, selection),
    )


def _judges(stored: Manifest, selection: Selection) -> Mapping[str, Mapping[str, object]]:
    """Return the judges, with the metrics that the stored run did not compute among the weak ones if they are."""
    kinds, known = recorded_weak_kinds(stored), weak_metrics(stored)
    found = {
        text for text, each in selection.metrics.items() if any(kind.kind in kinds for kind in decided_kinds(each))
    }
    found |= {text for text, chosen in selection.composites.items() if found.intersection(chosen.parts)}
    more = [text for text in (*selection.metrics, *selection.composites) if text in found - known]
    judge = stored.judges.get("judge")
    if not more or judge is None:
        return stored.judges
    return {**stored.judges, "judge": {**judge, "weak": [*sorted(known), *more]}}


def _other_means(stored: Run, now: Run) -> tuple[str, ...]:
    """Return the metrics whose aggregates differ, among those that both have."""
    if not stored.file(SUMMARY).exists():  # stopped between writing outcomes and means
        return ()
    mine, theirs = now.metrics, stored.metrics
    return tuple(text for text in mine if text in theirs and _text(asdict(mine[text])) != _text(asdict(theirs[text])))


def trail_of(record: OutcomeRecord | None) -> list[bytes]:
    """Return the keys of the questions of an outcome. Raises RunError for a damaged one."""
    try:
        return [] if record is None else [bytes.fromhex(key) for key in record.get("trail", ())]
    except (TypeError, ValueError) as error:
        raise RunError(f"The trail of an outcome is damaged ({error}). Make the run again.") from error


def _sample_of(record: OutcomeRecord) -> object:
    return record.get("sample")


def _text(value: object) -> str:
    """Return compact JSON as in the stored files, so that equal numbers give equal text."""
    return compact(value).encode("utf-8", "replace").decode()


def _check_ours(run: Run, path: Path) -> None:
    """Raise UsageError for imported scores."""
    if run.manifest.origin is not None:
        raise UsageError(f"Cannot recompute {path}: its scores were imported from {run.manifest.origin}.")


@contextmanager
def _claimed(path: Path) -> Generator[None]:
    """Lock a directory for the new run: an empty one, or one that the same replay has begun or finished.

    If the replay fails, its files are removed. Raises RunError for a directory with any other content.
    """
    try:
        made = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        if any(each.name not in RUN_FILES for each in path.iterdir()):
            raise RunError(f"{path} is not empty; a recomputed run is written to a new directory (--out).")
    except (OSError, ValueError) as error:
        raise RunError(f"Cannot use {path} ({error}); choose another directory (--out).") from error
    with RunLock(path):
        recover(path)
        begun = (path / SEAL).exists()
        if (path / MANIFEST).exists() and not (begun and "replayed" in unchecked_run(path).usage):
            raise RunError(f"{path} is not empty; a recomputed run is written to a new directory (--out).")
        try:
            yield
        except BaseException:
            if not begun:
                for name in RUN_FILES:
                    (path / name).unlink(missing_ok=True)
                if made:
                    with suppress(OSError):
                        path.rmdir()
            raise
