"""Settings of all tests: reproducible Hypothesis runs, no connection except to this machine, and slow tests marked."""

import gc
import os
import re
import signal
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import loopback
import pytest
from demo_runs import Demo, shared_demo
from hypothesis import settings

settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("new", deadline=None)  # HYPOTHESIS_PROFILE=new: other examples each time, to find more
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


_SLOW = re.compile(
    r"^(?:from|import) (?:command_line|demo_runs|killing|subprocess|simulated\w*|docs_page|robust|doc_\w+)\b",
    re.MULTILINE,
)
"""Imports of tests that start processes, simulate many data sets or run the documentation."""
_ROOT = Path(__file__).parent.parent
SLOW_TESTS = frozenset((_ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").split())
"""Test functions that took the most time of all others, as tools/slow_tests.py measured it."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and children inherit that. Tests send it to their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)


gc.disable()  # nothing of what collection makes is garbage


def pytest_collection_finish() -> None:
    """Collect garbage from here on, and not among what collection made."""
    gc.freeze()
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of slow tests where those are not wanted, since importing them takes time too."""
    unwanted = "not slow" in config.option.markexpr and collection_path.suffix == ".py"
    return True if unwanted and _is_slow(collection_path) else None


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark slow tests, which `make fast` leaves out."""
    for item in items:
        if _is_slow(item.path) or item.nodeid.partition("[")[0] in SLOW_TESTS:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """One `merilo demo` for all tests and workers."""
    base = tmp_path_factory.getbasetemp()
    return shared_demo(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


@cache
def _is_slow(path: Path) -> bool:
    return _SLOW.search(path.read_text(encoding="utf-8")) is not None


def pytest_configure() -> None:
    """Close the way out, of child processes too."""
    loopback.shut()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try a law of metrics with one set of made-up verdicts; `make test-long` tries it with all three."""
    if "seeds" in metafunc.fixturenames:
        metafunc.parametrize("seeds", [(0,), pytest.param((0, 1, 2), marks=pytest.mark.long)], indirect=True)


@pytest.fixture
def seeds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the seeds of the made-up verdicts."""
    monkeypatch.setattr("merilo.metrics.contract._SEEDS", request.param)
