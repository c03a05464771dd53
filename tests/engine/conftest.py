"""A judge with fixed verdicts, and a run made with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from judged_rivers import Evaluate, verdict_for

import merilo

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def judge() -> merilo.ScriptedJudge:
    return merilo.ScriptedJudge.by(verdict_for, version="1")


@pytest.fixture
def evaluated(tmp_path: Path, judge: merilo.ScriptedJudge) -> Evaluate:
    """`merilo.evaluate` with a run directory of its own, the scripted judge and no cache by default."""

    def run(data: object, **arguments: Any) -> merilo.Run:
        number = len(list(tmp_path.iterdir()))
        return merilo.evaluate(data, **{"judge": judge, "out": tmp_path / f"run{number}", "cache": False} | arguments)

    return run
