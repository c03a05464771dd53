"""Runs the plans of all metrics over a stream of samples; yields results in dataset order."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import TYPE_CHECKING

from merilo.engine.plan_run import PlanRun

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from merilo.data.sample import Sample
    from merilo.engine.drivers import AsyncDriver, WaitingPlan
    from merilo.metrics.base import Metric
    from merilo.runs.outcomes import Result

BLOCK = 8
"""Number of consecutive samples in a block. Within a block, requests with the same beginning follow each other."""
_SPAN = 8
"""Windows between the oldest unfinished sample and the newest; enough that one slow reply does not stop the others."""
_BATCH = 4
"""Number of samples started together, so that their questions are looked up together."""
YIELD_INTERVAL_S = 0.01
"""Seconds between yields to the event loop while results need no waiting."""


@dataclass(frozen=True, slots=True)
class InFlightBounds:
    """Bounds on concurrent work. No new sample starts while any bound is reached."""

    window: int
    """Maximum number of unfinished samples."""
    waiting: float = inf
    """Maximum number of judge sessions that wait for a reply."""


def in_flight_bounds(concurrency: int) -> InFlightBounds:
    """Return bounds that keep `concurrency` requests in flight, with limited memory and early first results."""
    return InFlightBounds(window=max(2 * BLOCK, 4 * concurrency), waiting=max(2 * BLOCK, 2 * concurrency))


class _ActiveSample:
    """A sample in progress: its plan runs, then its results."""

    __slots__ = ("goings", "left", "plan_runs", "results")

    def __init__(self, plan_runs: list[PlanRun]) -> None:
        self.plan_runs = plan_runs
        self.left = len(plan_runs)
        self.goings: list[WaitingPlan] = []
        self.results: list[Result] = []


class _Stream:
    """The samples in progress, oldest first."""

    def __init__(
        self, samples: Iterable[Sample], metrics: Mapping[str, Metric], driver: AsyncDriver, room: InFlightBounds
    ) -> None:
        self._samples = enumerate(samples)
        self._metrics = metrics
        self._driver = driver
        self._room = room
        self.active: deque[_ActiveSample] = deque()
        self._more = True
        self._unfinished = 0
        self._moved: asyncio.Future[None] | None = None

    @property
    def head_is_done(self) -> bool:
        return bool(self.active) and not self.active[0].left

    @property
    def done(self) -> bool:
        """True when all samples were started and all results were yielded."""
        return not self._more and not self.active

    @property
    def has_room(self) -> bool:
        """True if there is another sample and the bounds allow it to start."""
        return self._more and self._driver.waiting < self._room.waiting and self._places > 0

    @property
    def _places(self) -> int:
        room = self._room
        # finished samples wait for older ones, since results are yielded in order: the second term bounds them
        return min(room.window - self._unfinished, _SPAN * room.window - len(self.active))

    def begin_some(self) -> None:
        """Start the plans of the next few samples, as many as the bounds allow."""
        places = min(_BATCH, self._places)
        some = list(islice(self._samples, places))
        for number, sample in some:
            self._begin(sample, number // BLOCK)
        self._driver.advance_ready()
        self._more = len(some) == places

    @property
    def over(self) -> bool:
        """True if a limit was reached, so no more answers will come. Raises the error that ended the run, if any."""
        ended = self._driver.ended
        if ended.done():
            ended.result()
        return ended.done()

    async def moved(self) -> None:
        """Wait until a sample is done, or no more answers will come."""
        self._moved = asyncio.get_running_loop().create_future()
        await self._moved

    def wake(self, _: object = None) -> None:
        """Let `moved` return."""
        if self._moved is not None and not self._moved.done():
            self._moved.set_result(None)

    def on_reply(self) -> None:
        """Let `moved` return if another sample may start, or if all results were yielded."""
        if self.has_room or self.done:
            self.wake()

    def close(self) -> None:
        """Abandon the unfinished samples."""
        for active in self.active:
            for waiting in active.goings:
                self._driver.abandon(waiting)

    def _begin(self, sample: Sample, block: int) -> None:
        active = _ActiveSample([PlanRun(metric, text, sample) for text, metric in self._metrics.items()])
        self.active.append(active)
        self._unfinished += 1

        def done(_: PlanRun) -> None:
            active.left -= 1
            if not active.left:
                self._finished(active)

        active.goings = [self._driver.begin(plan_run, done, block=block) for plan_run in active.plan_runs]

    def _finished(self, active: _ActiveSample) -> None:
        active.results = [plan_run.result() for plan_run in active.plan_runs]
        active.plan_runs, active.goings = [], []  # frees memory: the plans hold the texts of all their questions
        self._unfinished -= 1
        self.wake()


async def stream(
    samples: Iterable[Sample], metrics: Mapping[str, Metric], driver: AsyncDriver, room: InFlightBounds
) -> AsyncIterator[list[Result]]:
    """Yield the results of one sample after another, in dataset order, each in metric order.

    Ends early, after the last complete sample, if the dispatcher has reached a limit.
    """
    active = _Stream(samples, metrics, driver, room)
    driver.ended.add_done_callback(active.wake)
    driver.on_reply = active.on_reply
    breathed = time.monotonic()
    try:
        while not active.done and not active.over:
            if active.has_room:
                active.begin_some()
            elif not active.head_is_done:
                await active.moved()
            while active.head_is_done:
                yield active.active.popleft().results
            if (
                time.monotonic() - breathed > YIELD_INTERVAL_S
            ):  # cached answers need no await, so nothing else would run
                await asyncio.sleep(0)
                breathed = time.monotonic()
        while active.head_is_done:
            yield active.active.popleft().results
        while driver.waiting and not active.over:  # asked ahead and not needed: paid for, so stored
            await active.moved()
    finally:
        driver.ended.remove_done_callback(active.wake)
        active.close()
