"""How requests travel: retried, timed, held back and given up; over real servers, and endpoints within the process."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from endpoints import Endpoint, asking
from server import JudgeServer, hang, rate_limited, reset, status

import merilo
from merilo.engine import dispatcher as dispatching
from merilo.engine import endpoint_queue, rate_limits
from merilo.engine.dispatcher import Dispatcher
from merilo.engine.rate_limits import RequestLimits, title_of
from merilo.errors import Permanent, ProviderDown, RateLimited, Refused, Temporary, TooLarge, Unreachable
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Reply, Request
from merilo.providers.openai import OpenAIProvider


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(rate_limits, "MAX_WAIT_S", 0.05)


def provider(server: JudgeServer, **options: Any) -> OpenAIProvider:
    return OpenAIProvider("test-model", base_url=server.base_url, **options)


async def carried(
    count: int, endpoint: Any, limits: RequestLimits | None = None, **options: Any
) -> list[Reply | Failure]:
    """What comes back for so many different requests, sent side by side."""
    async with Dispatcher(limits, **options) as dispatcher:
        sends = [asking(endpoint, f"question {number}") for number in range(count)]
        return list(await asyncio.gather(*map(dispatcher.carry, sends)))


async def test_what_may_pass_is_sent_again(server: JudgeServer) -> None:
    """After errors of the server and a broken connection the reply comes; the user is told of each once."""
    server.fail_next(status(500), status(503), reset(), status(500))
    said: list[str] = []
    (reply,) = await carried(1, provider(server), tell=said.append)
    assert isinstance(reply, Reply)
    assert server.count == 5
    assert len(said) == len(set(said)) == 3
    assert all(sentence.endswith("Retrying.") for sentence in said)


async def test_what_cannot_pass_is_not_sent_again(server: JudgeServer) -> None:
    """A request that the server calls wrong is a failure, and is sent once."""
    server.fail(status(400, "no such thing"))
    (reply,) = await carried(1, provider(server))
    assert isinstance(reply, Failure)
    assert reply.kind is FailureKind.PERMANENT
    assert server.count == 1


async def test_retries_end(server: JudgeServer) -> None:
    """A server that always fails is asked 1 + RETRIES times; then the failure says what it said."""
    server.fail(status(500, "on fire"))
    (reply,) = await carried(1, provider(server))
    assert isinstance(reply, Failure)
    assert reply.kind is FailureKind.TEMPORARY
    assert "on fire" in reply.message
    assert server.count == 1 + rate_limits.RETRIES


@pytest.mark.parametrize(("refused", "fifth"), [(1, {"d"}), (3, {"a", "b", "c"})])
async def test_retry_after_holds_for_the_refused(server: JudgeServer, refused: int, fifth: set[str]) -> None:
    """A refused request waits as long as its 429 asks; the others wait too only after three refusals in a row."""
    async with Dispatcher(RequestLimits(concurrency=1)) as dispatcher:
        endpoint = provider(server)
        await dispatcher.carry(asking(endpoint, "0"))
        server.fail_next(*[rate_limited("1")] * refused)
        began = time.monotonic()
        replies = await asyncio.gather(*(dispatcher.carry(asking(endpoint, text)) for text in "abcd"))
    texts = [asked.about for asked in server.asked]
    assert texts[:4] == list("0abc")
    assert texts[4] in fifth
    assert len(texts) == 5 + refused
    assert all(isinstance(reply, Reply) for reply in replies)
    assert time.monotonic() - began >= 1.0


async def test_requests_reached_requests_are_waited_out(server: JudgeServer) -> None:
    """More 429s than other errors would be forgiven are no failure."""
    server.fail_next(*[rate_limited("0")] * (rate_limits.RETRIES + 3))
    (reply,) = await carried(1, provider(server))
    assert isinstance(reply, Reply)


async def test_nothing_waits_after_the_end() -> None:
    """A request that comes after the end is cancelled at once, since no queue sends it."""
    async with Dispatcher() as dispatcher:
        dispatcher.stop(None)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(dispatcher.carry(asking(Endpoint(lambda _: "ok"), "a")), 100)


async def test_endless_complaints_end(server: JudgeServer) -> None:
    """429 for ever is a failure in the end."""
    server.fail(rate_limited("0"))
    (reply,) = await carried(1, provider(server))
    assert isinstance(reply, Failure)
    assert server.count == 1 + rate_limits.LIMITED_RETRIES


async def test_a_pause_of_hours_ends_the_run(server: JudgeServer) -> None:
    """An endpoint that says to come back much later stops the run, with its words and the time."""
    server.fail(rate_limited("7200", "daily quota"))
    with pytest.raises(ProviderDown, match=r"daily quota.*asked to wait 7200 s"):
        await carried(1, provider(server))


async def test_a_hanging_request_is_broken_off_and_sent_again(server: JudgeServer) -> None:
    """A reply that does not come in time is asked for again; `timeout_s` of the run goes before the provider's."""
    server.fail_next(hang())
    (reply,) = await carried(1, provider(server), RequestLimits(timeout_s=0.3))
    assert isinstance(reply, Reply)
    assert server.count == 2


