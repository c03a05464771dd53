"""Scheduling by request: order, windows, flights, and how little of anything else there is."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from endpoints import Endpoint, Grader
from grouping import grouped
from judged_rivers import Evaluate, canonical, rows, verdict_for
from server import Asked, JudgeServer, malformed, status

import merilo
from merilo.data.sample import Sample
from merilo.engine.answer_store import AnswerStore, JudgeRoles
from merilo.engine.dispatcher import Dispatcher
from merilo.engine.drivers import AsyncDriver
from merilo.engine.rate_limits import RequestLimits
from merilo.engine.schedule import BLOCK, InFlightBounds, stream
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.registry import parse_metric
from merilo.providers.base import Request
from merilo.runs.outcomes import Result
from merilo.runs.store import Store

METRIC = "context_relevance"


def samples(count: int, contexts: int = 1) -> Iterator[Sample]:
    for number in range(count):
        texts = [f"{number:05} context {place}." for place in range(contexts)]
        yield Sample(f"s{number}", user_input="q?", retrieved_contexts=texts)


def number_in(request: Request) -> int:
    return int(request.messages[1].text[:5])


ROOM = InFlightBounds(64)


class Bench:
    """A run's engine over an endpoint within the process."""

    def __init__(self, path: Path, endpoint: Endpoint, *, concurrency: int = 4, asks: int = 1) -> None:
        self.limits = RequestLimits(concurrency=concurrency)
        self.store = Store.open(path / "s.sqlite", create=True)
        self.answers = AnswerStore(JudgeRoles({"judge": Grader(endpoint, asks)}), self.store, None)

    async def results(self, source: Iterator[Sample], room: InFlightBounds = ROOM) -> list[list[Result]]:
        metrics = {METRIC: parse_metric(METRIC)}
        async with Dispatcher(self.limits) as dispatcher:
            driver = AsyncDriver(self.answers, dispatcher)
            try:
                return [found async for found in stream(source, metrics, driver, room)]
            finally:
                await driver.close()


async def test_results_come_in_order(tmp_path: Path) -> None:
    """Whatever is answered first, samples come out in the order of the data, each once."""

    async def odd_ones_late(request: Request) -> str:
        await asyncio.sleep(0.002 * (number_in(request) % 3))
        return "ok"

    found = await Bench(tmp_path, Endpoint(odd_ones_late), concurrency=8).results(samples(200, 2))
    assert [result.sample for (result,) in found] == [f"s{number}" for number in range(200)]


async def test_the_window_bounds_what_is_alive(tmp_path: Path) -> None:
    """While one sample waits, at most eight windows of samples are taken from the data, however fast the others are."""
    taken, most, held = [0], [0], asyncio.Event()

    async def first_is_slow(request: Request) -> str:
        if number_in(request) == 0:
            await held.wait()
        return "ok"

    def counted() -> Iterator[Sample]:
        for sample in samples(500):
            taken[0] += 1
            yield sample

    async def watch() -> None:
        unchanged = 0
        while unchanged < 20:  # a busy machine may pause the run between two looks
            await asyncio.sleep(0.01)
            unchanged = unchanged + 1 if taken[0] == most[0] > 16 else 0
            most[0] = taken[0]
        held.set()

    bench = Bench(tmp_path, Endpoint(first_is_slow))
    found, _ = await asyncio.gather(bench.results(counted(), InFlightBounds(16)), watch())
    assert len(found) == 500
    assert 16 < most[0] <= 8 * 16


async def test_no_sample_is_begun_while_enough_waits(tmp_path: Path) -> None:
    """Samples of many questions are begun a few at a time: only as many as keep the endpoint busy."""
    taken, most = [0], [0]

    async def answer(request: Request) -> str:
        most[0] = max(most[0], taken[0] - number_in(request))
        await asyncio.sleep(0.001)
        return "ok"

    def counted() -> Iterator[Sample]:
        for sample in samples(200, 10):
            taken[0] += 1
            yield sample

    room = InFlightBounds(window=1_000, waiting=16)
    found = await Bench(tmp_path, Endpoint(answer), concurrency=8).results(counted(), room)
    assert len(found) == 200
    assert most[0] <= 2 * BLOCK + 2


