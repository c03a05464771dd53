"""The runs and the files of tasks below a directory: searched for each list, and read again if their files changed.

A run is addressed by an id, which is looked up among the runs that were found. So no address can name another path.
Each run is read in its own thread, and the list waits for it for a limited time: a run that takes longer is a row that
says so, and hides no other.

Trends are the means of each metric over runs of one name and the same questions, joined only if they are comparable.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from merilo.commands.calibrate.correction import corrected_of
from merilo.commands.calibrate.human_labels import attach_files, read_people
from merilo.commands.label.page import answer_files
from merilo.commands.label.tasks import first_ticket
from merilo.commands.runs.run import ListedRun, State, listed_run, run_directories
from merilo.engine.budget import spent_record
from merilo.errors import RunError, UsageError
from merilo.metrics.registry import asks_judge
from merilo.numbers import count, duration, money
from merilo.rendering.progress_line import ProgressMeter
from merilo.results.comparable import score_affecting_differences
from merilo.results.contents import questions_digest
from merilo.results.means import corrected_aggregates
from merilo.results.records import grouped
from merilo.runs.directory import balance_in
from merilo.runs.files import (
    LABELS,
    LEDGER,
    MANIFEST,
    OUTCOMES,
    SEAL,
    STORE,
    SUMMARY,
    USAGE,
    bounded_lines,
    is_locked,
    part_of,
)
from merilo.runs.run import Run
from merilo.runs.run_metrics import recorded_scale
from merilo.runs.seal import stamp
from merilo.runs.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from merilo.runs.manifest import Manifest
    from merilo.runs.run_metrics import Scale


Stamps = tuple[tuple[int, ...], ...]
_FILES: Final = (SEAL, MANIFEST, SUMMARY, USAGE, LABELS, OUTCOMES, STORE)
_ID_BYTES: Final = 8
_WAIT_S: Final = 2.0
"""Seconds to wait for one run. A real one takes 10 ms, and its questions a second for each 100,000 samples."""
_TOTAL_WAIT_S: Final = 10.0
"""Seconds to wait for all runs of a list together."""
_MAX_UNFINISHED: Final = 4
"""Maximum number of runs that are still being read; each may take some 300 MB."""
_SLOW: Final = "This run takes unusually long to read. It is still being read."
MOST: Final = 100
"""Number of finished runs, the newest ones, whose questions are read for trends."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ViewedRun:
    """A run in the list."""

    id: str
    """Names the run in addresses; a digest of its place in the directory."""
    name: str
    listed: ListedRun


def stamps_of(path: Path) -> Stamps:
    """Return times and sizes of a run's files, which change if a page about the run may change."""
    return tuple(stamp(path / name) for name in _FILES)


class Catalog:
    """The runs below a directory, for several threads."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = Lock()
        self._listed: dict[str, tuple[Stamps, ListedRun]] = {}
        self._questions: dict[str, tuple[tuple[int, ...], bytes | None]] = {}
        self._calls: dict[tuple[str, str], tuple[float, Future[object]]] = {}
        self._until = 0.0

    def runs(self) -> tuple[ViewedRun, ...]:
        """Return all runs, the newest first."""
        with self._lock:
            self._until = time.monotonic() + _TOTAL_WAIT_S
            found = [self._viewed(path) for path in run_directories(self.directory)]
            known = {each.id for each in found}
            for cache in (self._listed, self._questions):
                for gone in cache.keys() - known:
                    del cache[gone]
        return tuple(sorted(found, key=lambda run: (-run.listed.changed.timestamp(), run.name)))

    def questions(self, run: ViewedRun) -> bytes | None:
        """Return a digest of the run's questions; None if its store cannot be read."""
        store = run.listed.path / STORE
        now = stamp(store)
        with self._lock:
            was = self._questions.get(run.id)
        if was is not None and was[0] == now:
            return was[1]
        found = self._in_time(("questions", run.id), lambda: (now, _questions_in(store)))
        if found is None:
            return None
        with self._lock:
            self._questions[run.id] = found
        return found[1]

    def _viewed(self, path: Path) -> ViewedRun:
        inside = path.relative_to(self.directory).as_posix()
        name = path.resolve().name if inside == "." else inside
        run_id = blake2b(inside.encode("utf-8", "surrogatepass"), digest_size=_ID_BYTES).hexdigest()
        return ViewedRun(run_id, name, self._read(run_id, path))

    def _read(self, run_id: str, path: Path) -> ListedRun:
        now = stamps_of(path)
        was = self._listed.get(run_id)
        if was is not None and was[0] == now and not is_locked(path):
            return was[1]
        found = self._in_time(("run", run_id), lambda: (now, _listed(path)))
        if found is None:
            return ListedRun(path, State.UNREADABLE, datetime.fromtimestamp(0, UTC), _SLOW)
        listed = found[1]
        if listed.state is State.FINISHED and (path / LABELS).exists():
            found = self._in_time(("labels", run_id), lambda: (now, _corrected(listed)))
            if found is None:  # the judge's means, until the corrected ones are there
                return listed
        if listed.state is not State.RUNNING:
            self._listed[run_id] = found
        return found[1]

    def _in_time(self, key: tuple[str, str], read: Callable[[], T]) -> T | None:
        """Return the result of a function that runs in its own thread; None if it, or several others, take too long.

        It then continues, and the first call with its key after its end returns its result.
        """
        unfinished = sum(not call.done() for _, call in self._calls.values())
        if key not in self._calls and unfinished >= _MAX_UNFINISHED:
            return None
        began, call = self._calls.get(key) or (time.monotonic(), Future[object]())
        if key not in self._calls:
            self._calls[key] = began, call
            Thread(target=_call, args=(read, call), daemon=True).start()
        wait([call], max(0.0, min(began + _WAIT_S, self._until) - time.monotonic()))
        if not call.done():
            return None
        self._calls.pop(key, None)
        return cast("T", call.result())  # what `read` returned


