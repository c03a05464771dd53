"""The seal of a run: digests that tie its manifest, outcomes, summary, usage, labels and store together.

::

    seal.json      the digests of manifest.json, outcomes.jsonl, summary.json and, if attached, labels.jsonl
    store.sqlite   the digest of the first three together (table `meta`), so a store of another run does not fit, and
                   digests of its tables (runs/schema.py)
    usage.json     its own digest, over its content and the same three (usage differs between equal runs)

`publish` writes all of them as one step: everything is prepared in part files, and the rename of `seal.json` decides.
From then on a reader takes a part file whose digest is in the seal, so it never sees files of two different writes.
`inspect_seal` finds the files that differ from the seal. A run without results has none. See design/run-on-disk.md.
"""

from __future__ import annotations

import json
import shlex
import time
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b, file_digest
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.judging.json_types import compact
from merilo.runs.database import ERRORS, FORMAT, STORE_SCHEMA, connected, file_mode
from merilo.runs.files import (
    LABELS,
    MANIFEST,
    MAX_JSON_BYTES,
    OUTCOMES,
    SEAL,
    STORE,
    SUMMARY,
    USAGE,
    check_regular,
    flush,
    part_of,
    read_json_bytes,
    sync_directory,
    write_file,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from merilo.runs.store import Store

RESULTS: Final = (MANIFEST, OUTCOMES, SUMMARY)
"""The files that equal input reproduces byte for byte."""
UNSEALED: Final = "unsealed"
"""Placeholder for a digest in the store while a run may have no seal yet."""
_SIZE: Final = 16
_ATTEMPTS: Final = 3
_PAUSE_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Seal:
    """Digests of a run's files by name: those of RESULTS, and of LABELS if labels are attached.

    The store names the results instead.
    """

    digests: Mapping[str, str]

    @property
    def results(self) -> str:
        """The digest of manifest, outcomes and summary together, as the run's store and usage record it."""
        return _digest("\n".join(self.digests[name] for name in RESULTS).encode())

    def text(self) -> str:
        """Return the content of `seal.json`; its last field is the digest of the others."""
        fields: dict[str, object] = {"format": FORMAT, **self.digests}
        return json.dumps({**fields, "seal": _digest(compact(fields).encode())}, indent=2) + "\n"


@dataclass(frozen=True, slots=True)
class Inspected:
    """A comparison of a run with its seal."""

    seal: Seal | None
    """None if the run has none, or `seal.json` itself is damaged."""
    files: Mapping[str, Path]
    """Path with the content of each sealed file: the file, or its part file if a publication was interrupted."""
    broken: Mapping[str, str]
    """Name of each file that does not match the seal → the problem and what to do, in one or two sentences."""
    stamps: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    """Time, size and inode number of each file when it was compared, to detect a change while the run is open."""


def publish(
    directory: Path,
    texts: Mapping[str, str],
    *,
    streamed: bool = False,
    usage: Mapping[str, object] | None = None,
    store: Store | None = None,
) -> None:
    """Replace files of a run, its usage and its seal in one step.

    `texts`: the new content by name; other files stay. `streamed`: the new outcomes are in their part file already.
    `store`: an open store, which records the results it belongs to; None if it did so before.

    The caller holds the run's lock. Raises OSError and RunError; the earlier content then stays.
    """
    earlier = _read_seal(directory)
    new = {name: text.encode("utf-8", "replace") for name, text in texts.items()}
    for name, content in new.items():
        _write_part(directory / name, content)
    staged = [*new, *([OUTCOMES] if streamed else [])]
    if streamed:
        with part_of(directory / OUTCOMES).open("rb+") as out:
            flush(out)
    parts = {name: part_of(directory / name) for name in staged}
    digests = {name: file_digest_of(parts.get(name, directory / name)) for name in RESULTS}
    if LABELS in staged or (directory / LABELS).exists():
        # labels that were changed keep their earlier digest, so they stay broken
        known = None if LABELS in staged or earlier is None else earlier.digests.get(LABELS)
        digests[LABELS] = known or file_digest_of(parts.get(LABELS, directory / LABELS))
    seal = Seal(digests)
    if usage is not None:  # its field `seal` ties it to the results
        whole = {**usage, "seal": _usage_digest(usage, seal)}
        text = json.dumps(whole, ensure_ascii=False, indent=2) + "\n"
        _write_part(directory / USAGE, text.encode("utf-8", "replace"))
        staged.append(USAGE)
    if store is not None:  # both digests are valid until the rename decides: a crash may come before or after it
        store.record_results(seal.results, UNSEALED if earlier is None else earlier.results)
    sync_directory(directory)
    write_file(directory / SEAL, seal.text())
    mode = file_mode(directory / SEAL)
    for name in staged:
        part = part_of(directory / name)
        part.chmod(part.stat().st_mode & mode)
        part.replace(directory / name)
    sync_directory(directory)
    if store is not None:
        store.record_results(seal.results)


def recover(directory: Path) -> None:
    """Finish a publication that was killed after its seal was in place; delete the part files of one killed before
    that.

    The caller holds the run's lock.
    """
    seal = _read_seal(directory)
    for name in (*RESULTS, LABELS, USAGE, SEAL, STORE):
        file, part = directory / name, part_of(directory / name)
        if not part.exists():
            continue
        if seal is not None and not _fits(name, file, seal) and _fits(name, part, seal):
            part.replace(file)
        else:
            part.unlink()
    sync_directory(directory)


def inspect_seal(directory: Path) -> Inspected:
    """Compare a run with its seal. Hashes every sealed file; raises no error for one that is missing or changed."""
    found = _inspect_once(directory)
    for _ in range(_ATTEMPTS - 1):  # a publication in progress finishes soon
        if not found.broken:
            break
        time.sleep(_PAUSE_S)
        found = _inspect_once(directory)
    return found


def stamp(path: Path) -> tuple[int, ...]:
    """Return the time, size and inode number of a file, which change when it is written. Empty if it does not exist."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def file_digest_of(path: Path) -> str:
    """Return the digest of the bytes of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=_SIZE)).hexdigest()


