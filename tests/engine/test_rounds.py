"""Rounds: what many samples ask goes to a judge in batches, in a thread, and no result depends on it."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from endpoints import Grader, asking
from grouping import grouped
from judged_rivers import Evaluate, canonical, rows

import merilo
from merilo.data.sample import Sample
from merilo.engine.answer_store import AnswerStore, JudgeRoles
from merilo.engine.progress import Traffic
from merilo.engine.schedule import WINDOW, Batches, asks_in_rounds, in_rounds
from merilo.errors import Permanent, ProviderDown, ProviderError, RateLimited, Refused, Temporary
from merilo.judges.base import Conversation
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.splitter import SplitterJudge
from merilo.judging.ask import Plan, ask
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.judging.kinds.measured import Sentences
from merilo.judging.kinds.responses import Completion
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Card, Failed, Kinds, MetricDefaults, Score, Undefined
from merilo.metrics.registry import parse_metric
from merilo.providers.base import Connection, Reply, ReplyPath, Request, Usage
from merilo.providers.questions import gathered
from merilo.runs.outcomes import Result
from merilo.runs.store import Store

METRIC = "context_relevance"


def number_in(request: Request) -> int:
    """The number of the sample that a request is about."""
    return int(request.messages[1].text[:5])


def graded(request: Request) -> Reply:
    """A reply that depends on the sample's number alone."""
    return Reply((str(number_in(request) % 3),), path=ReplyPath.LOCAL)


@dataclass(frozen=True)
class Shelf:
    """A provider of batches whose replies a function makes; the last request of a batch is answered first."""

    told: Callable[[Request], Reply | ProviderError] = graded
    batches: list[int] = field(default_factory=list[int])

    def fingerprint(self) -> Mapping[str, object]:
        return {"provider": "shelf"}

    def connect(self, *, known: Mapping[str, str] | None = None) -> AbstractAsyncContextManager[Connection]:
        del known
        return gathered(self)

    def price_usd(self, usage: Usage) -> float | None:
        del usage
        return 0.0

    def send_batch(self, requests: Sequence[Request]) -> Generator[tuple[int, Reply | ProviderError], None, None]:
        self.batches.append(len(requests))
        for place in reversed(range(len(requests))):
            yield place, self.told(requests[place])


@dataclass(frozen=True)
class ShelfJudge(Grader):
    """Takes the last reply for the grade."""

    supports_batches: bool = True
    cacheable = False

    def answer(self, question: Any) -> Conversation:
        grade = 0
        for turn in range(self.asks):
            (reply,) = yield (asking(self.provider, f"{question.sentences[0]} turn {turn}"),)
            if isinstance(reply, Failure):
                return (reply,)
            grade = int(reply.text)
        return (RelevanceVerdict(grade, (0,) if grade else ()),)


def data(count: int) -> list[dict[str, Any]]:
    """Samples with two contexts, of which the second is that of their neighbour too."""
    return [
        {"id": f"s{n}", "user_input": "q?", "retrieved_contexts": [f"{n:05} is one.", f"{n // 2:05} is shared."]}
        for n in range(count)
    ]


class Bench:
    """Rounds over a shelf, without the rest of an evaluation."""

    def __init__(self, path: Path, shelf: Shelf, *, asks: int = 1) -> None:
        self.store = Store.open(path / "s.sqlite", create=True)
        self.answers = AnswerStore(JudgeRoles({"judge": ShelfJudge(shelf, asks)}), self.store, None)
        self.batches = Batches()
        self.known = 0

    async def results(self, source: Iterator[Sample], *, window: int = WINDOW) -> list[list[Result]]:
        return [results async for results in self.coming(source, window=window)]

    def coming(self, source: Iterator[Sample], *, window: int = WINDOW) -> Any:
        metrics = {METRIC: parse_metric(METRIC)}
        return in_rounds(source, metrics, self.answers, self.batches, window=window, count=self.count)

    def count(self, known: int) -> None:
        self.known += known


