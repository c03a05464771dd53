"""Runs the plans of all metrics over a stream of samples; yields results in dataset order."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from itertools import islice, takewhile
from math import inf
from threading import Event
from typing import TYPE_CHECKING, NamedTuple, cast

from merilo.cancellation import Cancelled, cancelled_by
from merilo.engine.budget import own_price
from merilo.engine.drivers import AsyncDriver, WaitingPlan, drive_rounds
from merilo.engine.plan_run import PlanRun
from merilo.errors import ProviderDown, ProviderError, RateLimited, Refused, Temporary, UsageError
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import BatchProvider, Reply
from merilo.providers.questions import ended, replies

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.engine.answer_store import AnswerStore, JudgeRoles
    from merilo.engine.budget import Pricer
    from merilo.judges.base import OutgoingRequest
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
        """Abandon the unfinished samples. The sessions that they started still finish, and their answers are stored."""
        for active in self.active:
            for waiting in active.goings:
                waiting.abandoned = True
                waiting.plan_run.close()

    def _begin(self, sample: Sample, block: int) -> None:
        active = _ActiveSample([PlanRun(metric, text, sample) for text, metric in self._metrics.items()])
        self.active.append(active)
        self._unfinished += 1

        def done(_: PlanRun) -> None:
            active.left -= 1
            if not active.left:
                active.results = [plan_run.result() for plan_run in active.plan_runs]
                # frees memory: the plans hold the texts of all their questions
                active.plan_runs, active.goings = [], []
                self._unfinished -= 1
                self.wake()

        active.goings = [self._driver.begin(plan_run, done, block=block) for plan_run in active.plan_runs]


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
            if time.monotonic() - breathed > YIELD_INTERVAL_S:  # cached answers need no await: nothing else would run
                await asyncio.sleep(0)
                breathed = time.monotonic()
        while active.head_is_done:
            yield active.active.popleft().results
        while driver.waiting and not active.over:  # asked ahead and not needed: paid for, so stored
            await active.moved()
    finally:
        driver.ended.remove_done_callback(active.wake)
        active.close()


# -- in rounds, for judges that answer whole batches ---------------------------------------------------
# A thread processes one window of samples after another, so the event loop stays free. The code does not depend on
# the kind of provider: a model in this process, a batch service or a cluster.

WINDOW = 32
"""Number of samples whose questions are asked in the same rounds."""
_WINDOW_CHARACTERS = 60_000
"""Characters after which no further sample is added to a window. A model in this process reads the texts of a window in
every round, so they must fit its cache (`merilo.judges.encoder.model.TOKENS`)."""
_LATE_CHARACTERS = 2_000_000
"""The same if replies may be late: such a window is one batch of a service."""


class Batches:
    """Sends the requests of a round as one batch per provider; called in a thread. `stop` ends the batches early."""

    def __init__(self) -> None:
        self.event = Event()
        """Set once nothing more may be sent."""

    @property
    def stopped(self) -> bool:
        """True once nothing more may be sent."""
        return self.event.is_set()

    def stop(self, _: BaseException | None = None) -> None:
        """Accept no further replies. Safe from any thread."""
        self.event.set()

    def __call__(self, sends: Sequence[OutgoingRequest]) -> Iterator[tuple[int, Reply | Failure]]:
        """Yield each reply with the index of its request, as it arrives. Raises ProviderDown."""
        providers = {id(send.provider): send.provider for send in sends}
        places: dict[int, list[int]] = {key: [] for key in providers}
        for place, send in enumerate(sends):
            places[id(send.provider)].append(place)
        for key, provider in providers.items():
            batch = [sends[place].request for place in places[key]]
            if not hasattr(provider, "send_batch"):
                name = provider.fingerprint().get("provider", "a provider")
                raise UsageError(
                    f"A metric asked {name}, which its `asks` and `roles` do not declare. "
                    "List all question types and roles there."
                )
            for place, reply in replies(cast("BatchProvider", provider), batch, self.event):
                yield places[key][place], reply if isinstance(reply, Reply) else failure_of(reply)


def asks_in_rounds(metrics: Iterable[Metric], roles: JudgeRoles) -> bool:
    """Return True if all judges that these metrics may ask support rounds."""
    asked = [roles.judge(kind, role) for metric in metrics for role in metric.roles for kind in metric.asks]
    return all(getattr(judge, "supports_batches", False) for judge in asked)


async def in_rounds(
    samples: Iterable[Sample],
    metrics: Mapping[str, Metric],
    answers: AnswerStore,
    batches: Batches,
    *,
    window: int = WINDOW,
    price: Pricer = own_price,
    count: Callable[[int], None] = lambda _: None,
    late: bool = False,
) -> AsyncGenerator[list[Result], None]:
    """Yield the results of one sample after another, in dataset order, each in metric order; see `stream`.

    `samples` and `answers` are used in a thread while the loop waits for it. Ends early, after the last complete
    sample, when `batches` is stopped. If cancelled, it stops them and waits for the thread. `count` is called in the
    thread with the number of answers that needed no request. If replies may be `late`, the samples after an incomplete
    one are processed too, but their results are not yielded.
    """
    loop, source, more, whole = asyncio.get_running_loop(), iter(samples), True, True
    characters = _LATE_CHARACTERS if late else _WINDOW_CHARACTERS

    def drive(plan_runs: Sequence[PlanRun]) -> None:
        drive_rounds(plan_runs, answers, batches, price=price, count=count, late=late)
        answers.commit()  # the next batch may take hours

    def work() -> _Done:
        with cancelled_by(batches.event):
            return _window(_next_samples(source, window, characters), metrics, drive)

    while more and not batches.stopped:
        # executor threads do not inherit context variables, such as that of the cancellation
        running = loop.run_in_executor(None, copy_context().run, work)
        try:
            done, more, complete = await asyncio.shield(running)
        except asyncio.CancelledError:
            batches.stop()
            await ended(running)
            raise
        breathed = time.monotonic()
        for results in done if whole else ():
            yield results
            if time.monotonic() - breathed > YIELD_INTERVAL_S:
                await asyncio.sleep(0)
                breathed = time.monotonic()
        whole = whole and complete


class _Done(NamedTuple):
    results: list[list[Result]]
    """Of each sample that has all its results, up to the first that has not."""
    more: bool
    """False at the end of the data."""
    complete: bool
    """True if all samples of the window have their results."""


def _next_samples(source: Iterator[Sample], window: int, characters: int) -> list[Sample]:
    """Return the next samples: at most `window`, and fewer if they are long, since all are in memory at once."""
    samples: list[Sample] = []
    while len(samples) < window and characters > 0 and (sample := next(source, None)) is not None:
        samples.append(sample)
        contexts = (*(sample.retrieved_contexts or ()), *(sample.reference_contexts or ()))
        texts = (sample.user_input, sample.response, sample.reference, *(context.text for context in contexts))
        characters -= sum(len(text) for text in texts if text is not None)
    return samples


def _window(
    samples: Sequence[Sample], metrics: Mapping[str, Metric], drive: Callable[[Sequence[PlanRun]], None]
) -> _Done:
    """Return the results of some samples, up to the first that does not have all of them."""
    plan_runs = [[PlanRun(metric, text, sample) for text, metric in metrics.items()] for sample in samples]
    everyone = [plan_run for each in plan_runs for plan_run in each]
    try:
        with suppress(Cancelled):  # as if the batch had ended early
            drive(everyone)
    finally:
        for plan_run in everyone:
            plan_run.close()
    whole = takewhile(lambda each: all(plan_run.done for plan_run in each), plan_runs)
    results = [[plan_run.result() for plan_run in each] for each in whole]
    return _Done(results, bool(samples), len(results) == len(samples))


def failure_of(error: ProviderError) -> Failure:
    """Return the failure of a request without a reply. Raises ProviderDown, which is not a question's failure."""
    if isinstance(error, ProviderDown):
        raise error
    if isinstance(error, Refused):
        return Failure(FailureKind.REFUSED, str(error))
    passing = isinstance(error, RateLimited | Temporary)
    return Failure(FailureKind.TEMPORARY if passing else FailureKind.PERMANENT, str(error))
