"""A limit of time and Ctrl-C end local work in the middle of one huge text, and what was answered is kept."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from grouping import grouped
from judged_rivers import canonical

import merilo
from merilo.judges.blended import BlendedModel
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.encoder.model import Encoded, Encoder
from merilo.judges.encoder.wordpiece import Window

SENTENCES = 250
SLOW_S = 0.3
"""Seconds that the slowed encoder takes for a window; the text has about 25."""
SHORT = {"id": "short", "user_input": "How long is the river?", "retrieved_contexts": ["The river is 5 km long."]}
HUGE = {
    "id": "huge",
    "user_input": "How long is the river?",
    "retrieved_contexts": [" ".join(f"River {n} of the north is {n + 3} km long." for n in range(SENTENCES))],
}
OPTIONS: dict[str, Any] = {"metrics": ["context_relevance"], "cache": False}


class ByRequest(EmbeddedJudge):
    """The embedded judge as a run asks it that asks other judges too."""

    @property
    def supports_batches(self) -> bool:
        return False


@pytest.fixture(params=[EmbeddedJudge, ByRequest])
def judge(request: pytest.FixtureRequest) -> EmbeddedJudge:
    found: EmbeddedJudge = request.param()
    return found


class SlowEncoder:
    """Counts the windows of huge texts that are encoded, and takes its time for each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.windows = 0
        self.has_replies = threading.Event()
        encode: Callable[[Encoder, Window], Encoded] = Encoder.encode_window

        def slowly(encoder: Encoder, window: Window) -> Encoded:
            if len(window.pieces) > 100:
                self.windows += 1
                self.has_replies.set()
                time.sleep(SLOW_S)
            return encode(encoder, window)

        monkeypatch.setattr(Encoder, "encode_window", slowly)
        BlendedModel.load()._features.clear()  # with what was encoded before


def test_a_limit_of_time_ends_one_huge_text(
    judge: EmbeddedJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run stops between two windows of the text; resumed, it gives the same bytes as one that never stopped."""
    whole = merilo.evaluate([SHORT, HUGE], **grouped(judge=judge, out=tmp_path / "whole", **OPTIONS))
    with monkeypatch.context() as patch:
        slow = SlowEncoder(patch)
        part = merilo.evaluate([SHORT, HUGE], **grouped(judge=judge, out=tmp_path / "part", max_seconds=1.0, **OPTIONS))
    assert not part.complete
    assert "seconds" in part.usage["stopped"]
    assert slow.windows < 12
    assert part.metrics["context_relevance"].failed == 0
    resumed = merilo.evaluate([SHORT, HUGE], **grouped(judge=judge, out=tmp_path / "part", **OPTIONS))
    assert canonical(resumed) == canonical(whole)


async def test_a_cancelled_run_ends_within_one_huge_text(
    judge: EmbeddedJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled while the first window is encoded, as by Ctrl-C, it encodes no more than the next ones."""
    slow = SlowEncoder(monkeypatch)
    running = asyncio.create_task(merilo.aevaluate([HUGE], **grouped(judge=judge, out=tmp_path / "run", **OPTIONS)))
    assert await asyncio.to_thread(slow.has_replies.wait, 60)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert slow.windows < 12


UNENDING = """
import asyncio, threading
from contextlib import asynccontextmanager
from dataclasses import dataclass
import merilo
from merilo.judges.llm import LLMJudge

def blocks(question):
    threading.Event().wait()

async def waits(question):
    await asyncio.Event().wait()

async def ignores_cancellation(*_):
    while True:
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            pass

class Model:
    def invoke(self, *_, **__):
        threading.Event().wait()

@dataclass(frozen=True)
class Provider:
    def fingerprint(self):
        return {"provider": "own", "model": "m"}

    def price_usd(self, usage):
        return 0.0

    @asynccontextmanager
    async def connect(self, *, known=None):
        yield self
        await ignores_cancellation()

    async def send(self, request):
        await ignores_cancellation()

    def adaptations(self):
        return {}

    notices = adaptations

own = LLMJudge(Provider())
model = Model()
rows = [{"user_input": f"Which city is {n}?", "retrieved_contexts": ["Paris is a city."]} for n in range(3)]
options = {"metrics": ["context_relevance"], "storage": {"cache": False}, "progress": None}
"""
"""Judges that never answer."""


@each_case("judge", ["blocks", "waits", "ignores_cancellation", "own", "model"])
def test_a_judge_that_never_answers_does_not_outlast_the_time(judge: str, tmp_path: Path) -> None:
    """The time limit ends the run and lets the process exit; what was in flight stays charged as unanswered."""
    program = (
        f"{UNENDING}\nrun = merilo.evaluate(rows, judge={judge}, limits=dict(max_seconds=0.5), out='run', **options)\n"
        "print(run.complete, run.usage['stopped'])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert found.stdout.startswith("False Time limit of 0.5 s reached"), found


@pytest.mark.parametrize("judge", ["blocks", "ignores_cancellation"])
def test_ctrl_c_ends_a_judge_that_never_answers(judge: str, tmp_path: Path) -> None:
    """After Ctrl-C the process exits, although a thread or a task of the judge does not."""
    program = f"{UNENDING}\nmerilo.evaluate(rows, judge={judge}, out='run', **options)"
    running = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        while running.poll() is None and not (tmp_path / "run" / "outcomes.jsonl.part").exists():
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=100)
    finally:
        running.kill()
    assert "Interrupted: Stopped" in errors


def test_a_thread_of_a_plugin_does_not_block_the_exit() -> None:
    """The command ends with its code while a thread pool, which Python waits for, still hangs."""
    program = """if True:
        import threading
        from concurrent.futures import ThreadPoolExecutor
        from merilo import cli

        def outcome(words):
            ThreadPoolExecutor().submit(threading.Event().wait)
            return 5

        cli.outcome, cli._EXIT_SECONDS = outcome, 0.1
        cli.main()
    """
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 5
