"""The estimated time of local models: measured on a few questions, scaled to all, and absent if it is short."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from tiny_models import nli, reranker

from merilo.commands.evaluate.options import Options, Storage
from merilo.commands.plan.run import plan_page, plan_record, run_estimate
from merilo.judges.base import OutgoingRequest
from merilo.judges.local.judge import LocalJudge, LocalWork, local_judge
from merilo.judging.kinds.contexts import Support
from merilo.providers.questions import QuestionRequest

ROWS = [
    {"user_input": f"Where is tower {n}?", "retrieved_contexts": [f"Tower {n} is in Paris."]} for n in range(100, 140)
]


def ticking(step_s: float) -> Callable[[], float]:
    """A clock that advances by this much at each reading."""
    ticks = count()
    return lambda: next(ticks) * step_s


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads, whatever this machine has."""
    for module in ("judges.local.judge", "commands.plan.run"):
        monkeypatch.setattr(f"merilo.{module}.thread_count", lambda: 2)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    """A clock by which each measurement takes ten seconds."""
    del threads
    monkeypatch.setattr("merilo.judges.local.judge.perf_counter", ticking(10.0))


def support(judge: LocalJudge, number: int) -> OutgoingRequest:
    """The request for a question of 40 characters."""
    question = Support(f"Statement {number:010}", (f"Context {number:012}",))
    return OutgoingRequest(judge.provider, QuestionRequest((), question=question))


@pytest.mark.usefixtures("threads")
def test_the_time_is_scaled_by_length_and_divided_by_threads(tmp_path: Path) -> None:
    """Two of 100 equal questions take 4 s by the clock: 200 s in one thread, 100 s in two; twice that at scale 2."""
    judge, work = local_judge(str(nli(tmp_path / "m"))), LocalWork()
    for number in range(100):
        work.add(support(judge, number))
    found = work.time(clock=ticking(4.0))
    assert found is not None
    assert (found.seconds, found.questions) == (pytest.approx(100.0), 2)
    assert (work.time(2.0, ticking(4.0)) or found).seconds == pytest.approx(200.0)
    assert work.time(clock=ticking(2.3)) is None  # 57.5 s
    assert LocalWork().time(clock=ticking(1000.0)) is None


@pytest.mark.usefixtures("threads")
async def test_a_short_time_is_not_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a minute the plan has no such row."""
    monkeypatch.setattr("merilo.judges.local.judge.perf_counter", ticking(1.0))
    judge = f"local:{reranker(tmp_path / 'm')}"
    options = Options(
        judge=judge,
        metrics=["context_relevance"],
        out=tmp_path / "out",
        storage=Storage(cache=False),
    )
    found = await run_estimate(ROWS, options)
    assert "local_seconds" not in plan_record(found)
    assert "local model" not in str(plan_page(found, 80))


@pytest.mark.usefixtures("slow")
async def test_a_plan_reports_it(tmp_path: Path) -> None:
    """As a row of the totals and as `local_seconds`; other judges have neither."""
    options = Options(
        judge=f"local:{reranker(tmp_path / 'm')}", metrics=["context_relevance"], storage=Storage(cache=False)
    )
    found = await run_estimate(ROWS, options)
    assert plan_record(found)["local_seconds"] == pytest.approx(100.0)
    assert "local model  about 100 s on 2 threads of this machine, measured on" in str(plan_page(found, 120))
    other = await run_estimate(
        ROWS, Options(judge="embedded", metrics=["context_relevance"], storage=Storage(cache=False))
    )
    assert other.local_time is None
