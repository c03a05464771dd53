"""An evaluation on several workers: shards of the data are evaluated as runs, and merged into one.

The runs of the shards are in the directory RUN.shards until RUN itself is written, in one step. So the
same command resumes an interrupted evaluation, and repeats only what was in flight. Each block of a runner is a shard;
workers and driver share a `Board`. design/scale.md explains the choices.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.cancellation import in_thread
from merilo.commands.blocking import run_blocking
from merilo.commands.evaluate.preparation import checked, dataset_of, judges_of
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.merge.run import merge_runs
from merilo.data.remote import fetched_file, is_url
from merilo.data.sample import BadRecord
from merilo.engine.budget import check_prices
from merilo.engine.progress import ProgressDispatcher, Traffic
from merilo.errors import DataError, LimitReached, MeriloError, ProviderDown, RunError, UsageError
from merilo.numbers import count
from merilo.runs.directory import run_directory
from merilo.runs.files import MANIFEST, RunLock

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from merilo.commands.evaluate.options import Limits, Options
    from merilo.commands.evaluate.ray_pool import Call, Pool, Runner
    from merilo.data.load import Records
    from merilo.runs.run import Run

SHARDS: Final = ".shards"
"""Added to the name of a run, for the directory with the runs of its shards."""
BLOCKS_PER_WORKER: Final = 4
"""More blocks would leave workers idle for less time at the end of a run, but each block reads the whole data."""
_DEATHS: Final = 3
"""Workers that may die on one block in a row without another sample done; more would only cost requests."""
_POLL_S: Final = 0.5
"""Seconds between two updates of the progress."""
_REPORT_S: Final = 1.0
"""Seconds between two reports of a worker."""
_STOPPING_S: Final = 30.0
"""Seconds to wait for the workers to store what is in flight after a cancellation."""
_CACHE: Final = "cache.sqlite"
_ERRORS: Final = {each.__name__: each for each in (DataError, ProviderDown, RunError, UsageError)}


async def run_anywhere(data: str | PathLike[str] | Records, options: Options) -> Run:
    """Evaluate in this process, or on the workers of the runner that the options name."""
    return await (run_evaluation if options.limits.runner is None else run_distributed)(data, options)


async def run_distributed(data: str | PathLike[str] | Records, options: Options) -> Run:
    """Evaluate a file on the workers of a runner; return the merged run.

    A run that one process has begun is resumed in this process. Raises what `run_evaluation` raises, and LimitReached.
    """
    options = checked(options)
    start = runner_of(options)
    source = _checked_path(data, options)
    dataset = dataset_of(source, options)
    path, made = run_directory(options.out, dataset.name)
    in_process = replace(options, limits=replace(options.limits, runner=None, workers=None))
    shards = path.absolute().with_name(path.name + SHARDS)
    if (path / MANIFEST).exists():
        run = await run_evaluation(source, replace(in_process, out=path))
        if run.complete:
            shutil.rmtree(shards, ignore_errors=True)
        return run
    try:
        shards.mkdir(exist_ok=True)
        with RunLock(shards):
            samples = await in_thread(lambda: sum(not isinstance(each, BadRecord) for each in dataset))
            workers = options.limits.workers or os.cpu_count() or 1
            if options.storage.cache is False:  # equal questions are asked once
                in_process = replace(in_process, storage=replace(options.storage, cache=shards / _CACHE))
            planned = planned_blocks(samples, workers, [each.name for each in shards.iterdir()])
            ends = None if (seconds := options.limits.max_seconds) is None else time.time() + seconds
            blocks = Blocks(source, replace(in_process, progress=None), shards, planned, workers, ends)
            return await _Driver(path, blocks, samples, options).run(start)
    except BaseException:
        if made and not any(shards.glob(f"*/{MANIFEST}")):
            shutil.rmtree(shards, ignore_errors=True)
            with suppress(OSError):
                path.rmdir()
        raise


def runner_of(options: Options) -> Runner:
    """Return the runner of these options. Raises UsageError if it is unknown or not installed."""
    if options.limits.runner != "ray":
        raise UsageError(f"Unknown runner {options.limits.runner!r}. The only one is ray (--runner).")
    from merilo.commands.evaluate.ray_pool import checked_ray, ray_pool

    checked_ray()
    return ray_pool


def _checked_path(data: str | PathLike[str] | Records, options: Options) -> str:
    """Return the path of the data, or of a copy of data at an address.

    Raises UsageError for data or options that workers cannot use.
    """
    if not isinstance(data, str | os.PathLike) or str(data) == "-":
        raise UsageError("The workers of --runner read the data themselves. Give the path of a file.")
    for name, is_given in (("--shard", options.reading.shard is not None), ("--batch", options.storage.batched)):
        if is_given:
            raise UsageError(f"{name} cannot be combined with --runner. Leave one of them out.")
    check_prices(options.limits.budget, judges_of(options).values(), options.price)
    return str((fetched_file(data) if isinstance(data, str) and is_url(data) else Path(data)).absolute())


def planned_blocks(samples: int, workers: int, names: list[str]) -> int:
    """Return the number of blocks: that of an interrupted evaluation, from the `names` of its directories, if any."""
    found = (int(of) for name in names if (of := name.partition("-of-")[2]).isdecimal())
    return next(found, max(1, min(samples, workers * BLOCKS_PER_WORKER)))


# -- in the workers ------------------------------------------------------------------------------------


class BlockResult(NamedTuple):
    """The result of a block, as its worker returns it."""

    complete: bool = False
    error: str = ""
    """The error that ended it; empty if it is complete, was stopped or reached a limit."""
    kind: str = ""
    """The class of the error."""
    stopped: str = ""
    """The limit that it reached, as a sentence."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The evaluation of blocks in workers. It is sent to them, so its options hold no open file and no `Progress`."""

    data: str
    options: Options
    directory: Path
    """The directory of all blocks' runs. All workers must reach it."""
    of: int
    """Number of blocks."""
    workers: int
    ends: float | None
    """The time, by `time.time`, after which no request is sent; None for no limit."""

    @property
    def all(self) -> range:
        """The numbers of the blocks."""
        return range(1, self.of + 1)

    @property
    def paths(self) -> list[Path]:
        """The run directories of the blocks."""
        return [self.directory / f"{block}-of-{self.of}" for block in self.all]

    @property
    def _limits(self) -> Limits:
        """The limits of one block, which has an equal part of each limit; a worker has its part of each rate."""
        limits = self.options.limits
        requests, tokens = limits.requests_per_minute, limits.tokens_per_minute
        return replace(
            limits,
            max_cost_usd=None if limits.max_cost_usd is None else limits.max_cost_usd / self.of,
            max_requests=None if limits.max_requests is None else limits.max_requests // self.of,
            max_seconds=None if self.ends is None else max(0.0, self.ends - time.time()),
            requests_per_minute=None if requests is None else requests / self.workers,
            tokens_per_minute=None if tokens is None else tokens / self.workers,
        )

    def __call__(self, block: int, call: Call) -> BlockResult:
        """Evaluate a block, or resume it from what a dead worker has stored."""
        if (ended := call("begin", block)) is not None:
            return BlockResult(*ended)
        options = replace(
            self.options,
            reading=replace(self.options.reading, shard=f"{block}/{self.of}"),
            out=self.paths[block - 1],
            limits=self._limits,
        )
        try:
            return run_blocking(_Reports(call, block).complete(self.data, options))
        except MeriloError as error:
            return BlockResult(error=str(error), kind=type(error).__name__)
        finally:
            call("finish", block)


