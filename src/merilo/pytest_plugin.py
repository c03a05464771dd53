"""Plugin for pytest: evaluate data once per test session, and show the means of the runs that tests used.

pytest loads this module at every start, so it imports nothing of merilo until a test uses the fixture `merilo_run`.
The workers of pytest-xdist share the runs of a session. One worker evaluates and holds a file lock, which the system
releases if the worker dies; the next worker then resumes the same run.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _pytest.mark import ParameterSet
    from _pytest.terminal import TerminalReporter

    from merilo.data.load import Records
    from merilo.shown import Run

_PARTS: Final = pytest.StashKey[tuple[str, str | None]]()
"""The folder of the runs of single samples, and the former value of its variable."""
_SESSION_RUNS: Final = "MERILO_SESSION_RUNS"
"""The variable with this folder: tests and the workers of pytest-xdist read it. The first run makes the folder."""
_USED: Final = ".used"
"""The ending of the files in it that hold the directory of a run that a test used."""
_DAY_S: Final = 86_400


@pytest.fixture(scope="session")
def merilo_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Evaluate data with `merilo.evaluate`, once per session, and return the run.

    `merilo_run(data, **options)` takes the arguments of `merilo.evaluate` except `out`. Equal calls return the same
    run, in all workers of pytest-xdist. If an argument is an object, such as a judge, give `key`: a text that is equal
    for equal evaluations.
    """
    base = tmp_path_factory.getbasetemp()
    worker: dict[str, Any] | None = getattr(request.config, "workerinput", None)  # only workers of xdist have it
    folder = base / "merilo" if worker is None else base.parent / f"merilo-{worker['testrunuid']}"
    folder.mkdir(exist_ok=True)
    used = Path(os.environ[_SESSION_RUNS])
    used.mkdir(exist_ok=True)

    def evaluate(data: str | PathLike[str] | Records, *, key: str | None = None, **options: Any) -> Run:  # Any: checked
        """Return the run of this data with these options, evaluated at most once per session."""
        run = _evaluated_once(folder, data, key, options)
        (used / f"{run.path.parent.name}{_USED}").write_text(str(run.path), encoding="utf-8")
        return run

    return evaluate


def parameters(data: str | PathLike[str] | Records, mapping: Mapping[str, str] | None) -> list[ParameterSet]:
    """Return each sample as a parameter of a test; see `merilo.testing.samples`."""
    from merilo.data.load import load
    from merilo.data.sample import BadRecord
    from merilo.errors import DataError

    found: list[ParameterSet] = []
    for sample in load(data, mapping=mapping):
        if isinstance(sample, BadRecord):
            raise DataError(f"{data if isinstance(data, (str, PathLike)) else 'records'}: {sample.problems[0]}")
        found.append(pytest.param(sample, id=sample.id))
    return found


def pytest_configure(config: pytest.Config) -> None:
    """Name the folder of the runs of single samples; the workers of pytest-xdist share that of their controller."""
    if not (hasattr(config, "workerinput") and _SESSION_RUNS in os.environ):
        folder = str(Path(tempfile.gettempdir()) / f"merilo-pytest-{uuid4().hex}")
        config.stash[_PARTS] = folder, os.environ.get(_SESSION_RUNS)
        os.environ[_SESSION_RUNS] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    """Restore the variable, which a session within a session replaced."""
    if _PARTS in config.stash:
        _, former = config.stash[_PARTS]
        os.environ.pop(_SESSION_RUNS)
        os.environ.update({} if former is None else {_SESSION_RUNS: former})


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Show the means and intervals of the runs that tests used, and of the run of all single test cases."""
    folder = Path(config.stash[_PARTS][0])
    if not folder.exists():
        return
    used = sorted(path.read_text(encoding="utf-8") for path in folder.glob(f"*{_USED}"))
    terminalreporter.section("merilo")
    for text in (*map(_means, used), *_joined(folder)):
        terminalreporter.write(f"{text}\n")


def _joined(parts: Path) -> list[str]:
    """Join the runs in this folder and remove them; return the screen of each joined run: one per set of metrics."""
    from merilo.commands.merge.run import join_runs
    from merilo.errors import MeriloError
    from merilo.runs.files import SEAL

    try:
        joined = join_runs([path.parent for path in parts.glob(f"*/{SEAL}")], "pytest")
    except MeriloError as error:
        return [f"The runs of this session stay in {parts}: {error}\n"]
    shutil.rmtree(parts, ignore_errors=True)
    return [_means(str(path)) for path in joined]


def _means(path: str) -> str:
    """Return the screen of a run; the error if the run is no longer readable."""
    from merilo.data.sanitize import command
    from merilo.errors import MeriloError
    from merilo.shown import Run

    try:
        return f"{Run.open(path)}Report: {command('report', path)}\n"
    except MeriloError as error:
        return f"{path}: {error}\n"


def _evaluated_once(folder: Path, data: str | PathLike[str] | Records, key: str | None, options: dict[str, Any]) -> Run:
    import sqlite3

    from merilo.api import evaluate
    from merilo.errors import UsageError
    from merilo.shown import Run

    if "out" in options:
        raise UsageError("merilo_run chooses the run directory itself. Leave out= away, or call merilo.evaluate.")
    text = _identity(data, options) if key is None else f"key:{key}"
    home = folder / hashlib.sha256(text.encode()).hexdigest()[:16]
    home.mkdir(exist_ok=True)
    path, done = home / "run", home / "done"
    # SQLite waits for its lock, which the system releases if a process dies, on every system.
    with closing(sqlite3.connect(home / "lock", timeout=_DAY_S, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        if done.exists():
            return Run.open(path)
        run = evaluate(data, **options, out=path)
        done.touch()  # a stopped run counts as done too: asking again would reach the same limit
        return run


def _identity(data: str | PathLike[str] | Records, options: Mapping[str, object]) -> str:
    """Return a text that is equal for equal evaluations. Raises UsageError for objects that have no such text."""
    from merilo.commands.evaluate.options import Options
    from merilo.commands.option import parts_of
    from merilo.data.sample import Sample
    from merilo.errors import UsageError

    def plain(value: object) -> object:
        if isinstance(value, Path):
            return str(value)
        if isinstance(value, Sample):
            return value.to_record()
        if type(value) in parts_of(Options).values():
            return vars(value)
        raise UsageError(
            f"merilo_run cannot recognise an equal {type(value).__name__} in another call. Give key=TEXT, a text that "
            "is equal for equal evaluations."
        )

    source: object = data
    if isinstance(data, (str, PathLike)):
        path = Path(data)
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        source = [str(path), digest]
    return json.dumps([str(Path.cwd()), source, options], sort_keys=True, default=plain)
