"""An evaluation on several workers, with a runner that works in this process instead of a cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from grouping import grouped
from judged_rivers import rows, verdict_for

import merilo
from merilo.commands.evaluate import distributed
from merilo.commands.evaluate.distributed import Blocks, planned_blocks
from merilo.commands.evaluate.options import Limits, Options
from merilo.errors import DataError, LimitReached, ProviderDown, RunError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from merilo.commands.evaluate.ray_pool import Work
    from merilo.judging.questions import Question

RUNNER_OF = distributed.runner_of
METRICS = ["context_relevance", "faithfulness"]


@dataclass
class Killed(BaseException):
    """A worker was killed."""


def here_pool(work: Work, blocks: Iterable[int], workers: int) -> Iterator[object]:
    """One worker in this process, which runs each block again if it is killed."""
    del workers
    for block in blocks:
        while True:
            try:
                yield work(block)
            except Killed:
                continue
            break


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
    progress = Notes()
    evaluated(path, tmp_path / "many", judge, runner="ray", workers=2, concurrency=1, progress=progress)
    assert [text.partition(" died")[0] for text in progress.notes] == ["The worker of shard 1", "The worker of shard 2"]
    assert same(tmp_path / "one", tmp_path / "many")
    assert first.asked + 2 <= judge.asked <= first.asked + 4


class Notes:
    """A progress that collects its calls."""

    def __init__(self) -> None:
        self.done, self.notes, self.sent = 0, list[str](), 0

    def begin(self, run: Path, samples: int) -> None:
        self.path, self.samples = run, samples

    def advance(self, samples: int) -> None:
        self.done += samples

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self) -> None:
        self.samples += 1_000


def test_a_block_that_always_kills_its_worker_is_given_up(tmp_path: Path) -> None:
    """After ten deaths it ends with an error, so it cannot cost requests for ever; the next call begins at 0."""
    judge = Judge(killed_at=tuple(range(1, 11)))
    with pytest.raises(RunError, match=r"The worker of shard 1 died 10 times\."):
        evaluated(data(tmp_path, 9), tmp_path / "many", judge, runner="ray", workers=2, concurrency=1)
    assert judge.asked == 10
    assert evaluated(data(tmp_path, 9), tmp_path / "many", judge, runner="ray", workers=2).complete


def test_a_limit_stops_all_workers_and_a_higher_one_resumes(tmp_path: Path) -> None:
    """Each shard has an equal part; no request is sent above it, and the resumed run has equal bytes."""
    path = data(tmp_path, 8)
    calls = Calls()
    options: dict[str, Any] = {"metrics": ["context_relevance"], "judge": calls, "cache": False}
    merilo.evaluate(path, **grouped(out=tmp_path / "one", **options))
    total, calls.asked = calls.asked, 0
    ray: dict[str, Any] = {"out": tmp_path / "many", "runner": "ray", "workers": 2}
    with pytest.raises(LimitReached, match=r"A shard reached its part of a limit: Limit of 1 request"):
        merilo.evaluate(path, **grouped(max_requests=8, **options, **ray))
    assert calls.asked == 8
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


def test_each_worker_has_its_part_of_a_rate(tmp_path: Path) -> None:
    """And all of the concurrency, which is a limit of each process. Each block has its part of the other limits."""
    options = Options(
        limits=Limits(requests_per_minute=60, tokens_per_minute=1_000, concurrency=3, max_requests=40, max_cost_usd=8.0)
    )
    limits = Blocks("data.jsonl", options, tmp_path, 16, 4, None)._limits(1)
    assert (limits.requests_per_minute, limits.tokens_per_minute, limits.concurrency) == (15, 250, 3)
    assert (limits.max_requests, limits.max_cost_usd) == (3, 0.5)


def test_each_block_has_its_part_of_the_requests(tmp_path: Path) -> None:
    """The parts of all blocks are the limit, also if it has fewer requests than blocks."""
    blocks = Blocks("data.jsonl", Options(limits=Limits(max_requests=6)), tmp_path, 4, 2, None)
    assert [blocks._limits(block).max_requests for block in blocks.all] == [2, 2, 1, 1]


def test_a_provider_that_is_down_stops_all_workers(tmp_path: Path) -> None:
    """ProviderDown is raised with its message, and the command can be repeated."""
    options: dict[str, Any] = {"base_url": "http://127.0.0.1:9/v1", "out": tmp_path / "many"}
    with pytest.raises(ProviderDown, match=r"127\.0\.0\.1:9"):
        merilo.evaluate(
            data(tmp_path, 4),
            **grouped(metrics=["context_relevance"], judge="openai:m", runner="ray", workers=1, cache=False, **options),
        )