def _inspect_once(directory: Path) -> Inspected:
    check_regular(directory)
    stamps = {STORE: stamp(directory / STORE)}
    recorded = _results_of(directory / STORE)
    if (seal := _read_seal(directory)) is None:
        return Inspected(None, {}, _without_seal(directory, recorded))
    files: dict[str, Path] = {}
    broken: dict[str, str] = {}
    for name in (*seal.digests, USAGE):
        file = directory / name
        stamps[name] = stamp(file)
        place = next((path for path in (file, part_of(file)) if _fits(name, path, seal)), None)
        files[name] = file if place is None else place
        if place is None:
            fault = "was changed after merilo wrote it" if file.exists() else "is missing"
            broken[name] = f"{file} {fault}. {_repair(directory, name)}"
    if LABELS not in seal.digests and (directory / LABELS).exists():
        broken[LABELS] = f"{directory / LABELS} was added after merilo wrote the run. {_repair(directory, LABELS)}"
    if recorded is None or seal.results not in recorded:
        broken[STORE] = _other_store(directory / STORE)
    return Inspected(seal, files, broken, stamps)


def _results_of(store: Path) -> tuple[str, ...] | None:
    """Return the digests of the results that a store belongs to, none if it was never sealed; None if it is damaged."""
    try:
        with closing(connected(store, STORE_SCHEMA, reading=True)) as db:
            found = db.execute("SELECT value FROM meta WHERE name = 'results'").fetchone()
            return () if found is None else tuple(found[0].split())
    except (*ERRORS, AttributeError):
        return None


def _without_seal(directory: Path, recorded: tuple[str, ...] | None) -> dict[str, str]:
    """Return the broken files of a run whose `seal.json` is missing or damaged; empty for a run without results."""
    seal, store = directory / SEAL, directory / STORE
    if recorded is None:
        return {STORE: _other_store(store)}
    results = any((directory / name).exists() for name in (OUTCOMES, SUMMARY))
    if seal.exists():
        fault = f"{seal} was changed after merilo wrote it."
    elif results or (recorded and UNSEALED not in recorded):
        fault = f"{seal} is missing."
    else:  # a run that was interrupted before it was published
        return {}
    return {SEAL: f"{fault} {_repair(directory, SEAL)}"}


def _read_seal(directory: Path) -> Seal | None:
    """Return the seal of a run; None if `seal.json` is missing, or if `Seal.text` did not write it."""
    try:
        content = read_json_bytes(directory / SEAL)
        fields = cast("dict[str, Any]", json.loads(content))  # Any: JSON; a value of another kind raises
        seal = Seal({name: str(fields[name]) for name in (*RESULTS, LABELS) if name in fields})
        return seal if seal.digests.keys() >= set(RESULTS) and seal.text().encode() == content else None
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _fits(name: str, path: Path, seal: Seal) -> bool:
    try:
        if name == USAGE:
            usage = cast("dict[str, Any]", json.loads(read_json_bytes(path)))  # Any: JSON, numbers and nulls
            return str(usage.pop("seal")) == _usage_digest(usage, seal)
        if name in {MANIFEST, SUMMARY} and path.stat().st_size > MAX_JSON_BYTES:
            return False
        return name in seal.digests and file_digest_of(path) == seal.digests[name]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _usage_digest(usage: Mapping[str, object], seal: Seal) -> str:
    return _digest(f"{seal.results} {compact(dict(usage))}".encode("utf-8", "replace"))


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=_SIZE).hexdigest()


def _write_part(path: Path, content: bytes) -> None:
    """Write the part file of a file in a run's directory, which the caller has locked."""
    with part_of(path).open("wb") as out:
        out.write(content)
        flush(out)


def _repair(directory: Path, name: str) -> str:
    place = shlex.quote(str(directory))
    if name == LABELS:
        return f"Attach the labels again: merilo label {place} --labels FILE"
    return (
        f"To compute the results again from the stored verdicts, repeat the command that wrote the run with --out "
        f"{place}"
    )


def _other_store(path: Path) -> str:
    fault = "is damaged or belongs to another run" if path.exists() else "is missing"
    return f"{path} {fault}. Restore it from a copy of this run, or start a new run in another directory (--out)."