class _Reports:
    """A `Progress` that reports to the board once a second, and cancels its evaluation if the board says so."""

    def __init__(self, call: Call, block: int) -> None:
        self._call = call
        self._block = block
        self._done = 0
        self._traffic: Callable[[], Traffic] = Traffic
        self._reported = 0.0
        self._task: asyncio.Task[Run] | None = None
        self._stopped = False

    async def complete(self, data: str, options: Options) -> BlockResult:
        """Evaluate a block until it is complete, or until a limit or the board stops it."""
        self._task = asyncio.ensure_future(run_evaluation(data, replace(options, progress=self)))
        try:
            run = await self._task
            return BlockResult(run.complete, stopped=str(run.usage.get("stopped") or ""))
        except asyncio.CancelledError:
            if self._stopped:
                return BlockResult()
            raise

    def begin(self, run: Path, samples: int) -> None:
        del run, samples

    def watch(self, traffic: Callable[[], Traffic]) -> None:
        self._traffic = traffic

    def advance(self, samples: int) -> None:
        self._done += samples
        self.tick()

    def tick(self) -> None:
        if time.monotonic() - self._reported >= _REPORT_S:
            self.end()

    def note(self, text: str) -> None:
        self._call("note", text)

    def end(self) -> None:
        self._reported = time.monotonic()
        goes_on = self._call("report", self._block, self._done, self._traffic())
        if not goes_on and not self._stopped and self._task is not None:
            self._stopped = self._task.cancel()


# -- shared by workers and driver ----------------------------------------------------------------------


class Status(NamedTuple):
    """The state of all blocks together."""

    done: int
    """Samples that are done."""
    traffic: Traffic
    notes: tuple[str, ...]
    """Messages so far."""


