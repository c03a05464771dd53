"""A limit of time and Ctrl-C end local work in the middle of one huge text, and what was answered is kept."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from judged_rivers import canonical

import merilo
from merilo.judges.blended import BlendedModel
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.encoder.model import Encoder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from merilo.judges.encoder.model import Encoded
    from merilo.judges.encoder.windows import Window

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
        BlendedModel.load()._rows.clear()  # with what was encoded before


def test_a_limit_of_time_ends_one_huge_text(
    judge: EmbeddedJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run stops between two windows of the text; resumed, it gives the same bytes as one that never stopped."""
    whole = merilo.evaluate([SHORT, HUGE], judge=judge, out=tmp_path / "whole", **OPTIONS)
    with monkeypatch.context() as patch:
        slow = SlowEncoder(patch)
        part = merilo.evaluate([SHORT, HUGE], judge=judge, out=tmp_path / "part", max_seconds=1.0, **OPTIONS)
    assert not part.complete
    assert "seconds" in part.usage["stopped"]
    assert slow.windows < 12
    assert part.metrics["context_relevance"].failed == 0
    resumed = merilo.evaluate([SHORT, HUGE], judge=judge, out=tmp_path / "part", **OPTIONS)
    assert canonical(resumed) == canonical(whole)


async def test_a_cancelled_run_ends_within_one_huge_text(
    judge: EmbeddedJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled while the first window is encoded, as by Ctrl-C, it encodes no more than the next ones."""
    slow = SlowEncoder(monkeypatch)
    running = asyncio.create_task(merilo.aevaluate([HUGE], judge=judge, out=tmp_path / "run", **OPTIONS))
    assert await asyncio.to_thread(slow.has_replies.wait, 60)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert slow.windows < 12
