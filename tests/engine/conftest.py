"""A judge with fixed verdicts, a run made with it, and the event loops that runs run on."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from grouping import grouped
from judged_rivers import Evaluate, verdict_for

import merilo
from merilo.engine.event_loop import loop_factory


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Every asynchronous test of the engine runs on a caller's loop and on that of a run's own thread."""
    return {"caller": asyncio.new_event_loop, "own": loop_factory()}


@pytest.fixture
def judge() -> merilo.ScriptedJudge:
    return merilo.ScriptedJudge.by(verdict_for, version="1")


@pytest.fixture
def evaluated(tmp_path: Path, judge: merilo.ScriptedJudge) -> Evaluate:
    """`merilo.evaluate` with a run directory of its own, the scripted judge and no cache by default."""

    def run(data: object, **arguments: Any) -> merilo.Run:
        number = len(list(tmp_path.iterdir()))
        return merilo.evaluate(
            data, **grouped(**{"judge": judge, "out": tmp_path / f"run{number}", "cache": False} | arguments)
        )

    return run
