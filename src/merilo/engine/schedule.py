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
    span: int = _SPAN
    """Maximum number of windows between the oldest unfinished sample and the newest."""


def in_flight_bounds(concurrency: int) -> InFlightBounds:
    """Return bounds that keep `concurrency` requests in flight, with limited memory and early first results."""
    return InFlightBounds(window=max(2 * BLOCK, 4 * concurrency), waiting=max(2 * BLOCK, 2 * concurrency))


def early_stop_bounds(concurrency: int) -> InFlightBounds:
    """Return bounds for a run that may stop at any sample: only as many samples as keep `concurrency` requests in
    flight.
    """
    return InFlightBounds(window=max(1, concurrency), span=1)


class _ActiveSample:
    """A sample in progress: its plan runs, then its results."""

    __slots__ = ("goings", "left", "results", "walks")

    def __init__(self, walks: list[PlanRun]) -> None:
        self.walks = walks
        self.left = len(walks)
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
        self.alive: deque[_ActiveSample] = deque()
        self._more = True
        self._unfinished = 0
        self._moved: asyncio.Future[None] | None = None

    @property
    def head_is_done(self) -> bool:
        return bool(self.alive) and not self.alive[0].left

    @property
    def done(self) -> bool:
        """True when all samples were started and all results were yielded."""
        return not self._more and not self.alive

    @property
    def has_room(self) -> bool:
        """True if there is another sample and the bounds allow it to start."""
        return self._more and self._driver.waiting < self._room.waiting and self._places > 0

    @property
    def _places(self) -> int:
        room = self._room
        # finished samples wait for older ones, since results are yielded in order: the second term bounds them
        return min(room.window - self._unfinished, room.span * room.window - len(self.alive))

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
        """Let `moved` return if another sample may start."""
        if self.has_room:
            self.wake()

    def close(self) -> None:
        """Abandon the unfinished samples."""
        for alive in self.alive:
            for going in alive.goings:
                self._driver.abandon(going)

    def _begin(self, sample: Sample, block: int) -> None:
        alive = _ActiveSample([PlanRun(metric, text, sample) for text, metric in self._metrics.items()])
        self.alive.append(alive)
        self._unfinished += 1

        def done(_: PlanRun) -> None:
            alive.left -= 1
            if not alive.left:
                self._finished(alive)

        alive.goings = [self._driver.begin(walk, done, block=block) for walk in alive.walks]

    def _finished(self, alive: _ActiveSample) -> None:
        alive.results = [walk.result() for walk in alive.walks]
        alive.walks, alive.goings = [], []  # frees memory: the plans hold the texts of all their questions
        self._unfinished -= 1
        self.wake()


async def stream(
    samples: Iterable[Sample], metrics: Mapping[str, Metric], driver: AsyncDriver, room: InFlightBounds
) -> AsyncIterator[list[Result]]:
    """Yield the results of one sample after another, in dataset order, each in metric order.

    Ends early, after the last complete sample, if the dispatcher has reached a limit.
    """
    alive = _Stream(samples, metrics, driver, room)
    driver.ended.add_done_callback(alive.wake)
    driver.on_reply = alive.on_reply
    breathed = time.monotonic()
    try:
        while not alive.done and not alive.over:
            if alive.has_room:
                alive.begin_some()
            elif not alive.head_is_done:
                await alive.moved()
            while alive.head_is_done:
                yield alive.alive.popleft().results
            if (
                time.monotonic() - breathed > YIELD_INTERVAL_S
            ):  # cached answers need no await, so nothing else would run
                await asyncio.sleep(0)
                breathed = time.monotonic()
        while alive.head_is_done:
            yield alive.alive.popleft().results
    finally:
        driver.ended.remove_done_callback(alive.wake)
        alive.close()
