"""The time that local models take for a run, estimated before its first question."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from merilo.engine.dry_run import DryRun
from merilo.providers.questions import thread_count
from merilo.rendering.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.engine.answer_store import AnswerStore, LookUp
    from merilo.judges.local.judge import LocalTime
    from merilo.metrics.base import Metric

_LOOKED_AT: Final = 200
"""Maximum samples whose questions are counted, spread evenly."""


def local_time(samples: int, metrics: Mapping[str, Metric], answers: AnswerStore, look_up: LookUp) -> LocalTime | None:
    """Return the estimate for the samples in a run's store; None if it is under a minute."""
    if look_up.run is None:
        return None
    dry = DryRun(answers, look_up.held, lambda provider, usage: provider.price_usd(usage), {})
    looked_at = 0
    for each in islice(look_up.run.samples(), 0, None, max(1, -(-samples // _LOOKED_AT))):
        dry.add(each, metrics)
        looked_at += 1
    return dry.local.time(samples / max(looked_at, 1))


def time_sentence(time: LocalTime) -> str:
    """Return an estimate for the user."""
    return f"The local model will take about {time_text(time)}."


def time_text(time: LocalTime) -> str:
    """Return the duration, and what it is based on."""
    threads = count(thread_count(), "thread")
    return f"{duration(time.seconds)} on {threads} of this machine, measured on {count(time.questions, 'question')}"
