"""Streams the samples of a run through the plans of its metrics; results come out in dataset order."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from merilo.engine.walk import Walk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from merilo.data.sample import Sample
    from merilo.engine.answers import Answers
    from merilo.engine.drive import AsyncDriver
    from merilo.metrics.base import Metric
    from merilo.runs.outcomes import Result


def window_for(concurrency: int) -> int:
    """Samples alive at once: enough to keep so many requests in the air, few enough that samples get finished."""
    return max(16, 2 * concurrency)


async def stream(
    samples: Iterable[Sample],
    metrics: Mapping[str, Metric],
    driver: AsyncDriver,
    answers: Answers,
    *,
    window: int,
) -> AsyncIterator[list[Result]]:
    """The results of one sample after another, in dataset order, each in metric order.

    At most `window` samples are alive between the oldest unfinished one and the newest begun.
    """
    alive: deque[asyncio.Task[list[Result]]] = deque()
    try:
        for sample in samples:
            alive.append(asyncio.create_task(_sample(sample, metrics, driver)))
            if len(alive) >= window:
                await _head(alive, answers)
            while alive and alive[0].done():
                yield alive.popleft().result()
        while alive:
            await _head(alive, answers)
            while alive and alive[0].done():
                yield alive.popleft().result()
    finally:
        for task in alive:
            task.cancel()
        await asyncio.gather(*alive, return_exceptions=True)


async def _head(alive: deque[asyncio.Task[list[Result]]], answers: Answers) -> None:
    """Wait for the oldest sample; while waiting, commit what was answered within its time limit."""
    while not alive[0].done():
        await asyncio.wait({alive[0]}, timeout=0.02)
        answers.commit_if_due()


async def _sample(sample: Sample, metrics: Mapping[str, Metric], driver: AsyncDriver) -> list[Result]:
    walks = [Walk(metric, text, sample) for text, metric in metrics.items()]
    if len(walks) == 1:
        await driver.walk(walks[0])
    else:
        side_by_side = [asyncio.ensure_future(driver.walk(walk)) for walk in walks]
        try:
            await asyncio.gather(*side_by_side)
        finally:
            for task in side_by_side:
                task.cancel()
    return [walk.result() for walk in walks]
