"""Streams the samples of a run through the plans of its metrics; results come out in dataset order."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from merilo.engine.walk import Walk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

    from merilo.data.sample import Sample
    from merilo.engine.drive import AsyncDriver, Going
    from merilo.metrics.base import Metric
    from merilo.runs.outcomes import Result

BLOCK = 8
"""So many consecutive samples are asked about together: within a block, requests that begin alike follow each other."""
_SPAN = 8
"""How many windows lie at most between the oldest unfinished sample and the newest: one slow reply stops nobody."""
_BATCH = 8
"""Samples begun together, so that what they ask is looked up together."""
BREATH_S = 0.01
"""Whoever hands out results without waiting lets others run so often."""


def window_for(concurrency: int) -> int:
    """Samples alive at once: enough to keep so many requests in the air, few enough for any memory."""
    return max(2 * BLOCK, 4 * concurrency)


def window_until(concurrency: int) -> int:
    """The same for a run that may stop at any sample: no more than keep so many requests in the air."""
    return max(1, concurrency)


class _Alive:
    """A sample on its way: its walks, then its results."""

    __slots__ = ("goings", "left", "results", "walks")

    def __init__(self, walks: list[Walk]) -> None:
        self.walks = walks
        self.left = len(walks)
        self.goings: list[Going] = []
        self.results: list[Result] = []


class _Stream:
    """The samples alive, oldest first."""

    def __init__(self, metrics: Mapping[str, Metric], driver: AsyncDriver, span: int) -> None:
        self._metrics = metrics
        self._driver = driver
        self._span = span
        self.alive: deque[_Alive] = deque()
        self.unfinished = 0
        self._moved: asyncio.Future[None] | None = None

    @property
    def head_is_done(self) -> bool:
        return bool(self.alive) and not self.alive[0].left

    def begin_some(self, samples: Iterator[tuple[int, Sample]], window: int) -> bool:
        """Set the plans of the next few samples going, as many as there is room for; false when there are no more."""
        room = min(_BATCH, window - self.unfinished, self._span * window - len(self.alive))
        some = list(islice(samples, room))
        for number, sample in some:
            self._begin(sample, number // BLOCK)
        self._driver.go_on()
        return len(some) == room

    def has_room(self, window: int) -> bool:
        """Whether one more sample may be begun."""
        return self.unfinished < window and len(self.alive) < self._span * window

    @property
    def over(self) -> bool:
        """True when a limit was reached, so that nothing more will be answered. Raises what else ended the run."""
        ended = self._driver.ended
        if ended.done():
            ended.result()
        return ended.done()

    async def moved(self) -> None:
        """Wait until a sample is done, or nothing more will be."""
        self._moved = asyncio.get_running_loop().create_future()
        await self._moved

    def wake(self, _: object = None) -> None:
        """Let `moved` return."""
        if self._moved is not None and not self._moved.done():
            self._moved.set_result(None)

    def close(self) -> None:
        """Abandon what is not done."""
        for alive in self.alive:
            for going in alive.goings:
                self._driver.abandon(going)

    def _begin(self, sample: Sample, block: int) -> None:
        alive = _Alive([Walk(metric, text, sample) for text, metric in self._metrics.items()])
        self.alive.append(alive)
        self.unfinished += 1

        def done(_: Walk) -> None:
            alive.left -= 1
            if not alive.left:
                self._finished(alive)

        alive.goings = [self._driver.begin(walk, done, block=block) for walk in alive.walks]

    def _finished(self, alive: _Alive) -> None:
        alive.results = [walk.result() for walk in alive.walks]
        alive.walks, alive.goings = [], []  # the plans hold the texts of all they asked
        self.unfinished -= 1
        self.wake()


async def stream(
    samples: Iterable[Sample], metrics: Mapping[str, Metric], driver: AsyncDriver, *, window: int, span: int = _SPAN
) -> AsyncIterator[list[Result]]:
    """The results of one sample after another, in dataset order, each in metric order.

    At most `window` samples are unfinished, and at most `span` times as many are between the oldest of them and the
    newest. Ends early, after the last whole sample, when the carrier has reached a limit.
    """
    alive, source = _Stream(metrics, driver, span), enumerate(samples)
    driver.ended.add_done_callback(alive.wake)
    more, breathed = True, time.monotonic()
    try:
        while (more or alive.alive) and not alive.over:
            if more and alive.has_room(window):
                more = alive.begin_some(source, window)
            elif not alive.head_is_done:
                await alive.moved()
            while alive.head_is_done:
                yield alive.alive.popleft().results
            if time.monotonic() - breathed > BREATH_S:  # what needs no request must let others run
                await asyncio.sleep(0)
                breathed = time.monotonic()
        while alive.head_is_done:
            yield alive.alive.popleft().results
    finally:
        driver.ended.remove_done_callback(alive.wake)
        alive.close()