def samples(count: int) -> Iterator[Sample]:
    return (Sample(**row) for row in data(count))


def answered(store: Path) -> int:
    """Answers that are on disk."""
    try:
        with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM answers").fetchone()[0])
    except sqlite3.Error:  # there is no such file or table yet
        return 0


class ByRequest(EmbeddedJudge):
    """The embedded judge as a run asks it that asks others too."""

    @property
    def supports_batches(self) -> bool:
        return False


# what comes out


def test_rounds_and_requests_give_the_same_bytes(evaluated: Evaluate) -> None:
    """The embedded judge gives the same manifest, outcomes and summary in rounds and beside judges at an address."""
    several = [*rows(WINDOW + 5), {"id": "bare", "user_input": "Why?"}]
    whole = evaluated(several, judge="embedded")
    assert whole.metrics[METRIC].scored == WINDOW + 5
    assert canonical(evaluated(several, judge=ByRequest())) == canonical(whole)


def test_what_is_known_is_counted_and_nothing_is_sent(evaluated: Evaluate, tmp_path: Path) -> None:
    """Progress hears of every sample and of answers from the cache; no request is counted."""

    class Watch:
        def __init__(self) -> None:
            self.done = 0

        def begin(self, run: Path, samples: int) -> None: ...
        def advance(self, samples: int) -> None:
            self.done += samples

        def note(self, text: str) -> None: ...
        def end(self) -> None:
            self.last = self.traffic()

        def watch(self, traffic: Callable[[], Traffic]) -> None:
            self.traffic = traffic

    first, second = Watch(), Watch()
    options: dict[str, Any] = {"judge": "embedded", "metrics": [METRIC], "cache": tmp_path / "cache.sqlite"}
    evaluated(data(40), **options, progress=first)
    run = evaluated(data(40), **options, progress=second)
    assert (first.done, second.done) == (40, 40)
    assert (first.last.sent, second.last.sent, run.usage["requests"]) == (0, 0, 0)
    assert second.last.known == 80
    assert run.usage["cached"] == 60


# the loop


async def test_the_loop_goes_on_while_a_batch_is_answered(tmp_path: Path) -> None:
    """Whatever runs in the event loop runs while the judge is at work: here each reply waits for it."""
    turns, over = threading.Semaphore(0), asyncio.Event()

    def after_a_turn(request: Request) -> Reply:
        if not turns.acquire(timeout=100):
            raise AssertionError("the loop stands still")
        return graded(request)

    async def others() -> None:
        while not over.is_set():
            turns.release()
            await asyncio.sleep(0.001)

    other = asyncio.create_task(others())
    found = await Bench(tmp_path, Shelf(after_a_turn)).results(samples(20))
    over.set()
    await other
    assert len(found) == 20


@each_case(("characters", "most"), [(1, 10), (40_000, 2)])
async def test_no_more_than_a_window_is_read_ahead(characters: int, most: int, tmp_path: Path) -> None:
    """Samples are taken from the data window by window, as their results are taken; fewer of long ones."""
    taken, done = 0, 0

    def counted() -> Iterator[Sample]:
        nonlocal taken
        for sample in samples(100):
            taken += 1
            yield replace(sample, response="a" * characters)

    async for _ in Bench(tmp_path, Shelf()).coming(counted(), window=10):
        assert taken - done <= most
        done += 1
    assert done == 100


# stopping


async def test_answers_are_on_disk_while_the_batch_goes_on(tmp_path: Path) -> None:
    """What was answered is committed while the rest of the batch is still awaited."""
    made, seen = 0, threading.Event()

    def slowly(request: Request) -> Reply:
        nonlocal made
        made += 1
        if made < 4:
            time.sleep(0.3)  # longer than answers wait for their commit
        elif not seen.wait(timeout=100):
            raise AssertionError("nothing is on disk")
        return graded(request)

    running = asyncio.create_task(Bench(tmp_path, Shelf(slowly)).results(samples(20)))
    for _ in range(1_000):
        await asyncio.sleep(0.01)
        if found := answered(tmp_path / "s.sqlite"):
            break
    seen.set()
    assert len(await running) == 20
    assert 0 < found < 4


