"""The directory of a run: the one that the user named, a new one, one built in one step, or a copy of an address.

Also what a directory holds that is not open: its cost, means for estimates, and how it differs from the command that
resumes it. The directory of a run that was stopped before anything was answered is removed.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from merilo.data.check import cut
from merilo.data.remote import fetched_files, is_url, redacted, refuse_url
from merilo.errors import RunError
from merilo.runs.database import ERRORS, STORE_SCHEMA, connected
from merilo.runs.files import (
    CALLS,
    LABELS,
    LEDGER,
    MANIFEST,
    OUTCOMES,
    PART,
    RUN_FILES,
    SEAL,
    STORE,
    SUMMARY,
    USAGE,
    RunLock,
    sync_directory,
    write_file,
)
from merilo.runs.ledger import Balance, Ledger
from merilo.runs.manifest import Manifest, read_manifest, read_summary
from merilo.runs.seal import inspect_seal
from merilo.runs.store import Store

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from os import PathLike

    Judges = Mapping[str, Mapping[str, object]]

RUNS = Path(".merilo") / "runs"
"""Directory of runs without a given place, relative to the working directory."""

_FILES_OF_OTHERS: Final = frozenset(".csv .htm .html .json .jsonl .md .parquet .pdf .tsv .txt .xlsx".split())
"""Suffixes of files that a user may expect instead of a run."""
LEAST = 10
"""Minimum number of conversations through a rubric whose means are used to predict the next ones."""
_MAX_SHOWN = 5


def run_directory(out: str | PathLike[str] | None, name: str) -> tuple[Path, bool]:
    """Return the run's directory, and whether it was just created; None creates one named after the data and the time.

    Raises RunError for a path that cannot hold a run.
    """
    if out is None:
        while True:
            with suppress(FileExistsError):  # another command took the name
                path = free_directory(name)
                path.mkdir(0o700)
                return path, True
    refuse_url(out)
    path = Path(out)
    if path.is_file():
        raise RunError(f"{path} is a file, but a run needs a directory. Choose another name.")
    made = not path.exists()
    if made and (str(path) == "-" or path.suffix.lower() in _FILES_OF_OTHERS):
        raise RunError(
            f"A run is a directory, such as runs/{path.stem}, but {path} looks like a file. To write one later: merilo "
            "report RUN (HTML) or merilo export RUN --out FILE (a table)."
        )
    known = made or (path / STORE).exists()
    if not known and any(each.name != CALLS and not each.name.startswith(".") for each in path.iterdir()):
        raise RunError(f"{path} holds other files and no run. Choose an empty or a new directory.")
    try:
        path.mkdir(0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path} cannot be created ({error.strerror}). Choose another directory.") from error
    return path, made


def free_directory(name: str) -> Path:
    """Return a place for a new run named after the data and the time."""
    if linked := next((each for each in (RUNS.parent, RUNS) if each.is_symlink()), None):
        raise RunError(f"{linked} is a link. Name a directory for the run (--out).")
    RUNS.mkdir(0o700, parents=True, exist_ok=True)
    ignore = RUNS.parent / ".gitignore"
    if not (ignore.exists() or ignore.is_symlink()):
        write_file(ignore, "*\n")
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (RUNS / (stem if number == 1 else f"{stem}-{number}") for number in count(1))
    return next(path for path in names if not path.exists())


@contextmanager
def built(target: Path) -> Generator[Path]:
    """Yield a hidden, locked directory in which the block writes a finished run, which then moves to `target`.

    So a command that fails or is killed leaves no part of a run, and the same command finishes. A run with equal
    results that `target` already holds stays. Raises RunError for any other content, or if a file cannot be written.
    """
    try:
        _check_target(target)
        staged = target.with_name(f".{target.name}{PART}")
        _make(staged)
        try:
            with RunLock(staged):
                yield staged
            _settle(staged, target)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
    except (OSError, sqlite3.Error) as error:
        raise RunError(f"Cannot write {target} ({error}). Choose another directory (--out).") from error


def _check_target(path: Path) -> None:
    """Raise RunError for a directory that holds anything but a run, which the new one may equal."""
    if path.name in {"", ".."}:
        raise RunError(f"{path} does not name a new directory. Choose another (--out).")
    own = {*RUN_FILES, LABELS}
    if any(each.name not in own for each in path.iterdir()) if path.is_dir() else path.exists():
        raise RunError(f"{path} holds other files. Choose a new directory (--out).")
    path.absolute().parent.mkdir(parents=True, exist_ok=True)


def _make(staged: Path) -> None:
    """Create the directory in which a run is built; remove what a killed command has left there."""
    if staged.exists():
        if not staged.is_dir() or any(each.name not in RUN_FILES for each in staged.iterdir()):
            raise RunError(f"{staged} is in the way: the run is built there first. Move it, or choose another --out.")
        with RunLock(staged):  # raises while another command is writing
            shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(0o700, exist_ok=True)


def _settle(staged: Path, target: Path) -> None:
    """Move the finished run to its directory. If an equal run is there, that one stays."""
    if target.exists() and any(target.iterdir()):
        there, new = inspect_seal(target), inspect_seal(staged)
        if there.broken or there.seal is None or new.seal is None or there.seal.results != new.seal.results:
            raise RunError(f"{target} already holds a run with other results. Choose a new directory (--out).")
        shutil.rmtree(staged, ignore_errors=True)
        return
    with suppress(FileNotFoundError):
        target.rmdir()  # an empty directory, which not every system replaces
    staged.rename(target)
    sync_directory(target.absolute().parent)


_FILES: Final = (SEAL, MANIFEST, SUMMARY, USAGE, OUTCOMES, STORE, LABELS, LEDGER)


def local_run(path: str | PathLike[str]) -> Path:
    """Return the directory of a run; of an address, a copy that exists until this process ends.

    The caller compares it with its seal, as any run, so a file that was damaged on the way is found. Raises RunError if
    there is no finished run at the address.
    """
    if not isinstance(path, str) or not is_url(path):
        return Path(path)
    found = fetched_files(path, _FILES)
    if not (found / SEAL).exists():
        raise RunError(f"There is no finished run at {redacted(path)} (no {SEAL}).")
    return found


def balance_in(directory: Path) -> Balance:
    """Return the requests and spending of the run in this directory; empty if there is no run. Raises RunError."""
    if not (directory / STORE).exists():
        return Balance()
    with closing(Store.read(directory / STORE)) as store:
        return Ledger.open(directory / LEDGER, lines=store.ledger_lines).balance


_ANSWERED: Final = "SELECT EXISTS (SELECT 1 FROM exchanges WHERE judge <> '') OR EXISTS (SELECT 1 FROM unfinished)"


def is_worthless(directory: Path) -> bool:
    """Return True if a stopped run has nothing to resume from: no answer, no score, no request that may be billed.

    The caller holds the run's lock. Answers from the cache do not count, because the next run finds them there. A
    directory with other files is never worthless. For a finished run the result is meaningless.
    """
    try:
        if any(each.name not in RUN_FILES for each in directory.iterdir()):
            return False
        if not (directory / MANIFEST).exists():
            return True  # no question was asked before it was written
        with closing(connected(directory / STORE, STORE_SCHEMA, reading=True)) as db:
            (answered,) = db.execute(_ANSWERED).fetchone()
        balance = balance_in(directory)  # a request without a reply may have been billed: its charge must stay
        requests = balance.answered.requests + balance.unanswered.requests
        summary = directory / SUMMARY
        rows = read_summary(summary).metrics if summary.exists() else ()
        return not (answered or requests or any(row.scored for row in rows))
    except (*ERRORS, RunError, OSError, ValueError, LookupError, TypeError):
        return False


def discard(directory: Path) -> bool:
    """Remove the directory of a stopped run if it is worthless; return True if it was removed."""
    with RunLock(directory):
        if not is_worthless(directory):
            return False
        shutil.rmtree(directory, ignore_errors=True)
    return not directory.exists()


@dataclass(frozen=True, slots=True)
class MeasuredUsage:
    """Means over the conversations of one judge through one rubric, re-asks included."""

    requests: float
    input_tokens: float
    output_tokens: float
    seconds: float


def measured_in(store: Path) -> Mapping[tuple[str, bytes], MeasuredUsage]:
    """Return means by judge and digest of the rubric, if there are enough conversations and all tokens are known.

    Empty if the store cannot be read.
    """
    statement = (
        "SELECT judge, rubric, count(*), sum(requests), sum(input_tokens), sum(output_tokens), sum(seconds)"
        " FROM exchanges WHERE requests > 0 GROUP BY judge, rubric"
        " HAVING count(*) >= ? AND count(input_tokens) = count(*) AND count(output_tokens) = count(*)"
    )
    try:
        with closing(connected(store, STORE_SCHEMA, reading=True)) as db:
            rows = db.execute(statement, (LEAST,)).fetchall()
    except ERRORS:
        return {}
    return {
        (judge, rubric): MeasuredUsage(*(total / done for total in totals)) for judge, rubric, done, *totals in rows
    }


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run that is resumed or started in a directory."""

    manifest: Manifest
    changed: tuple[str, ...] = ()
    """Files that differ from the seal of the run. They are recomputed."""


