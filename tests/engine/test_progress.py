"""Who watches an evaluation is told what happens, and cannot stop it."""

import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judged_rivers import Evaluate, canonical, rows
from server import JudgeServer, status

from merilo.engine.progress import Traffic


class Four:
    """A progress with nothing but what it must have."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.done = 0

    def begin(self, run: Path, samples: int) -> None:
        assert run.is_dir()
        self.told.append(f"begin {samples}")

    def advance(self, samples: int) -> None:
        self.done += samples

    def note(self, text: str) -> None:
        self.told.append(text)

    def end(self) -> None:
        self.told.append("end")


class Curious(Four):
    """A progress that wants to know all."""

    def __init__(self) -> None:
        super().__init__()
        self.usage: dict[str, Any] = {}
        self.ticks = 0

    def watch(self, traffic: Callable[[], Traffic]) -> None:
        self.traffic = traffic

    def tick(self) -> None:
        self.ticks += 1

    def spent(self, usage: dict[str, Any]) -> None:
        self.usage = usage


class Broken(Curious):
    """Raises wherever it is told to."""

    def __init__(self, *where: str) -> None:
        super().__init__()
        self.calls = Counter[str]()
        self._where = where

    def __getattribute__(self, name: str) -> Any:
        if name in {"calls", "_where"} or name not in self._where:
            return super().__getattribute__(name)

        def broken(*_: object) -> None:
            self.calls[name] += 1
            raise ZeroDivisionError("of its own")

        return broken


def test_a_progress_needs_four_methods(evaluated: Evaluate) -> None:
    """It is told of the beginning, of every sample, and of the end, in this order."""
    four = Four()
    evaluated(rows(7), progress=four)
    assert four.told == ["begin 7", "end"]
    assert four.done == 7


def test_a_progress_may_want_more(evaluated: Evaluate) -> None:
    """Figures at any moment and what was used: told to those who ask for it."""
    curious = Curious()
    with JudgeServer(delay_s=0.02) as server:
        server.fail_next(status(500), status(500))
        run = evaluated(
            rows(12),
            judge="openai:test-model",
            base_url=server.base_url,
            metrics=["context_relevance"],
            progress=curious,
            concurrency=2,
        )
    figures = curious.traffic()
    assert (figures.sent, figures.retries, figures.in_flight) == (server.count, 2, 0)
    assert curious.usage == run.usage
    assert curious.ticks > 0
    assert any("500" in told for told in curious.told)


@pytest.mark.parametrize("where", ["begin", "watch", "tick", "advance", "note", "spent", "end"])
def test_a_progress_that_breaks_ends_no_run(evaluated: Evaluate, caplog: pytest.LogCaptureFixture, where: str) -> None:
    """What it raises is logged once with its traceback; it is told nothing more, and the run is as any other."""
    broken = Broken(where)
    options = {"judge": "openai:test-model", "metrics": ["context_relevance"], "concurrency": 2}
    with JudgeServer(delay_s=0.05) as server, caplog.at_level(logging.ERROR, "merilo"):
        server.fail_next(status(500))
        run = evaluated(rows(8), base_url=server.base_url, progress=broken, **options)
        plain = evaluated(rows(8), base_url=server.base_url, **options)
    assert canonical(run) == canonical(plain)
    told = [record for record in caplog.records if "Broken raised ZeroDivisionError" in record.message]
    assert len(told) == broken.calls[where] == 1
    assert all(record.exc_info for record in told)