async def test_what_may_be_in_the_air_is_in_the_air(tmp_path: Path) -> None:
    """While there is work, as many requests are in the air as are allowed, never more."""
    now, levels = [0], Counter[int]()

    async def answer(_: Request) -> str:
        now[0] += 1
        levels[now[0]] += 1
        await asyncio.sleep(0.003)
        now[0] -= 1
        return "ok"

    await Bench(tmp_path, Endpoint(answer), concurrency=16).results(samples(120, 5))
    assert max(levels) == 16
    assert levels[16] > 0.8 * 600


async def test_older_blocks_go_first(tmp_path: Path) -> None:
    """No sample of a later block is asked about while one of an earlier block waits in the queue."""
    asked: list[int] = []

    async def answer(request: Request) -> str:
        asked.append(number_in(request) // BLOCK)
        return "ok"

    await Bench(tmp_path, Endpoint(answer), concurrency=1).results(samples(4 * BLOCK, 3), InFlightBounds(2 * BLOCK))
    assert asked == sorted(asked)


def test_requests_with_the_same_beginning_follow_each_other(evaluated: Evaluate) -> None:
    """Within a block, requests with the same rubric and contexts begin with the same bytes and are sent in a row."""
    data = [{**row, "retrieved_contexts": [f"Pool {i % 4}.", "The rest."]} for i, row in enumerate(rows(BLOCK))]
    with JudgeServer() as server:
        evaluated(data, judge="openai:m", base_url=server.base_url, metrics=["context_sufficiency"], concurrency=1)

        def beginning(asked: Asked) -> str:
            return asked.user.partition("user input")[0]

        runs = [beginning for beginning, _ in groupby(server.asked, key=beginning)]
    assert len(server.asked) == BLOCK
    assert len(runs) == len(set(runs)) == 4


async def test_a_conversation_goes_on_before_others_begin(tmp_path: Path) -> None:
    """What a conversation asks next goes before first requests of its block."""
    asked: list[str] = []

    async def answer(request: Request) -> str:
        asked.append(request.messages[1].text)
        return "ok"

    await Bench(tmp_path, Endpoint(answer), concurrency=1, asks=3).results(samples(4))
    assert [text[-6:] for text in asked] == ["turn 0", "turn 1", "turn 2"] * 4


async def test_there_is_no_task_a_question(tmp_path: Path) -> None:
    """Tasks are those of the workers, whatever the number of plans and questions."""
    most = [0]

    async def answer(_: Request) -> str:
        most[0] = max(most[0], len(asyncio.all_tasks()))
        await asyncio.sleep(0.001)
        return "ok"

    before = len(asyncio.all_tasks())
    await Bench(tmp_path, Endpoint(answer), concurrency=8).results(samples(100, 5))
    assert most[0] <= before + 8 + 1


async def test_an_answer_is_committed_though_nothing_follows(tmp_path: Path) -> None:
    """What was answered is on disk soon after, while the next reply is still awaited."""
    held = asyncio.Event()

    async def second_is_slow(request: Request) -> str:
        if number_in(request):
            await held.wait()
        return "ok"

    bench = Bench(tmp_path, Endpoint(second_is_slow))
    running = asyncio.create_task(bench.results(samples(2)))

    def stored() -> int:
        with closing(sqlite3.connect(tmp_path / "s.sqlite")) as db:
            return int(db.execute("SELECT count(*) FROM answers").fetchone()[0])

    for _ in range(200):
        await asyncio.sleep(0.02)
        if stored():
            break
    assert stored() == 1
    held.set()
    await running


async def test_cancelling_keeps_what_was_answered(tmp_path: Path) -> None:
    """After a cancellation the next call asks only what had not been answered."""
    asked: list[int] = []

    async def answer(request: Request) -> str:
        asked.append(number_in(request))
        await asyncio.sleep(0.005)
        return "ok"

    judge = Grader(Endpoint(answer))
    options: dict[str, Any] = {"judge": judge, "metrics": [METRIC], "out": tmp_path / "r", "concurrency": 4}
    data = [sample.to_record() for sample in samples(60)]
    running = asyncio.create_task(merilo.aevaluate(data, **grouped(cache=False, **options)))
    for _ in range(2_000):
        if len(asked) >= 20:
            break
        await asyncio.sleep(0.002)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await merilo.aevaluate(data, **grouped(cache=False, **options))).complete
    twice = [number for number, times in Counter(asked).items() if times > 1]
    assert len(twice) <= 4
    assert set(asked) == set(range(60))


