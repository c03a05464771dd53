"""The runs below a directory: searched for each list, and read again if their files changed.

A run is addressed by an id, which is looked up among the runs that were found. So no address can name another path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.correction import corrected_of
from merilo.commands.runs.run import ListedRun, State, listed_run, run_directories
from merilo.results.means import corrected_aggregates
from merilo.runs.files import LABELS, MANIFEST, OUTCOMES, SEAL, STORE, SUMMARY, USAGE, is_locked
from merilo.runs.run import Run
from merilo.runs.seal import stamp

if TYPE_CHECKING:
    from pathlib import Path


Stamps = tuple[tuple[int, ...], ...]
_FILES: Final = (SEAL, MANIFEST, SUMMARY, USAGE, LABELS, OUTCOMES, STORE)
_ID_BYTES: Final = 8


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
        self._listed: dict[Path, tuple[Stamps, ListedRun]] = {}

    def runs(self) -> tuple[ViewedRun, ...]:
        """Return all runs, the newest first."""
        with self._lock:
            found = [self._viewed(path) for path in run_directories(self.directory)]
        return tuple(sorted(found, key=lambda run: (-run.listed.changed.timestamp(), run.name)))

    def _viewed(self, path: Path) -> ViewedRun:
        inside = path.relative_to(self.directory).as_posix()
        name = path.resolve().name if inside == "." else inside
        run_id = blake2b(inside.encode("utf-8", "surrogatepass"), digest_size=_ID_BYTES).hexdigest()
        now = stamps_of(path)
        if path not in self._listed or self._listed[path][0] != now or is_locked(path):
            self._listed[path] = now, _listed(path)
        return ViewedRun(run_id, name, self._listed[path][1])


def _listed(path: Path) -> ListedRun:
    try:
        found = listed_run(path)
    except Exception as error:  # noqa: BLE001  whatever is wrong with one run must not hide the others
        reason = f"{path} cannot be read ({type(error).__name__}: {error})."
        return ListedRun(path, State.UNREADABLE, datetime.fromtimestamp(0, UTC), reason)
    return _corrected(found) if found.state is State.FINISHED and (path / LABELS).exists() else found


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
