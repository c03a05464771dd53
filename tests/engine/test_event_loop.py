"""The event loop of our own thread: uvloop's where there is one, else asyncio's, with the same results."""

import asyncio
import sys
import time
from collections.abc import Callable

import pytest
from each_case import each_case
from judged_rivers import Evaluate, rows
from server import JudgeServer, rate_limited

from merilo.engine.event_loop import call_after, loop_factory


@each_case("seconds", [-1.0, 0.0, 0.0001, 0.0004, 0.0051])
@each_case("factory", [loop_factory(), asyncio.new_event_loop])
def test_a_wait_is_never_short(factory: Callable[[], asyncio.AbstractEventLoop], seconds: float) -> None:
    """What is called after some time finds that time over, and can be asked when it will be."""
    with asyncio.Runner(loop_factory=factory) as runner:

        async def waited() -> float:
            loop, done, began = asyncio.get_running_loop(), asyncio.Event(), time.monotonic()
            handle = call_after(loop, seconds, done.set)
            assert began + seconds <= handle.when() <= loop.time() + max(0.0, seconds) + 0.003
            await done.wait()
            return time.monotonic() - began

        assert all(runner.run(waited()) >= seconds for _ in range(20))  # begun at any part of a millisecond


def test_the_shortest_of_pauses_is_kept(evaluated: Evaluate) -> None:
    """An endpoint that asks for less than a millisecond is left alone for that long, and then answers."""
    with JudgeServer() as server:
        server.fail_next(*[rate_limited("0.0002")] * 6)
        run = evaluated(rows(5), judge="openai:m", base_url=server.base_url, metrics=["context_relevance"])
    assert run.metrics["context_relevance"].scored == 5


@pytest.mark.parametrize("installed", [True, False])
def test_a_run_is_the_same_on_both(evaluated: Evaluate, monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    """Requests to a server are sent, answered and scored on either loop."""
    if not installed:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    with JudgeServer() as server:
        run = evaluated(rows(5), judge="openai:m", base_url=server.base_url, metrics=["context_relevance"])
    assert run.metrics["context_relevance"].scored == 5
    assert len(server.asked) == run.usage["requests"]