def test_an_endpoint_that_fails_all_leaves_no_failures_behind(
    evaluated: Evaluate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was stopped because everything failed is resumed as if nothing had been asked: same bytes."""
    monkeypatch.setattr("merilo.engine.rate_limits.FIRST_WAIT_S", 0.001)
    with JudgeServer() as server:
        options: dict[str, Any] = {"judge": "openai:m", "base_url": server.base_url, "metrics": [METRIC]}
        whole = evaluated(rows(30), **options)
        needed = server.count
        for fault in (status(500), status(400)):
            server.fail(fault)
            with pytest.raises(merilo.ProviderDown, match=r"The first \d+ requests to"):
                evaluated(rows(30), out=tmp_path / "r", concurrency=4, **options)
            assert not (tmp_path / "r").exists()  # nothing was answered, so nothing is worth resuming
            server.behave()
        assert server.count <= needed + 4 * 10 + 3 * 11 + 2 * (10 + 1 + 4)  # searches; failures, probe, in flight
        assert canonical(evaluated(rows(30), out=tmp_path / "r", **options)) == canonical(whole)


def test_bad_samples_beside_cached_ones_do_not_stop_a_run(evaluated: Evaluate, tmp_path: Path) -> None:
    """Where all that is left to ask is wrong in itself, and the judge is known by the cache, the run ends as usual."""
    with JudgeServer() as server:
        options: dict[str, Any] = {
            "judge": "openai:m",
            "base_url": server.base_url,
            "metrics": [METRIC],
            "cache": tmp_path / "cache.sqlite",
        }
        evaluated(rows(20), **options)
        server.fail(status(400, "too long"))
        run = evaluated(rows(40), **options)
    assert run.complete
    assert run.metrics[METRIC].failed == 20


def test_faults_move_no_byte(evaluated: Evaluate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors, complaints and unreadable replies that pass leave the same manifest, outcomes and summary."""
    monkeypatch.setattr("merilo.engine.rate_limits.FIRST_WAIT_S", 0.001)
    with JudgeServer() as server:
        for seed, fault in enumerate((status(500), status(429), malformed())):
            server.fail(fault, share=0.1, seed=seed, first_attempt_only=True)
        options: dict[str, Any] = {"judge": "openai:m", "base_url": server.base_url, "concurrency": 8}
        troubled = evaluated(rows(12), **options)
        assert len(server.given) == 3
        server.behave()
        assert canonical(troubled) == canonical(evaluated(rows(12), **options))


def test_a_judge_that_sends_nothing_answers_once(evaluated: Evaluate) -> None:
    """Equal questions of samples that are looked up together are answered once, also without a request."""
    asked: Counter[str] = Counter()

    def judge(question: Question[Any]) -> dict[str, Any] | Failure:
        asked[repr(question)] += 1
        return verdict_for(question) if asked[repr(question)] == 1 else Failure(FailureKind.BROKEN, "asked twice")

    data = [{"user_input": "q?", "retrieved_contexts": ["a river"]} for _ in range(20)]
    run = evaluated(data, judge=merilo.ScriptedJudge.by(judge), metrics=[METRIC])
    assert run.metrics[METRIC].scored == 20
    assert set(asked.values()) == {1}