def _call(read: Callable[[], object], call: Future[object]) -> None:
    try:
        call.set_result(read())
    except BaseException as error:  # noqa: BLE001  raised where the result is taken
        call.set_exception(error)


def _listed(path: Path) -> ListedRun:
    try:
        return listed_run(path)
    except Exception as error:  # noqa: BLE001  whatever is wrong with one run must not hide the others
        reason = f"{path} cannot be read ({type(error).__name__}: {error})."
        return ListedRun(path, State.UNREADABLE, datetime.fromtimestamp(0, UTC), reason)


def _corrected(found: ListedRun) -> ListedRun:
    """Return the run with the means that the human labels stored with it correct; unchanged if they cannot be read."""
    try:
        run = Run.open(found.path)
        corrections = corrected_of(run)
        rows = corrected_aggregates(tuple(run.metrics.values()), corrections)
    except Exception:  # noqa: BLE001  the page of the run says what is wrong
        return found
    return replace(
        found,
        means={row.metric: row.mean for row in rows},
        intervals={row.metric: row.interval for row in rows if row.interval},
        corrected=frozenset(metric for metric, each in corrections.items() if each.estimate is not None),
    )


def _questions_in(store: Path) -> bytes | None:
    try:
        with closing(Store.read(store)) as opened:
            return questions_digest(opened.sample_records())
    except RunError:
        return None


# -- files of tasks, addressed by an id like a run ----------------------------------------------------

_SUFFIX: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class ViewedTasks:
    """A file of tasks."""

    path: Path

    @property
    def id(self) -> str:
        """The name of the file as the last part of an address."""
        return blake2b(self.path.name.encode("utf-8", "surrogatepass"), digest_size=_ID_BYTES).hexdigest()

    @property
    def metric(self) -> str:
        """The metric that the tasks are for."""
        ticket = first_ticket(self.path)
        return "" if ticket is None else ticket.metric

    @property
    def annotators(self) -> int:
        """The number of annotators with a file of answers."""
        return len(answer_files(self.path))


def task_files(directory: Path) -> tuple[ViewedTasks, ...]:
    """Return the files of tasks directly in a directory, by name; files of answers are not listed."""
    found = [path for path in sorted(directory.glob(f"*{_SUFFIX}")) if path.is_file() and first_ticket(path)]
    answers = {each for path in found for each in answer_files(path)}
    return tuple(ViewedTasks(path) for path in found if path not in answers)


def attached_to(tasks: ViewedTasks, runs: Sequence[ViewedRun]) -> tuple[ViewedRun, ...]:
    """Attach the answers of all annotators to the finished runs that the tasks were drawn from; return these runs.

    Raises UsageError if nothing is answered yet, or if none of the runs is of these tasks.
    """
    files = answer_files(tasks.path)
    labels = [each for each in read_people(files).labels if not each.ticket.settled] if files else []
    if not labels:
        raise UsageError("There are no answers yet.")
    drawn_from = {found for each in labels for found in (each.ticket.fingerprint, each.ticket.other)}
    found = [
        run
        for run in runs
        if run.listed.state is State.FINISHED
        and run.listed.manifest is not None
        and run.listed.manifest.fingerprint in drawn_from
    ]
    if not found:
        raise UsageError("The runs that the tasks were drawn from are not in this directory.")
    attach_files([str(run.listed.path) for run in found], [str(file) for file in files])
    return tuple(found)