class Board:
    """The state that the workers of one evaluation share: its progress, and the order to stop."""

    def __init__(self) -> None:
        self._done: Counter[int] = Counter()
        self._traffic: dict[int, Traffic] = {}
        self._ended: list[Traffic] = []  # of workers that died
        self._begun: set[int] = set()
        self._deaths: Counter[tuple[int, int]] = Counter()  # by block and its samples done
        self._notes: dict[str, None] = {}
        self._stop = False

    def begin(self, block: int) -> BlockResult | None:
        """Note that a block begins; return its result if it must not, after a stop or deaths of workers."""
        lived = block, self._done[block]
        if block in self._begun:
            self.note(f"The worker of shard {block} died. Another one resumes the shard.")
            self._deaths[lived] += 1
            self._ended.append(replace(self._traffic.pop(block, Traffic()), in_flight=0, queued=0))
        self._begun.add(block)
        if self._deaths[lived] >= _DEATHS:
            died = f"The worker of shard {block} died {_DEATHS} times in a row without another sample done."
            advice = "The logs of Ray have the reason. A frequent one is too little memory."
            return BlockResult(error=f"{died} {advice}", kind=RunError.__name__)
        return BlockResult() if self._stop else None

    def report(self, block: int, done: int, traffic: Traffic) -> bool:
        """Update the progress of a block; return False if its evaluation must stop."""
        self._done[block] = max(done, self._done[block])
        self._traffic[block] = traffic
        return not self._stop

    def finish(self, block: int) -> None:
        """Note that a block ended."""
        self._begun.discard(block)

    def note(self, text: str) -> None:
        """Show a message to the user; equal messages are shown once."""
        self._notes[text] = None

    def stop(self) -> None:
        """Stop all blocks; what is in flight is stored."""
        self._stop = True

    def status(self) -> Status:
        """Return the state of all blocks."""
        traffic = reduce(_sum, [*self._ended, *self._traffic.values()], Traffic())
        return Status(self._done.total(), traffic, tuple(self._notes))


def _sum(one: Traffic, other: Traffic) -> Traffic:
    both = [(each.name, getattr(one, each.name), getattr(other, each.name)) for each in fields(Traffic)]
    added: dict[str, Any] = {name: None if a is None or b is None else a + b for name, a, b in both}  # Any: as fields
    return replace(Traffic(**added), paused_s=max(one.paused_s, other.paused_s))


# -- in the driver -------------------------------------------------------------------------------------


class _Driver:
    """The evaluation of all blocks of a run, and their merge."""

    def __init__(self, path: Path, blocks: Blocks, samples: int, options: Options) -> None:
        self._path = path
        self._blocks = blocks
        self._samples = samples
        self._options = options
        self._progress = ProgressDispatcher(options.progress)
        self._pool: Pool | None = None
        self._status = Status(0, Traffic(), ())
        self._noted = self._shown = 0

    async def run(self, start: Runner) -> Run:
        self._progress.begin(self._path, self._samples)
        self._progress.watch(lambda: self._status.traffic)
        try:
            self._check_complete(await self._evaluated(start))
            run = await asyncio.to_thread(merge_runs, self._blocks.paths, self._path)
            await asyncio.to_thread(shutil.rmtree, self._blocks.directory, ignore_errors=True)
            self._show(self._samples)
            self._progress.spent(run.usage)
            return run
        finally:
            self._progress.end()

    async def _evaluated(self, start: Runner) -> list[BlockResult]:
        """Run the workers in a thread, because a runner blocks; show their progress meanwhile."""
        running = asyncio.create_task(asyncio.to_thread(self._run_blocks, start))
        try:
            while not running.done():
                await asyncio.wait([running], timeout=_POLL_S)
                await asyncio.to_thread(self._call, "status")
                self._show(min(self._status.done, self._samples - 1))  # the last one is done when the run is written
        except asyncio.CancelledError:
            self._call("stop")
            await asyncio.wait([running], timeout=_STOPPING_S)
            raise
        return running.result()

    def _run_blocks(self, start: Runner) -> list[BlockResult]:
        blocks, results = self._blocks, list[BlockResult]()
        with start(blocks, Board, blocks.workers) as pool:
            self._pool = pool
            for each in pool.results(blocks.all):
                results.append(BlockResult(*each))
                if results[-1].error:
                    self._call("stop")
            self._status = pool.call("status")
            self._pool = None
        return results

    def _call(self, name: str) -> None:
        """Call a method of the board without arguments; take the status that it returns, if any."""
        with suppress(Exception):  # the pool may have closed, or its workers have died: `results` has the error
            if self._pool is not None and (status := self._pool.call(name)) is not None:
                self._status = status

    def _show(self, done: int) -> None:
        for text in self._status.notes[self._noted :]:
            self._progress.note(text)
        self._noted = len(self._status.notes)
        if done > self._shown:
            self._progress.advance(done - self._shown)
            self._shown = done

    def _check_complete(self, results: list[BlockResult]) -> None:
        """Raise the first error of a block, or LimitReached if some are not complete."""
        for each in results:
            if each.error:
                raise _ERRORS.get(each.kind, MeriloError)(each.error)
        if len(results) == self._blocks.of and all(each.complete for each in results):
            return
        stopped = next((f"A shard reached its part of a limit: {each.stopped}" for each in results if each.stopped), "")
        done = f"{self._status.done:,} of {count(self._samples, 'sample')} are done."
        raise LimitReached(f"{stopped} In all, {done}".strip())
