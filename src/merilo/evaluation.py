"""One evaluation, from data to a finished run."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from merilo.data.load import load
from merilo.data.sentences import SPLITTER_ID
from merilo.engine.answers import Answers, Roles
from merilo.engine.cache import VerdictCache, default_path
from merilo.engine.carry import Carrier
from merilo.engine.drive import AsyncDriver
from merilo.engine.progress import Silent
from merilo.engine.schedule import stream, window_for
from merilo.errors import RunError, UsageError
from merilo.judges.spec import cross_encoder_from, embedder_from, is_wire, judges_from
from merilo.judges.splitter import SplitterJudge
from merilo.judging.digests import digest_of
from merilo.reports.summary import CompositeTally, Tally
from merilo.runs.intake import Intake, take_in
from merilo.runs.lock import RunLock
from merilo.runs.run import MANIFEST, OUTCOMES, STORE, SUMMARY, USAGE, Manifest, Run, write_json
from merilo.runs.store import Store
from merilo.selection import Selection, select
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from merilo.data.load import Records
    from merilo.data.sample import Dataset
    from merilo.engine.progress import Progress
    from merilo.judges.base import Judge
    from merilo.judges.spec import JudgeLike
    from merilo.metrics.base import Definition

RUNS = Path(".merilo") / "runs"
CONCURRENCY = 16


class EvaluateArguments(TypedDict, total=False):
    """What `merilo.evaluate` takes besides the data; explained there."""

    metrics: Sequence[str | Definition] | None
    judge: JudgeLike | Sequence[JudgeLike]
    embedder: JudgeLike
    cross_encoder: JudgeLike
    out: str | PathLike[str] | None
    limit: int | None
    mapping: Mapping[str, str] | None
    language: str | None
    concurrency: int
    base_url: str | None
    api_key_env: str | None
    embedder_base_url: str | None
    embedder_api_key_env: str | None
    judged: str | None
    skip_invalid: bool
    cache: bool | str | PathLike[str]
    retry_failed: bool
    progress: Progress | None


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of one evaluation, with their defaults."""

    metrics: Sequence[str | Definition] | None = None
    judge: JudgeLike | Sequence[JudgeLike] = "embedded"
    embedder: JudgeLike = "embedded"
    cross_encoder: JudgeLike = "embedded"
    out: str | PathLike[str] | None = None
    limit: int | None = None
    mapping: Mapping[str, str] | None = None
    language: str | None = None
    concurrency: int = CONCURRENCY
    base_url: str | None = None
    api_key_env: str | None = None
    embedder_base_url: str | None = None
    embedder_api_key_env: str | None = None
    judged: str | None = None
    skip_invalid: bool = False
    cache: bool | str | PathLike[str] = True
    retry_failed: bool = False
    progress: Progress | None = None
    lenient: bool = False
    """Leave out named metrics that cannot be computed, with the reason, instead of refusing them."""


async def run_evaluation(data: str | PathLike[str] | Records, options: Options) -> Run:
    """Evaluate a data set; returns the finished run.

    On cancellation or when a provider is down, what was answered is kept and the same call resumes it.
    """
    if isinstance(options.metrics, str):
        options = replace(options, metrics=[options.metrics])
    if options.metrics is not None and not options.metrics:
        raise UsageError("No metric is named; leave metrics out for every one that data and judge allow.")
    if options.concurrency < 1:
        raise UsageError(f"concurrency must be at least 1, got {options.concurrency}.")
    judges = _judges(options)
    dataset = load(data, mapping=options.mapping, language=options.language, limit=options.limit)
    try:
        path, made = _directory(options, dataset.name)
    except (OSError, ValueError) as error:
        raise RunError(f"The run's directory cannot be used ({error}); choose another one (--out).") from error
    with RunLock(path):
        try:
            return await _run_in(path, dataset, judges, options)
        except (sqlite3.Error, OSError) as error:
            raise RunError(f"{path} cannot be written or read ({error}); what was answered before is kept.") from error
        finally:
            if made and not (path / MANIFEST).exists():
                shutil.rmtree(path, ignore_errors=True)  # nothing was begun: leave nothing behind