# -- progress of runs that are being written ----------------------------------------------------------
# The outcomes so far are in a part file, one line for each sample and metric. Only new lines are read each time. The
# ledger has the requests and their cost. The time left comes from the same estimate as the line of `merilo run`.

_MIN_PAUSE_S: Final = 0.5
"""Seconds for which a progress is reused; longer if reading it takes long."""
_LOAD: Final = 10
"""Reading takes at most one part in this many of the time."""


@dataclass(frozen=True, slots=True)
class LiveProgress:
    """The progress of a run that another process is writing; None for what is unknown, or not known yet."""

    done: int
    samples: int
    failed: int
    """Number of failed outcomes so far."""
    requests: int = 0
    cost_usd: float | None = None
    seconds_left: float | None = None

    @property
    def text(self) -> str:
        """The progress in words."""
        if not self.samples:  # the run is still reading its data
            return "starting"
        parts = [f"{self.done:,} of {count(self.samples, 'sample')} ({self.done / self.samples:.0%})"]
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        if self.requests:
            parts.append(count(self.requests, "request"))
        if self.cost_usd:
            parts.append(f"${money(self.cost_usd)} so far")
        if self.seconds_left is not None and self.done < self.samples:
            parts.append(f"{duration(max(1.0, self.seconds_left))} left")
        return ", ".join(parts)

    def record(self) -> Mapping[str, Any]:  # Any: JSON
        """Return the progress as a JSON-able object."""
        return {**asdict(self), "text": self.text}


@dataclass(slots=True)
class PartReader:
    """Counts the lines of a growing file."""

    offset: int = 0
    lines: int = 0
    failed: int = 0

    def read(self, path: Path) -> None:
        """Count the whole lines that were added since the last call; all of them if the file was begun again."""
        try:
            with path.open("rb") as file:
                if file.seek(0, 2) < self.offset:
                    self.offset = self.lines = self.failed = 0
                file.seek(self.offset)
                for line in bounded_lines(file):
                    if not line.endswith(b"\n"):  # half a line, which is read once it is whole
                        break
                    self.offset += len(line)
                    self.lines += 1
                    self.failed += _is_failed(line)
        except (OSError, ValueError):  # not begun, just published, or no file of ours
            return


@dataclass(slots=True)
class _Watched:
    """One run in progress: how far its files were read."""

    meter: ProgressMeter
    first: int
    """Number of samples that were done when the run was first read."""
    latest: LiveProgress
    part: PartReader
    again_at: float = 0.0


