"""An evaluation on several workers, with a runner that works in this process instead of a cluster."""

from __future__ import annotations

import json
import random
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import floor
from typing import TYPE_CHECKING, Any

import pytest
from grouping import grouped
from hypothesis import given
from hypothesis import strategies as st
from judged_rivers import rows, verdict_for

import merilo
from merilo.commands.evaluate import distributed
from merilo.commands.evaluate.distributed import BlockResult, Blocks, Board, Used, planned_blocks
from merilo.commands.evaluate.options import Limits, Options
from merilo.commands.evaluate.ray_pool import Pool
from merilo.engine.budget import Budget, BudgetDecision, Spending, own_price
from merilo.engine.progress import Traffic
from merilo.errors import DataError, LimitReached, ProviderDown
from merilo.runs.ledger import Charge

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from pathlib import Path

    from merilo.commands.evaluate.ray_pool import Work
    from merilo.judging.questions import Question

METRICS = ["context_relevance", "faithfulness"]


@dataclass
class Killed(BaseException):
    """A worker was killed."""


@contextmanager
def here_pool(work: Work, make_shared: Callable[[], object], workers: int) -> Generator[Pool]:
    """A pool of one worker in this process, which runs each block again if it is killed."""
    del workers
    shared = make_shared()

    def call(name: str, *args: object) -> object:
        return getattr(shared, name)(*args)

    def results(blocks: Iterable[int]) -> Iterator[object]:
        for block in blocks:
            while True:
                try:
                    yield work(block, call)
                except Killed:
                    continue
                break

    yield Pool(call, results)


@pytest.fixture(autouse=True)
def runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "runner_of", lambda _: here_pool)


@dataclass
class Judge:
    """A judge that fails now and then, as the tests want it."""

    asked: int = 0
    killed_at: tuple[int, ...] = ()

    def __call__(self, question: Question[Any]) -> dict[str, Any]:
        self.asked += 1
        if self.asked in self.killed_at:
            raise Killed
        return verdict_for(question)


def data(folder: Path, count: int) -> Path:
    path = folder / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(count)), encoding="utf-8")
    return path


def evaluated(path: Path, out: Path, judge: Judge, **options: Any) -> merilo.Run:
    scripted = merilo.ScriptedJudge.by(judge, version="1")
    return merilo.evaluate(path, **grouped(metrics=METRICS, judge=scripted, out=out, cache=False, **options))


def same(one: Path, other: Path) -> bool:
    names = ("outcomes.jsonl", "summary.json", "manifest.json")
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_the_results_are_those_of_one_process(tmp_path: Path) -> None:
    """The files are equal byte for byte, the runs of the shards are removed, and a repeated command changes nothing."""
    path = data(tmp_path, 11)
    evaluated(path, tmp_path / "one", Judge())
    found = evaluated(path, tmp_path / "many", Judge(), runner="ray", workers=2)
    assert found.complete
    assert same(tmp_path / "one", tmp_path / "many")
    assert not (tmp_path / "many.shards").exists()
    judge = Judge()
    assert evaluated(path, tmp_path / "many", judge, runner="ray", workers=2).complete
    assert judge.asked == 0


def test_a_killed_worker_costs_only_what_was_in_flight(tmp_path: Path) -> None:
    """The killed worker's shard resumes from its store: with one question in flight, each kill repeats one question."""
    path = data(tmp_path, 9)
    first = Judge()
    evaluated(path, tmp_path / "one", first)
    judge = Judge(killed_at=(7, 15))
    evaluated(path, tmp_path / "many", judge, runner="ray", workers=2, concurrency=1)
    assert same(tmp_path / "one", tmp_path / "many")
    assert first.asked + 2 <= judge.asked <= first.asked + 4


def test_a_block_that_always_kills_its_worker_is_given_up(tmp_path: Path) -> None:
    """After three deaths without another sample done it ends with an error, so it cannot cost requests for ever."""
    board = Board(Budget(), 2, {1: {"max_cost_usd": 0.0, "max_requests": 0.0}})
    assert board.begin(1) is None
    for done in (1, 2, 3, 4):  # each worker gets one sample further
        board.report(1, done, Traffic())
        assert board.begin(1) is None
    assert board.begin(1) is None
    blocks = Blocks("data.jsonl", Options(), tmp_path, 4, 2, None)
    result = blocks(1, lambda name, *args: getattr(board, name)(*args))
    assert "The worker of shard 1 died 3 times in a row" in result.error