async def test_cancelling_breaks_a_batch_off_and_keeps_what_was_answered(tmp_path: Path) -> None:
    """Cancelled, it ends with the reply that is being made; going on gives the same bytes and asks the rest."""
    asked: list[int] = []
    halfway, advance_ready = threading.Event(), threading.Event()

    def told(request: Request) -> Reply:
        asked.append(number_in(request))
        if len(asked) == 70:
            halfway.set()
            advance_ready.wait(timeout=100)
        return graded(request)

    options: dict[str, Any] = {"judge": ShelfJudge(Shelf(told)), "metrics": [METRIC], "cache": False}
    running = asyncio.create_task(merilo.aevaluate(data(100), **grouped(out=tmp_path / "r", **options)))
    await asyncio.to_thread(halfway.wait, 20)
    running.cancel()
    await asyncio.sleep(0.05)
    assert not running.done()
    advance_ready.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(asked) == 70
    part = merilo.Run.open(tmp_path / "r")
    assert part.metrics[METRIC].scored == WINDOW
    again = await merilo.aevaluate(data(100), **grouped(out=tmp_path / "r", **options))
    assert len(asked) == 150
    assert canonical(again) == canonical(await merilo.aevaluate(data(100), **grouped(out=tmp_path / "w", **options)))


def test_a_limit_of_time_ends_it_as_a_run_to_go_on_with(evaluated: Evaluate, tmp_path: Path) -> None:
    """When the time is up the batch is broken off; the run says why, and going on ends with the same bytes."""

    def slow(request: Request) -> Reply:
        time.sleep(0.005)
        return graded(request)

    options: dict[str, Any] = {"judge": ShelfJudge(Shelf(slow)), "metrics": [METRIC], "out": tmp_path / "r"}
    part = evaluated(data(200), max_seconds=0.7, **options)
    assert not part.complete
    assert "0.7 s reached" in part.usage["stopped"]
    assert part.metrics[METRIC].failed == 0
    quick: dict[str, Any] = options | {"judge": ShelfJudge(Shelf())}
    whole = evaluated(data(200), **quick | {"out": tmp_path / "w"})
    assert canonical(evaluated(data(200), **quick)) == canonical(whole)


# what goes wrong


@each_case(
    ("error", "kind"),
    [
        (Refused("no"), FailureKind.REFUSED),
        (Temporary("busy"), FailureKind.TEMPORARY),
        (RateLimited("later"), FailureKind.TEMPORARY),
        (Permanent("too long"), FailureKind.PERMANENT),
    ],
)
async def test_an_error_is_the_failure_of_its_question(error: ProviderError, kind: FailureKind, tmp_path: Path) -> None:
    """A request that brought an error fails its own plans, with the reason, and no other."""

    def told(request: Request) -> Reply | ProviderError:
        return error if number_in(request) == 3 else graded(request)

    found = await Bench(tmp_path, Shelf(told)).results(samples(6))
    failed = {result.sample: result.outcome for (result,) in found if isinstance(result.outcome, Failed)}
    assert failed == {"s3": Failed(Failure(kind, str(error)))}


def test_a_provider_that_is_down_stops_the_run(evaluated: Evaluate, tmp_path: Path) -> None:
    """No request can work: the run stops, keeps what was answered and records no failure."""
    asked: list[int] = []

    def told(request: Request) -> Reply | ProviderError:
        asked.append(number_in(request))
        return ProviderDown("The model is gone.") if len(asked) == 80 else graded(request)

    options: dict[str, Any] = {"judge": ShelfJudge(Shelf(told)), "metrics": [METRIC], "out": tmp_path / "r"}
    with pytest.raises(ProviderDown, match="The model is gone"):
        evaluated(data(100), **options)
    assert merilo.Run.open(tmp_path / "r").metrics[METRIC].failed == 0
    assert evaluated(data(100), **options).metrics[METRIC].scored == 100
    assert len(asked) == 151