async def _run_in(path: Path, dataset: Dataset, judges: dict[str, Judge], options: Options) -> Run:
    with ExitStack() as stack:
        store = Store.open(path / STORE, create=not (path / MANIFEST).exists())
        stack.callback(store.close)
        intake = await take_in(dataset, store, skip_invalid=options.skip_invalid)
        if dataset.columns.unseen:
            names = ", ".join(map(repr, dataset.columns.unseen))
            raise UsageError(f"The mapping names the column {names}, which no record has; see how it is spelt (--map).")
        roles = Roles(judges)
        selection = select(options.metrics, intake, roles, lenient=options.lenient)
        manifest = _manifest(dataset, intake, selection, roles, options)
        manifest = _agree(path, manifest)
        store.accept_samples()
        write_json(path / MANIFEST, asdict(manifest))
        cache = None
        if options.cache is not False:
            cache = VerdictCache(default_path() if options.cache is True else Path(options.cache))
            stack.callback(cache.close)
        work = _Work(path, manifest, selection, options, store=store, answers=Answers(roles, store, cache))
        await work.do()
    return Run.open(path)


class _Work:
    """Streams a prepared run through its metrics and writes what comes out."""

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        selection: Selection,
        options: Options,
        *,
        store: Store,
        answers: Answers,
    ) -> None:
        self._path = path
        self._manifest = manifest
        self._selection = selection
        self._store = store
        self._answers = answers
        self._options = options
        self._progress: Progress = options.progress or Silent()
        self._tallies = [Tally(metric, text) for text, metric in selection.metrics.items()]
        self._composites = [
            CompositeTally(chosen.composite, text, chosen.parts, _seed(manifest, text))
            for text, chosen in selection.composites.items()
        ]
        self._part = path / f"{OUTCOMES}.part"
        self._done = 0

    async def do(self) -> None:
        """All samples; the summary is written also when this is cancelled or a provider is down."""
        began = time.monotonic()
        self._progress.begin(self._path, self._manifest.samples)
        if self._options.retry_failed and (dropped := self._store.drop_failures()):
            self._progress.note(f"{dropped} failed questions are asked again; outcomes that used them may change.")
        carrier = Carrier(
            concurrency=self._options.concurrency, known=_known_adaptations(self._path), tell=self._progress.note
        )
        try:
            async with carrier:
                await self._all(carrier)
        finally:
            self._answers.commit()
            self._finish(carrier, time.monotonic() - began)
            self._progress.end()

    async def _all(self, carrier: Carrier) -> None:
        driver = AsyncDriver(self._answers, carrier)
        said: set[str] = set()
        with self._part.open("w", encoding="utf-8", errors="replace") as out:
            try:
                samples, window = self._store.samples(), window_for(self._options.concurrency)
                async for results in stream(samples, self._selection.metrics, driver, self._answers, window=window):
                    for tally, result in zip(self._tallies, results, strict=True):
                        tally.add(result.outcome)
                        out.write(_line(result.record()))
                    for composite in self._composites:
                        composite.add({result.metric: result.outcome for result in results})
                    self._done += 1
                    self._progress.advance(1)
                    for notice in carrier.notices():
                        if notice not in said:
                            said.add(notice)
                            self._progress.note(notice)
            finally:
                await driver.close()

    def _finish(self, carrier: Carrier, seconds: float) -> None:
        summary = {
            "complete": self._done == self._manifest.samples,
            "samples": self._done,
            "metrics": [
                *(asdict(tally.aggregate()) for tally in self._tallies),
                *(asdict(tally.aggregate()) for tally in self._composites),
            ],
        }
        if self._part.exists():
            self._part.replace(self._path / OUTCOMES)
        write_json(self._path / SUMMARY, summary)
        usage = {
            **asdict(self._store.spent()),
            "seconds": round(seconds, 3),
            "adaptations": carrier.adaptations(),
        }
        write_json(self._path / USAGE, usage)