def test_a_limit_stops_all_workers_and_a_higher_one_resumes(tmp_path: Path) -> None:
    """LimitReached names the spending of all; no request is sent above it, and the resumed run has equal bytes."""
    path = data(tmp_path, 8)
    calls = Calls()
    options: dict[str, Any] = {"metrics": ["context_relevance"], "judge": calls, "cache": False}
    merilo.evaluate(path, **grouped(out=tmp_path / "one", **options))
    total, calls.asked = calls.asked, 0
    ray: dict[str, Any] = {"out": tmp_path / "many", "runner": "ray", "workers": 2}
    with pytest.raises(LimitReached, match=r"Limit of 5 requests reached .* 5 sent by these runs"):
        merilo.evaluate(path, **grouped(max_requests=5, **options, **ray))
    assert calls.asked == 5
    assert merilo.evaluate(path, **grouped(max_requests=1_000, **options, **ray)).complete
    assert calls.asked == total
    assert same(tmp_path / "one", tmp_path / "many")


class Calls:
    """A callable judge, which counts its questions."""

    asked = 0

    async def __call__(self, question: Question[Any]) -> dict[str, Any]:
        self.asked += 1
        return verdict_for(question)


def test_the_error_of_a_worker_is_raised_as_it_was(tmp_path: Path) -> None:
    """Invalid data is a DataError with its text; nothing is left of a new directory."""
    path = data(tmp_path, 3)
    with path.open("a") as file:
        file.write("not JSON\n")
    with pytest.raises(DataError, match="1 invalid record"):
        evaluated(path, tmp_path / "many", Judge(), runner="ray", workers=1)
    assert not (tmp_path / "many").exists()
    assert not (tmp_path / "many.shards").exists()


def test_no_time_left_is_a_limit_too(tmp_path: Path) -> None:
    """The seconds of the call count for all workers, from its beginning."""
    with pytest.raises(LimitReached, match="Time limit of 0 s reached"):
        merilo.evaluate(
            data(tmp_path, 3),
            judge=Calls(),
            out=tmp_path / "many",
            storage={"cache": False},
            limits={"runner": "ray", "workers": 1, "max_seconds": 0},
        )


