"""The runs below a directory: searched for each list, and read again only if their files changed.

A run is addressed by an id, which is looked up among the runs that were found. So no address can name another path.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Final

from merilo.commands.runs.run import ListedRun, State, listed_run, run_directories
from merilo.errors import RunError
from merilo.results.contents import questions_digest
from merilo.runs.files import LABELS, MANIFEST, OUTCOMES, SEAL, STORE, SUMMARY, USAGE
from merilo.runs.lock import is_locked
from merilo.runs.seal import stamp
from merilo.runs.store import Store

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
        self._listed: dict[str, tuple[Stamps, ListedRun]] = {}
        self._questions: dict[str, tuple[tuple[int, ...], bytes | None]] = {}

    def runs(self) -> tuple[ViewedRun, ...]:
        """Return all runs, the newest first."""
        with self._lock:
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
        if was is None or was[0] != now:
            was = now, _questions_in(store)
            with self._lock:
                self._questions[run.id] = was
        return was[1]

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
        found = _listed(path)
        if found.state is not State.RUNNING:
            self._listed[run_id] = now, found
        return found


def _listed(path: Path) -> ListedRun:
    try:
        return listed_run(path)
    except Exception as error:  # noqa: BLE001  whatever is wrong with one run must not hide the others
        reason = f"{path} cannot be read ({type(error).__name__}: {error})."
        return ListedRun(path, State.UNREADABLE, datetime.fromtimestamp(0, UTC), reason)


def _questions_in(store: Path) -> bytes | None:
    try:
        with closing(Store.read(store)) as opened:
            return questions_digest(opened.sample_records())
    except RunError:
        return None