def resumed(path: Path, manifest: Manifest) -> Resumed:
    """Return the run in a directory with its own manifest, or with the given one if the directory has none.

    Raises RunError if the run has other data, metrics or judges, or if its store belongs to another run.
    """
    if not (path / MANIFEST).exists():
        return Resumed(manifest)
    broken = broken_files(path)
    earlier = read_manifest(path / MANIFEST)
    differences = earlier.differences(manifest)
    if differences and MANIFEST in broken:
        raise RunError(broken[MANIFEST])
    if differences:
        names = ", ".join("data" if name == "fingerprint" else name for name in differences)
        judges = judges_difference(earlier.judges, manifest.judges)
        raise RunError(
            f"{path} holds a run that differs in {names}, so it cannot be resumed{f' ({judges})' if judges else ''}. "
            "Choose another directory (--out)."
        )
    changed = tuple(name for name in broken if name not in {LABELS, SEAL})
    return Resumed(manifest if MANIFEST in broken else earlier, changed)


def broken_files(path: Path) -> Mapping[str, str]:
    """Return the broken files of a run that is resumed: file → sentence. Raises RunError if its store is broken."""
    broken = inspect_seal(path).broken
    if STORE in broken:
        raise RunError(broken[STORE])
    return broken


def judges_difference(first: Judges, second: Judges) -> str:
    """Return the differences between the judges of two runs, for each role that both have; empty if there are none.

    `the judge openai:m differs in base_url "http://a" there, "http://b" here`.
    """
    both = [(role, judge_difference(first[role], second[role])) for role in first if role in second]
    return "; ".join(f"the {role} {difference}" for role, difference in both if difference is not None)


