"""Merges the runs over all shards of a data set into the run that one process would have written.

The run is built in a directory next to its own, which a rename puts in its place. So a merge that is killed leaves no
part of a run, and the same command finishes.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from merilo.commands.merge.fitting import parts_of, whole_manifest
from merilo.commands.merge.results import merge_outcomes, merge_usage
from merilo.data.remote import refuse_url
from merilo.engine.event_loop import rare_collections
from merilo.errors import RunError
from merilo.runs.files import LABELS, MANIFEST, OUTCOMES, RUN_FILES, STORE, SUMMARY
from merilo.runs.lock import RunLock
from merilo.runs.merged_store import ShardStore, StoreMerge
from merilo.runs.publish import PART, sync_directory
from merilo.runs.run import Run, json_text
from merilo.runs.seal import inspect_seal, publish
from merilo.runs.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from merilo.commands.merge.fitting import Part
    from merilo.runs.seal import Seal


class Merged(NamedTuple):
    """A merged run."""

    run: Run
    shards: int
    labelled: tuple[Path, ...]
    """Shards with human labels, which the merged run does not have."""


def merge_runs(runs: Sequence[Run | str | PathLike[str]], out: str | PathLike[str]) -> Merged:
    """Merge the runs over all shards into a new run; see `merilo.api.merge`."""
    refuse_url(out)
    parts = parts_of(runs)
    target = Path(out)
    staged = target.with_name(target.name + PART)
    try:
        _check_target(target)
        _make(staged)
        try:
            with RunLock(staged), rare_collections():
                _build(staged, parts)
            run = _settled(staged, target)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
    except (OSError, sqlite3.Error) as error:
        raise RunError(f"Cannot write {target} ({error}). Choose another directory (--out).") from error
    return Merged(run, len(parts), tuple(part.run.path for part in parts if part.run.labels is not None))


def _build(path: Path, parts: Sequence[Part]) -> None:
    manifest = whole_manifest(parts)
    stores = [ShardStore(part.shard, part.run.file(STORE)) for part in parts]
    StoreMerge(path / STORE, stores, manifest.samples).write()
    with closing(Store.open(path / STORE)) as store:
        summary = merge_outcomes(path, parts, manifest, store)
        usage = merge_usage(path, parts, store)
        for part in parts:  # raises if a shard was written in the meantime
            for name in (STORE, OUTCOMES):
                part.run.file(name)
        texts = {MANIFEST: json_text(manifest.to_fields()), SUMMARY: json_text(summary)}
        store.put_copy(MANIFEST, texts[MANIFEST])
        publish(path, texts, streamed=True, usage=usage, store=store)


def _check_target(path: Path) -> None:
    """Raise RunError for a directory that holds anything but a run, which the merged one may equal."""
    own = {*RUN_FILES, LABELS}
    if any(each.name not in own for each in path.iterdir()) if path.is_dir() else path.exists():
        raise RunError(f"{path} holds other files. Choose a new directory (--out).")
    path.absolute().parent.mkdir(parents=True, exist_ok=True)


def _make(staged: Path) -> None:
    """Create the directory in which the run is built; remove what a killed merge has left there."""
    if staged.exists():
        if not staged.is_dir() or any(each.name not in RUN_FILES for each in staged.iterdir()):
            raise RunError(f"{staged} is in the way: the run is built there first. Move it, or choose another --out.")
        with RunLock(staged):  # raises while another merge is writing
            shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(exist_ok=True)


def _settled(staged: Path, target: Path) -> Run:
    """Move the finished run to its directory. If an equal run is there, that one stays."""
    if target.exists() and any(target.iterdir()):
        there, new = _seal_in(target), _seal_in(staged)
        if there is None or new is None or there.results != new.results:
            raise RunError(f"{target} already holds a run with other results. Choose a new directory (--out).")
        shutil.rmtree(staged, ignore_errors=True)
        return Run.open(target)
    with suppress(FileNotFoundError):
        target.rmdir()  # an empty directory, which not every system replaces
    staged.rename(target)
    sync_directory(target.absolute().parent)
    return Run.open(target)


def _seal_in(path: Path) -> Seal | None:
    found = inspect_seal(path)
    return None if found.broken else found.seal