def _judges(options: Options) -> dict[str, Judge]:
    """Who answers in which role; embedder, similarity and splitter are always there."""
    given = options.judge
    specs: list[JudgeLike]
    if isinstance(given, str) or not isinstance(given, Sequence):  # noqa: SIM108  else the types get lost
        specs = [given]
    else:
        specs = [*given]
    address = {"base_url": options.base_url, "api_key_env": options.api_key_env}
    own = {"base_url": options.embedder_base_url, "api_key_env": options.embedder_api_key_env}
    wire = isinstance(options.embedder, str) and is_wire(options.embedder)
    shares = wire and options.embedder_base_url is None
    if shares:
        own = {name: value if value is not None else address[name] for name, value in own.items()}
    judges = judges_from(specs, **address, judged=options.judged, address_used=shares)
    instruments: dict[str, Judge] = {
        "embedder": embedder_from(options.embedder, **own),
        "similarity": cross_encoder_from(options.cross_encoder),
        "splitter": SplitterJudge(),
    }
    return instruments | judges


def _directory(options: Options, name: str) -> tuple[Path, bool]:
    """The run's directory, and whether it was made just now."""
    if options.out is None:
        return _new_directory(name), True
    path = Path(options.out)
    if path.is_file():
        raise RunError(f"{path} is a file; a run is a directory: choose another name.")
    made = not path.exists()
    if not made and not (path / STORE).exists() and any(not each.name.startswith(".") for each in path.iterdir()):
        raise RunError(f"{path} holds other files and no run; choose an empty or a new directory.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path} cannot be made ({error.strerror}); choose another directory.") from error
    return path, made


def _new_directory(name: str) -> Path:
    RUNS.mkdir(parents=True, exist_ok=True)
    ignore = RUNS.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in range(1, 1000):
        path = RUNS / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise RunError(f"{RUNS} holds a thousand runs of this second; name the run with out (--out).")


def _manifest(dataset: Dataset, intake: Intake, selection: Selection, roles: Roles, options: Options) -> Manifest:
    first = roles.judges["judge"]
    others = {role: judge for role, judge in roles.judgements.items() if judge is not first}
    judges = {"judge": first} | others | roles.special(selection.kinds)
    return Manifest(
        merilo=version(),
        data=dataset.name,
        fingerprint=intake.fingerprint,
        samples=intake.samples,
        skipped=intake.skipped,
        metrics={text: metric.version for text, metric in selection.metrics.items()},
        left_out=selection.left_out,
        judges={
            role: {"name": judge.name, "fingerprint": judge.fingerprint(), "rates": judge.rates}
            for role, judge in judges.items()
        },
        splitter=SPLITTER_ID,
        language=options.language,
        notes=tuple(filter(None, [dataset.columns.sentence(), _limit_note(options.limit)])),
        composites={text: chosen.composite.version for text, chosen in selection.composites.items()},
    )


def _seed(manifest: Manifest, text: str) -> int:
    """A number that the data and the composite decide, so that its interval is the same each time."""
    return int.from_bytes(digest_of(manifest.fingerprint.encode(), text.encode())[:8], "little")


def _limit_note(limit: int | None) -> str:
    return "" if limit is None else f"Only the first {limit:,} records were looked at (--limit)."


def _agree(path: Path, manifest: Manifest) -> Manifest:
    """The manifest to keep: that of the run which is resumed. Raises RunError when it is of something else."""
    if not (path / MANIFEST).exists():
        return manifest
    earlier = Run.open(path).manifest
    differences = earlier.differences(manifest)
    if differences:
        names = ", ".join("data" if name == "fingerprint" else name for name in differences)
        raise RunError(
            f"{path} holds a run that differs in {names}, so it cannot be resumed; choose another directory (--out)."
        )
    return earlier


def _known_adaptations(path: Path) -> dict[str, dict[str, str]]:
    """What an earlier part of this run learnt about its providers."""
    try:
        known: dict[str, dict[str, str]] = Run(path).usage["adaptations"]
    except (RunError, KeyError):  # not written yet, or damaged: they are learnt again
        return {}
    return known


def _line(record: Mapping[str, Any]) -> str:  # Any: JSON
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