def judge_difference(first: Mapping[str, object], second: Mapping[str, object]) -> str | None:
    """Return the difference between two judges as recorded in manifests, without a subject; None if there is none."""
    marks = (_flat(first.get("fingerprint")), _flat(second.get("fingerprint")))
    if marks[0] == marks[1]:
        return None
    names = (str(first.get("name")), str(second.get("name")))
    if names[0] != names[1]:
        return f"is {names[0]} there and {names[1]} here"
    keys = [key for key in sorted({*marks[0], *marks[1]}) if marks[0].get(key) != marks[1].get(key)]
    values = [[cut(each.get(key, "not set")) for each in marks] for key in keys[:_MAX_SHOWN]]
    parts = [  # without the values of a user's body, which may be secret
        key if "body" in key.split(".") else f"{key or 'fingerprint'} {there} there, {here} here"
        for key, (there, here) in zip(keys, values, strict=False)
    ]
    if len(keys) > _MAX_SHOWN:
        parts.append(f"{len(keys) - _MAX_SHOWN:,} more")
    return f"{names[0]} differs in {'; '.join(parts)}"


def _flat(value: object, name: str = "") -> dict[str, str]:
    """Return the leaves of a fingerprint by their path, as JSON."""
    if not isinstance(value, dict):
        return {name: json.dumps(value, ensure_ascii=False)}
    found: dict[str, str] = {}
    for key, each in cast("dict[str, object]", value).items():
        found |= _flat(each, f"{name}.{key}" if name else key)
    return found
