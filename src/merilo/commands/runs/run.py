"""Find run directories and read their manifests, summaries and usage, but neither outcomes nor replies.

The files are not compared with the seal, which would read every outcome. A file that cannot be read makes its own run
`unreadable` and never hides the others.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.data.sanitize import clean
from merilo.errors import RunError, UsageError
from merilo.numbers import NONE, count, money, number
from merilo.rendering.page import GAP, Page, Span, Tone, cells_of, columns, cut, pad
from merilo.results.comparable import recorded_judge
from merilo.results.estimate import Basis
from merilo.results.means import WeakMarks, weak_legend
from merilo.results.records import first_of, picked
from merilo.runs.directory import RUNS
from merilo.runs.files import LEDGER, MANIFEST, SEAL, STORE, SUMMARY, USAGE, check_regular, is_locked
from merilo.runs.manifest import Manifest, read_manifest, read_summary, read_usage
from merilo.runs.run_metrics import weak_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike


class State(StrEnum):
    """The state of a run directory."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    RUNNING = "running"
    """A command is writing the run."""
    UNREADABLE = "unreadable"
    """A file is missing or damaged, or belongs to a newer merilo."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run directory; a value that its files do not give is None."""

    path: Path
    state: State
    changed: datetime
    """The last time that merilo wrote the results, with a time zone."""
    reason: str = ""
    """The reason for the state; empty for a finished or running one."""
    data: str | None = None
    judge: str | None = None
    origin: str | None = None
    """The program that computed imported scores."""
    done: int | None = None
    samples: int | None = None
    cost_usd: float | None = None
    means: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    weak: frozenset[str] = frozenset()
    """The metrics that are weak with the judge."""
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, "tuple[float, float]"])
    """The intervals of the means that have one."""
    corrected: frozenset[str] = frozenset()
    """The metrics whose means and intervals are corrected by human labels; `merilo view` alone corrects them."""
    failed: int = 0
    """Number of failed outcomes, over all metrics."""
    manifest: Manifest | None = None

    @property
    def by(self) -> str:
        """The origin of the scores: a judge, no judge, or the program that computed them."""
        if self.origin:
            return f"scores of {self.origin}"
        return self.judge if self.judge == Basis.NO_JUDGE else f"judge {self.judge or NONE}"


@dataclass(frozen=True, slots=True)
class RunList:
    """The runs below a directory, the newest first."""

    directory: Path
    runs: tuple[ListedRun, ...]


LEVELS: Final = 3
"""Levels of directories below the given one that are searched."""
_HOME: Final = RUNS.parts[0]
"""The one hidden directory that is searched: it holds the runs without --out."""
_BEGINNING: Final = re.compile(rb'\s*\{\s*"merilo"\s*:')
"""The beginning of a manifest; its first field is the version that wrote it."""
_BEGINNING_BYTES: Final = 200
_DATED: Final = (MANIFEST, SUMMARY, USAGE, LEDGER)
_KILLED: Final = "Killed before its results were written."
_NOT_BEGUN: Final = "Stopped before the first question."


def list_runs(directory: str | PathLike[str] | None = None) -> RunList:
    """Return the runs in a directory and up to `LEVELS` levels below it, the newest first.

    `directory`: None for the place of runs without a given one. Raises UsageError if a given directory does not exist.
    """
    place = RUNS if directory is None else Path(directory)
    if directory is not None and not place.is_dir():
        raise UsageError(f"{place} is a file. Name a directory." if place.exists() else f"No such directory: {place}.")
    found = map(listed_run, run_directories(place))
    return RunList(place, tuple(sorted(found, key=lambda run: (-run.changed.timestamp(), str(run.path)))))


def run_directories(directory: Path, levels: int = LEVELS) -> Iterator[Path]:
    """Yield the run directories from here on, `levels` deep; a directory that cannot be read is skipped."""
    try:
        with os.scandir(directory) as entries:
            found = sorted((entry.name, entry.is_dir()) for entry in entries)
    except OSError:
        return
    if _is_run(directory, {name for name, _ in found}):
        yield directory
        return
    for name, is_directory in found if levels else ():
        if is_directory and (name == _HOME or not name.startswith(".")):
            yield from run_directories(directory / name, levels - 1)


def listed_run(path: Path) -> ListedRun:
    """Return one run directory as the list shows it; a file that cannot be read makes it `unreadable`."""
    changed = _changed(path)
    try:
        check_regular(path)  # opening a pipe would wait for ever
        found = _read(path, changed)
    except (RunError, OSError) as error:
        found = ListedRun(path, State.UNREADABLE, changed, str(error))
    return replace(found, state=State.RUNNING, reason="") if is_locked(path) else found


def _is_run(directory: Path, names: set[str]) -> bool:
    """Return True for a directory that merilo wrote; a `manifest.json` alone may be another program's."""
    if names & {STORE, SEAL}:
        return True
    path = directory / MANIFEST
    with suppress(OSError):
        if MANIFEST in names and path.is_file():
            with path.open("rb") as file:
                return _BEGINNING.match(file.read(_BEGINNING_BYTES)) is not None
    return False