def test_data_at_an_address_are_copied_for_the_workers(tmp_path: Path) -> None:
    """The run of memory://bucket/data.jsonl has the bytes of that of the file, also when it is repeated."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    path = data(tmp_path, 3)
    memory.pipe_file("/bucket/data.jsonl", path.read_bytes())
    evaluated(path, tmp_path / "one", Judge())
    for _ in range(2):
        judge = merilo.ScriptedJudge.by(Judge(), version="1")
        address, out = "memory://bucket/data.jsonl", tmp_path / "many"
        merilo.evaluate(
            address, metrics=METRICS, judge=judge, out=out, storage={"cache": False}, limits={"runner": "ray"}
        )
        assert same(tmp_path / "one", out)


@pytest.mark.parametrize(
    ("samples", "workers", "names", "blocks"),
    [
        (1_000, 2, [], 8),
        (3, 2, [], 3),
        (0, 2, [], 1),
        (1_000, 50, ["1-of-8", "3-of-8", "cache.sqlite", ".lock"], 8),
    ],
)
def test_blocks_are_planned_once(samples: int, workers: int, names: list[str], blocks: int) -> None:
    """There are four blocks for each worker, none of them empty. A resumed evaluation keeps its number of blocks."""
    assert planned_blocks(samples, workers, names) == blocks


def test_a_dead_worker_is_noted_and_its_traffic_counts() -> None:
    """The board adds the requests of a worker that died to those of the one that resumes its block."""
    board = Board(Budget(), 2, {})
    assert board.begin(1) is None
    assert board.report(1, 5, Traffic(sent=7, in_flight=2, cost_usd=0.5))
    assert board.begin(1) is None
    assert board.report(1, 3, Traffic(sent=4, in_flight=1, cost_usd=None))
    status = board.status()
    assert (status.done, status.traffic.sent, status.traffic.in_flight, status.traffic.cost_usd) == (5, 11, 1, None)
    assert [text.partition(" died")[0] for text in status.notes] == ["The worker of shard 1"]
    board.stop()
    assert not board.report(1, 4, Traffic())
    assert board.begin(2) == BlockResult()


def test_each_worker_has_its_part_of_a_rate(tmp_path: Path) -> None:
    """And all of the concurrency, which is a limit of each process."""
    options = Options(limits=Limits(requests_per_minute=60, tokens_per_minute=1_000, concurrency=3))
    limits = Blocks("data.jsonl", options, tmp_path, 16, 4, None)._limits
    assert (limits.requests_per_minute, limits.tokens_per_minute, limits.concurrency) == (15, 250, 3)


calls = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 30), st.integers(1, 20), st.booleans()), min_size=1, max_size=60
)


@given(limit=st.integers(0, 400), workers=st.integers(1, 8), asked=calls)
def test_the_sum_of_grants_never_exceeds_the_limit(
    limit: int, workers: int, asked: list[tuple[int, int, int, bool]]
) -> None:
    """The sum stays below the limit for any requests, uses and returns. A request that fits is granted."""
    board = Board(Budget(max_requests=limit), workers, {})
    used, granted = dict.fromkeys(range(1, 5), 0), dict.fromkeys(range(1, 5), 0.0)
    for holder, use, more, gives_back in asked:
        used[holder] = min(used[holder] + use, floor(granted[holder]))
        left = limit - sum(granted.values()) + granted[holder] - used[holder]
        granted[holder] = board.grant(holder, "max_requests", used[holder], more)
        assert sum(granted.values()) <= limit
        assert (granted[holder] >= used[holder] + more) is (left >= more)
        if gives_back:
            board.finish(holder, {"max_requests": used[holder], "max_cost_usd": 0.0})
            granted[holder] = used[holder]


def test_what_was_used_before_counts() -> None:
    """An evaluation that is resumed has only the rest of its limit."""
    before: dict[int, Used] = {n: {"max_cost_usd": usd, "max_requests": 1.0} for n, usd in ((1, 0.6), (2, 0.3))}
    board = Board(Budget(max_cost_usd=1.0), 2, before)
    assert board.grant(3, "max_cost_usd", 0.0, 0.2) == 0.0
    assert board.status().refused == {"max_cost_usd": 0.2}
    assert board.grant(3, "max_cost_usd", 0.0, 0.1) == pytest.approx(0.1)


@pytest.mark.parametrize("limits", [{"max_requests": 40}, {"max_cost_usd": 0.04}])
def test_spending_of_several_processes_stops_at_the_shared_limit(limits: dict[str, Any]) -> None:
    """Four run directories, each with its own account, together send exactly what the limit allows."""
    budget = Budget(**limits)
    board = Board(budget, 4, {})
    accounts = [Spending(budget, own_price, grant=partial(board.grant, number)) for number in range(4)]
    requests, open_accounts = 0, list(accounts)
    while open_accounts:
        account = random.Random(requests).choice(open_accounts)
        if (refusal := account.check(0.001)) is not None:
            assert refusal.limited in {BudgetDecision.OVER, BudgetDecision.EXPENSIVE}
            open_accounts.remove(account)
            continue
        entry = account.begin(0.001, Charge(1, 0, 0.001))
        account.ledger.replied(entry, Charge(1, 1, 0.001))
        account._release(0.001)
        requests += 1
    assert requests == 40


def test_a_provider_that_is_down_stops_all_workers(tmp_path: Path) -> None:
    """ProviderDown is raised with its message, and the command can be repeated."""
    options: dict[str, Any] = {"base_url": "http://127.0.0.1:9/v1", "out": tmp_path / "many"}
    with pytest.raises(ProviderDown, match=r"127\.0\.0\.1:9"):
        merilo.evaluate(
            data(tmp_path, 4),
            **grouped(metrics=["context_relevance"], judge="openai:m", runner="ray", workers=1, cache=False, **options),
        )