async def test_a_provider_that_keeps_no_time_is_broken_off() -> None:
    """The watchdog cancels a send that outlives its time where the provider has no limit of its own."""
    asked: list[str] = []

    async def hangs_once(request: Request) -> str:
        asked.append(request.messages[1].text)
        if len(asked) == 1:
            await asyncio.sleep(3_600)
        return "ok"

    (reply,) = await carried(1, Endpoint(hangs_once), RequestLimits(timeout_s=0.2))
    assert isinstance(reply, Reply)
    assert len(asked) == 2


async def test_a_provider_that_cannot_be_cancelled_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A send that swallows its cancellation loses its worker, not the run: another one goes on."""
    monkeypatch.setattr(endpoint_queue, "_GRACE_S", 0.1)
    monkeypatch.setattr(dispatching, "_MAX_CLOSING_S", 0.1)
    asked, over = [0], asyncio.Event()

    async def stubborn(_: Request) -> str:
        asked[0] += 1
        while asked[0] == 1 and not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        return "ok"

    (first, second) = await carried(2, Endpoint(stubborn), RequestLimits(timeout_s=0.2, concurrency=1))
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    over.set()


async def test_wrong_requests_before_any_reply_are_held_until_there_is_one() -> None:
    """Failures of the first requests are told when another has got a reply: then they are their own."""
    released = asyncio.Event()

    async def first_fails(request: Request) -> str:
        if request.messages[1].text == "question 0":
            raise Permanent("too long")
        await released.wait()
        return "ok"

    async with Dispatcher() as dispatcher:
        endpoint = Endpoint(first_fails)
        wrong, right = (asyncio.ensure_future(dispatcher.carry(asking(endpoint, f"question {n}"))) for n in range(2))
        await asyncio.sleep(0.05)
        assert not wrong.done()
        released.set()
        assert isinstance(await wrong, Failure)
        assert isinstance(await right, Reply)


@pytest.mark.parametrize("error", [Permanent("no"), Temporary("down"), RateLimited("later")])
async def test_an_endpoint_that_answers_nothing_stops_the_run(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """When the first requests all fail, the run stops after a few, and says how many and why."""
    monkeypatch.setattr(rate_limits, "LIMITED_RETRIES", 2)
    asked = Counter[str]()

    async def refuses(request: Request) -> str:
        asked[request.messages[1].text] += 1
        raise error

    with pytest.raises(ProviderDown, match=r"The first \d+ requests to .* failed\. Last error: .*"):
        await carried(500, Endpoint(refuses), RequestLimits(concurrency=4))
    assert 5 <= len(asked) <= 5 + 2 * 4 + 3


async def test_a_few_bad_samples_first_do_not_stop_the_run() -> None:
    """Where the first thirty requests are wrong and others are not, probes from the far end of the queue find out."""

    async def some_are_wrong(request: Request) -> str:
        if int(request.messages[1].text.split()[1]) < 30:
            raise Permanent("too long")
        return "ok"

    replies = await carried(60, Endpoint(some_are_wrong), RequestLimits(concurrency=2))
    assert [isinstance(reply, Failure) for reply in replies] == [True] * 30 + [False] * 30


async def test_wrong_requests_never_stop_a_run_that_got_replies() -> None:
    """A hundred requests in a row that are wrong in themselves are a hundred failures."""

    async def only_the_first(request: Request) -> str:
        if request.messages[1].text != "question 0":
            raise Permanent("too long")
        return "ok"

    replies = await carried(101, Endpoint(only_the_first), RequestLimits(concurrency=1))
    assert sum(isinstance(reply, Failure) for reply in replies) == 100


async def test_an_endpoint_that_dies_stops_the_run_after_twenty(monkeypatch: pytest.MonkeyPatch) -> None:
    """After replies, twenty requests given up in a row for passing reasons are enough."""
    monkeypatch.setattr(endpoint_queue, "RETRIES", 1)
    asked = [0]

    async def dies(_: Request) -> str:
        asked[0] += 1
        if asked[0] > 10:
            raise Temporary("overloaded")
        return "ok"

    with pytest.raises(ProviderDown, match=r"20 consecutive requests .* overloaded"):
        await carried(500, Endpoint(dies), RequestLimits(concurrency=1))
    assert asked[0] == 10 + 2 * 20 + 1  # an answered request is repeated before the run stops


@pytest.mark.parametrize(
    ("poisoned", "error", "concurrency"),
    [
        (lambda n: n % 5 == 0, Temporary("reset"), 16),
        (lambda n: n < 24, Unreachable("refused", sent=False), 1),
        (lambda n: n >= 96, Unreachable("refused", sent=False), 16),
    ],
)
async def test_prompts_that_always_break_the_connection_fail_alone(
    monkeypatch: pytest.MonkeyPatch, poisoned: Callable[[int], bool], error: Exception, concurrency: int
) -> None:
    """If a fifth of the prompts always gets a connection error, these fail and all others are answered."""
    monkeypatch.setattr(rate_limits, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(endpoint_queue, "UNREACHABLE_RETRY_S", 0.2)

    async def breaks(request: Request) -> str:
        if poisoned(int(request.messages[1].text.split()[1])):
            raise error
        return "ok"

    replies = await carried(120, Endpoint(breaks), RequestLimits(concurrency=concurrency))
    assert [isinstance(reply, Failure) for reply in replies] == [poisoned(number) for number in range(120)]


@pytest.mark.parametrize(
    ("error", "left"),
    [(Temporary("reset"), 60), (Unreachable("no server", sent=False), 60), (Unreachable("no server", sent=False), 3)],
)
async def test_a_server_that_is_gone_stops_the_run(
    monkeypatch: pytest.MonkeyPatch, error: Exception, left: int
) -> None:
    """If no prompt is answered any more, the run stops, however few requests of it are left."""
    monkeypatch.setattr(rate_limits, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(endpoint_queue, "UNREACHABLE_RETRY_S", 0.2)
    replied = [0]

    async def ends(_: Request) -> str:
        if replied[0] == 100 - left:
            raise error
        replied[0] += 1
        return "ok"

    with pytest.raises(ProviderDown):
        await carried(100, Endpoint(ends), RequestLimits(concurrency=4))


async def test_single_failures_are_told_when_nothing_else_is_left(server: JudgeServer) -> None:
    """Three requests that fail, and no others, are three failures: nothing more can be learnt."""
    server.fail(status(400))
    replies = await carried(3, provider(server))
    assert [isinstance(reply, Failure) for reply in replies] == [True] * 3


async def test_an_error_in_a_users_provider_fails_that_question_alone() -> None:
    """The failure names the provider and the error; it is no bug in merilo, and the other questions are answered."""

    async def parses(request: Request) -> str:
        return {"text": "ok"}["none" if "7" in request.messages[1].text else "text"]

    replies = await carried(10, endpoint := Endpoint(parses))
    (failure,) = [reply for reply in replies if isinstance(reply, Failure)]
    assert failure.message == f"the provider {title_of(endpoint)} raised KeyError: 'none'"


@each_case(
    ("error", "kind"), [(Refused("not that"), FailureKind.REFUSED), (TooLarge("too long"), FailureKind.TOO_LARGE)]
)
async def test_a_refusal_is_a_reply_of_the_endpoint(error: Exception, kind: FailureKind) -> None:
    """An endpoint that refuses everything for its content or size is at work: each request is refused, none stops."""

    async def declines(_: Request) -> str:
        raise error

    replies = await carried(30, Endpoint(declines))
    assert [reply.kind for reply in replies if isinstance(reply, Failure)] == [kind] * 30


def test_runs_in_two_threads_are_both_done(server: JudgeServer, tmp_path: Path) -> None:
    """Two evaluations in threads of their own are both done, each with no more in the air than it allows."""
    server._delay_s = 0.005

    def run(name: str) -> merilo.Run:
        data = [{"user_input": f"{name}?", "retrieved_contexts": [f"{name} {number}."]} for number in range(40)]
        return merilo.evaluate(
            data,
            judge={"spec": "openai:test-model", "base_url": server.base_url},
            metrics=["context_relevance"],
            out=tmp_path / name,
            storage={"cache": False},
            limits={"concurrency": 3},
        )

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(run, ["first", "second"]))
    assert all(run.complete and not run.metrics["context_relevance"].failed for run in runs)
    assert server.count == 80
    assert 1 < server.most_at_once <= 6


async def test_cancelled_requests_free_the_endpoint(server: JudgeServer) -> None:
    """A run that is cancelled gives back what it had in the air at the endpoint."""
    server.fail(hang())
    endpoint = provider(server)
    task = asyncio.create_task(carried(4, endpoint, RequestLimits(concurrency=4)))
    for _ in range(1_000):
        if server.count == 4:
            break
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.behave()
    assert all(isinstance(reply, Reply) for reply in await carried(4, endpoint, RequestLimits(concurrency=1)))
