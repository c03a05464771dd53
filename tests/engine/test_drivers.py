"""Asyncio and rounds run the same plans and judges and give the same results."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from judged_rivers import rows, verdict_for
from plan_running import run_plan

from merilo.data.sample import Sample
from merilo.engine.answer_store import AnswerStore, JudgeRoles
from merilo.engine.dispatcher import Dispatcher
from merilo.engine.drivers import AsyncDriver, drive_rounds
from merilo.engine.plan_run import PlanRun
from merilo.engine.rate_limits import RequestLimits
from merilo.judges.base import OutgoingRequest
from merilo.judges.callables import CallableJudge
from merilo.judging.verdicts import Failure
from merilo.metrics.registry import all_metrics, parse_metric
from merilo.metrics.text import metric_text
from merilo.providers.base import Reply
from merilo.runs.store import Store


def walks() -> list[PlanRun]:
    metrics = [parse_metric(name) for name in all_metrics()]
    samples = [Sample(**row) for row in rows(12)]
    return [PlanRun(metric, metric_text(metric), sample) for sample in samples for metric in metrics]


def records(done: Sequence[PlanRun]) -> list[dict[str, Any]]:
    return [dict(walk.result().record()) for walk in done]


@pytest.fixture
def answers(tmp_path: Path) -> AnswerStore:
    return AnswerStore(
        JudgeRoles({"judge": CallableJudge(verdict_for)}), Store.open(tmp_path / "s.sqlite", create=True), None
    )


def send(send: OutgoingRequest) -> Reply | Failure:
    """One request by a loop of its own: the slowest and plainest way."""

    async def once() -> Reply | Failure:
        async with Dispatcher(RequestLimits(concurrency=1)) as dispatcher:
            return await dispatcher.carry(send)

    return asyncio.run(once())


def test_asyncio_and_rounds_agree(answers: AnswerStore, tmp_path: Path) -> None:
    """The asyncio driver and the rounds driver give the same outcomes, evidence and trails."""

    async def concurrently() -> list[PlanRun]:
        async with Dispatcher(RequestLimits(concurrency=8)) as dispatcher:
            driver = AsyncDriver(answers, dispatcher)
            return list(await asyncio.gather(*(run_plan(driver, walk) for walk in walks())))

    other = AnswerStore(
        JudgeRoles({"judge": CallableJudge(verdict_for)}), Store.open(tmp_path / "b", create=True), None
    )
    in_rounds = drive_rounds(walks(), other, lambda sends: enumerate(map(send, sends)))
    assert records(asyncio.run(concurrently())) == records(in_rounds)


def test_rounds_ask_equal_questions_once(answers: AnswerStore) -> None:
    """In a round every equal question is sent once, and a later round finds it in the run."""
    sent: list[Any] = []

    def batch(sends: Sequence[OutgoingRequest]) -> Iterator[tuple[int, Reply | Failure]]:
        sent.extend(each.request for each in sends)
        return enumerate(map(send, sends))

    drive_rounds(walks(), answers, batch)
    assert len(sent) == len({repr(request) for request in sent})