def _changed(directory: Path) -> datetime:
    """Return the time of the last change to the results; for a directory without any, its own."""
    dated = [path for name in _DATED if (path := directory / name).exists()] or [directory]
    return datetime.fromtimestamp(max(path.stat().st_mtime for path in dated), UTC)


def _read(path: Path, changed: datetime) -> ListedRun:
    """Return a run from its files, as if no command was writing it. Raises RunError and OSError."""
    if not (path / MANIFEST).exists():
        return ListedRun(path, State.INTERRUPTED, changed, _NOT_BEGUN)
    manifest = read_manifest(path / MANIFEST)
    usage: Mapping[str, Any] = {}  # Any: numbers, texts and nulls
    with suppress(RunError):  # the results do not depend on it
        usage = read_usage(path / USAGE)
    found = ListedRun(
        path,
        State.INTERRUPTED,
        changed,
        str(usage.get("stopped") or _KILLED),
        data=manifest.data,
        judge=recorded_judge(manifest),
        origin=manifest.origin,
        samples=manifest.samples,
        cost_usd=usage.get("cost_usd"),
        manifest=manifest,
    )
    if not (path / SUMMARY).exists():
        return found
    summary = read_summary(path / SUMMARY)
    return replace(
        found,
        state=State.FINISHED if summary.complete else State.INTERRUPTED,
        reason="" if summary.complete else found.reason,
        done=summary.samples,
        means={row.metric: row.mean for row in summary.metrics},
        intervals={row.metric: row.interval for row in summary.metrics if row.interval},
        failed=sum(row.failed for row in summary.metrics if not row.parts),
        weak=weak_metrics(manifest),
    )


# -- the list as a page -------------------------------------------------------------------------------

MEANS: Final = 3
"""Maximum number of means that are shown for a run."""
_HEADINGS: Final = ("changed", "samples", "state", "USD")
_TONES: Final = {State.UNREADABLE: Tone.BAD, State.INTERRUPTED: Tone.BAD, State.RUNNING: Tone.GOOD}


def runs_page(found: RunList, width: int) -> Page:
    """Return the page, the newest run first."""
    page = Page(width)
    place = clean(str(found.directory))
    if not found.runs:
        page.text(f"No runs in {place}.")
        return page
    page.text(f"{count(len(found.runs), 'run')} in {place}, newest first", tone=Tone.STRONG)
    page.blank()
    cells = columns([_HEADINGS, *map(_cells, found.runs)], left=frozenset({0, 2}))
    room = page.width - cells_of(cells[0]) - GAP
    names = [clean(str(run.path)) for run in found.runs]
    column = max(len("run"), *(cells_of(name) for name in names if cells_of(name) <= room), 0)
    page.line(Span(f"{pad('run', column)}{' ' * GAP}{cells[0]}", Tone.STRONG))
    for run, name, row in zip(found.runs, names, cells[1:], strict=True):
        fits = cells_of(name) <= column
        if not fits:
            page.line(name)  # never wrapped, so that it can be copied
        page.line(Span(f"{pad(name if fits else '', column)}{' ' * GAP}{row}", _TONES.get(run.state, Tone.PLAIN)))
        if run.data is not None:
            page.line("  ", Span(cut(_about(run, page.width - 2), page.width - 2), Tone.QUIET))
        if run.reason:
            page.text(run.reason, indent=2)
    if legend := weak_legend(metric for run in found.runs for metric in run.means if metric in run.weak):
        page.blank()
        page.text(legend, tone=Tone.QUIET)
    return page


def _cells(run: ListedRun) -> tuple[str, ...]:
    done = "?" if run.done is None else f"{run.done:,}"
    samples = NONE if run.samples is None else f"{done}/{run.samples:,}"
    changed = f"{run.changed.astimezone():%Y-%m-%d %H:%M}"
    return (changed, samples, run.state.value, NONE if run.data is None else money(run.cost_usd))


def _about(run: ListedRun, width: int) -> str:
    """Return data, judge and the first means that fit in one line."""
    about = clean(f"{run.data}, {run.by}")
    marks = WeakMarks(run.weak)
    known = [f"{clean(marks.name(metric))} {number(mean)}" for metric, mean in run.means.items() if mean is not None]
    for shown in range(min(MEANS, len(known)), 0, -1):
        text = f"{about}: {first_of(known, shown)}"
        if cells_of(text) <= width:
            return text
    return about


def runs_record(found: RunList) -> dict[str, Any]:  # Any: JSON
    """Return the list as a JSON-able object; a value that a run's files do not give is None."""
    return {"directory": str(found.directory), "found": len(found.runs), "runs": [_record(each) for each in found.runs]}


def _record(run: ListedRun) -> dict[str, Any]:  # Any: JSON
    return {
        "run": str(run.path),
        "state": run.state.value,
        "reason": run.reason or None,
        "changed": run.changed.isoformat(timespec="seconds").replace("+00:00", "Z"),
        **picked(run, "data judge origin done samples cost_usd means"),
        "weak": sorted(run.weak & run.means.keys()),
    }