class ProgressWatch:
    """The progress of all runs that are being written, for several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._watched: dict[str, _Watched] = {}

    def look(self, running: Sequence[ViewedRun]) -> Mapping[str, LiveProgress]:
        """Return the progress by id of these runs, which are all that are being written now."""
        with self._lock:
            for gone in self._watched.keys() - {run.id for run in running}:
                del self._watched[gone]
            return {run.id: self._look(run) for run in running}

    def _look(self, run: ViewedRun) -> LiveProgress:
        began = self._clock()
        watched = self._watched.get(run.id)
        if watched is not None and began < watched.again_at:
            return watched.latest
        manifest, path = run.listed.manifest, run.listed.path
        if manifest is None:  # it is still reading its data
            return LiveProgress(0, 0, 0)
        part = PartReader() if watched is None else watched.part
        part.read(part_of(path / OUTCOMES))
        done = min(manifest.samples, part.lines // max(1, len(manifest.metrics)))
        found = replace(_spent(path), done=done, samples=manifest.samples, failed=part.failed)
        if watched is None:
            meter = ProgressMeter(manifest.samples - done, began)
            watched = self._watched[run.id] = _Watched(meter, done, found, part)
        left = watched.meter.look(began, max(0, done - watched.first), None).seconds_left
        watched.latest = replace(found, seconds_left=left)
        now = self._clock()
        watched.again_at = now + max(_MIN_PAUSE_S, _LOAD * (now - began))
        return watched.latest


def _spent(path: Path) -> LiveProgress:
    """Return a progress with the requests and the cost so far; the cost is None if it is unknown."""
    if not (path / LEDGER).exists():  # no model was asked that may cost something
        return LiveProgress(0, 0, 0)
    try:
        spent: dict[str, Any] = spent_record(balance_in(path), "charged")  # Any: numbers and nulls
    except RunError:
        return LiveProgress(0, 0, 0)
    return LiveProgress(0, 0, 0, requests=spent["requests"], cost_usd=spent["cost_usd"])


def _is_failed(line: bytes) -> bool:
    try:
        return bool(json.loads(line)["outcome"] == "failed")
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


# -- trends -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """The mean of a metric in one run of a group."""

    place: int
    """The index of the run in its group."""
    mean: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Trend:
    """One metric over the runs of a group."""

    metric: str
    scale: Scale
    weak: bool
    lines: tuple[tuple[Point, ...], ...]
    """Points that are comparable with each other, oldest first; the line with the newest run comes last."""


@dataclass(frozen=True, slots=True)
class TrendGroup:
    """Runs of one name over the same questions, oldest first."""

    name: str
    runs: tuple[ViewedRun, ...]
    trends: tuple[Trend, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """The difference of a mean from that of the comparable run before."""

    difference: float
    apart: bool
    """True if the two intervals do not overlap and no judge computed the means."""
    better: bool


def trend_groups(catalog: Catalog, runs: Sequence[ViewedRun]) -> tuple[TrendGroup, ...]:
    """Return the groups of at least two runs of one name and the same questions; that of the newest run comes first.

    A name is compared without its number or date, as in `nightly-12` or `nightly/2026-11-01`; runs of other names are
    of other systems. `runs`: the newest first. Unfinished runs are left out.
    """
    finished = [run for run in runs if run.listed.state is State.FINISHED]
    found = grouped(
        ((_without_numbers(run.name), questions), run)
        for run in finished[:MOST]
        if (questions := catalog.questions(run)) is not None
    )
    return tuple(_group(name, tuple(reversed(each))) for (name, _), each in found.items() if len(each) > 1)


def changes(groups: Sequence[TrendGroup]) -> Mapping[tuple[str, str], Change]:
    """Return the difference from the comparable run before, by id of the run and metric."""
    found: dict[tuple[str, str], Change] = {}
    for group in groups:
        for trend in group.trends:
            for line in trend.lines:
                for before, now in pairwise(line):
                    difference, first, second = now.mean - before.mean, before.interval, now.interval
                    apart = first is not None and second is not None and (first[1] < second[0] or second[1] < first[0])
                    better = (difference > 0) == trend.scale.higher_is_better
                    change = Change(difference, apart and not asks_judge(trend.metric), better)
                    found[group.runs[now.place].id, trend.metric] = change
    return found


def _group(name: str, runs: tuple[ViewedRun, ...]) -> TrendGroup:
    metrics = dict.fromkeys(metric for run in reversed(runs) for metric in run.listed.means)
    trends = (_trend(metric, runs) for metric in metrics)
    return TrendGroup(name, runs, tuple(trend for trend in trends if trend.lines))


def _trend(metric: str, runs: Sequence[ViewedRun]) -> Trend:
    lines: list[tuple[ViewedRun, list[Point]]] = []
    for place, run in enumerate(runs):
        mean = run.listed.means.get(metric)
        if mean is None:
            continue
        point = Point(place, mean, run.listed.intervals.get(metric))
        line = next((points for first, points in lines if _comparable(first, run, metric)), None)
        if line is None:
            lines.append((run, [point]))
        else:
            line.append(point)
    newest = next(run for run in reversed(runs) if metric in run.listed.means)
    ordered = sorted((points for _, points in lines), key=lambda points: points[-1].place)
    scale = recorded_scale(_manifest(newest), metric)
    return Trend(metric, scale, metric in newest.listed.weak, tuple(map(tuple, ordered)))


def _comparable(run: ViewedRun, other: ViewedRun, metric: str) -> bool:
    first, second = _manifest(run), _manifest(other)
    if (metric in run.listed.corrected) != (metric in other.listed.corrected):
        return False
    if recorded_scale(first, metric) != recorded_scale(second, metric):
        return False
    metrics = [metric]
    if metric in first.composites or metric in second.composites:
        metrics = [*first.metrics]
        if first.composites != second.composites or metrics != [*second.metrics]:
            return False
    return not score_affecting_differences(first, second, metrics=metrics)


def _manifest(run: ViewedRun) -> Manifest:
    """Return the manifest of a finished run, which always has one."""
    manifest = run.listed.manifest
    if manifest is None:
        raise ValueError(f"{run.name} has no manifest")
    return manifest


def _without_numbers(name: str) -> str:
    """Return the name of a run without the numbers at its end, such as `nightly` for `nightly-v2-13`."""
    bare = name.rstrip("0123456789")
    stem = bare.removesuffix("v").rstrip("-_./ ")
    if bare == name or len(stem) == len(bare.removesuffix("v")):
        return name
    return _without_numbers(stem)