@each_case("fault", ["missing", "twice", "bug"])
async def test_a_faulty_provider_is_no_silent_gap(fault: str, tmp_path: Path) -> None:
    """A provider that forgets a request, replies twice or breaks ends the run with an error that names it."""

    class Faulty(Shelf):
        def send_batch(self, requests: Sequence[Request]) -> Generator[tuple[int, Reply | ProviderError], None, None]:
            yield 0, graded(requests[0])
            if fault == "twice":
                yield 0, graded(requests[0])
            if fault == "bug":
                raise KeyError("Faulty")

    with pytest.raises((RuntimeError, KeyError), match="Faulty"):
        await Bench(tmp_path, Faulty()).results(samples(5))


@dataclass(frozen=True, slots=True)
class Asks(MetricDefaults):
    """Asks for a completion, and says so or not."""

    honest: bool
    name = "made:asks"
    version = 1
    card = Card("Nothing.", family="made")
    needs = frozenset({"user_input"})

    @property
    def asks(self) -> Kinds:
        return Kinds({Completion}) if self.honest else Kinds({Relevance})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        yield from ask(Completion("en/noncommittal.v1", ("user_input", "response"), (sample.require("user_input"), "")))
        return Score(1.0)


def test_rounds_are_chosen_by_what_the_metrics_ask() -> None:
    """A run asks in rounds when everyone it may ask takes batches: who else is there does not matter."""
    roles = JudgeRoles({"judge": EmbeddedJudge(), "embedder": Grader(Shelf()), "splitter": SplitterJudge()})
    assert asks_in_rounds([parse_metric(METRIC)], roles)
    assert not asks_in_rounds([Asks(honest=True)], JudgeRoles({"judge": merilo.ScriptedJudge.of(["a"])}))
    assert not asks_in_rounds([parse_metric(METRIC)], JudgeRoles({"judge": ByRequest()}))
    assert Sentences in SplitterJudge().answers
    assert not getattr(SplitterJudge(), "supports_batches", False)


# beside other judges


async def test_a_connection_gathers_what_is_posted_together() -> None:
    """What is sent in one turn of the loop is one batch; what comes while it is answered is the next."""
    hold, began = threading.Event(), threading.Event()

    def told(request: Request) -> Reply:
        began.set()
        hold.wait(timeout=100)
        return graded(request)

    shelf = Shelf(told)
    async with shelf.connect() as connection:

        def sent(numbers: range) -> list[asyncio.Task[Reply]]:
            return [asyncio.create_task(connection.send(asking(shelf, f"{n:05}").request)) for n in numbers]

        tasks = sent(range(5))
        await asyncio.to_thread(began.wait, 20)
        tasks += sent(range(5, 12))
        await asyncio.sleep(0)
        hold.set()
        assert [int((await task).text) for task in tasks] == [n % 3 for n in range(12)]
    assert shelf.batches == [5, 7]


async def test_closing_a_connection_waits_for_its_thread() -> None:
    """Nothing is asked after a connection is closed, and the reply that was being made is waited for."""
    asked: list[int] = []
    began, hold = threading.Event(), threading.Event()

    def told(request: Request) -> Reply:
        asked.append(number_in(request))
        began.set()
        hold.wait(timeout=100)
        return graded(request)

    shelf = Shelf(told)
    async with shelf.connect() as connection:
        tasks = [asyncio.create_task(connection.send(asking(shelf, f"{n:05}").request)) for n in range(5)]
        await asyncio.to_thread(began.wait, 20)
        for task in tasks:
            task.cancel()
        asyncio.get_running_loop().call_later(0.05, hold.set)
    assert hold.is_set()
    assert len(asked) == 1
