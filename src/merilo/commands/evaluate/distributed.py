"""An evaluation on several workers: shards of the data are evaluated as runs, and merged into one.

The runs of the shards are in the directory RUN.shards until RUN itself is written, in one step. So the
same command resumes an interrupted evaluation, and repeats only what was in flight. Each block of a runner is a shard.
A worker and the driver share only the directory of the runs. design/scale.md explains the choices.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.cancellation import in_thread
from merilo.commands.blocking import run_blocking
from merilo.commands.evaluate.preparation import checked, dataset_of, judges_of
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.merge.run import merge_runs
from merilo.data.remote import fetched_file, is_url
from merilo.data.sample import BadRecord
from merilo.engine.budget import check_prices
from merilo.engine.progress import ProgressDispatcher
from merilo.errors import DataError, LimitReached, MeriloError, ProviderDown, RunError, UsageError
from merilo.numbers import count
from merilo.runs.directory import run_directory
from merilo.runs.files import MANIFEST, RunLock

if TYPE_CHECKING:
    from os import PathLike

    from merilo.commands.evaluate.options import Limits, Options
    from merilo.commands.evaluate.ray_pool import Runner
    from merilo.data.load import Records
    from merilo.runs.run import Run

SHARDS: Final = ".shards"
"""Added to the name of a run, for the directory with the runs of its shards."""
BLOCKS_PER_WORKER: Final = 4
"""More blocks would leave workers idle for less time at the end of a run, but each block reads the whole data."""
_DEATHS: Final = 10
"""Workers that may die on one block in one call; more would only cost requests."""
_STOPPING_S: Final = 30.0
"""Seconds to wait for the workers to store what is in flight after a cancellation."""
_CACHE: Final = "cache.sqlite"
_BEGUN: Final = ".begun"
"""Ends the name of a file that has a byte for each worker that began a block in this call."""
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
            return await _merged(start, blocks, path, samples, ProgressDispatcher(options.progress))
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
    done: int = 0
    """Samples that are done."""
    notes: tuple[str, ...] = ()
    """Messages for the user."""


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
    def stop(self) -> Path:
        """The file that stops all workers; what is in flight is stored."""
        return self.directory / "stop"

    @property
    def paths(self) -> list[Path]:
        """The run directories of the blocks."""
        return [self.directory / f"{block}-of-{self.of}" for block in self.all]

    def _limits(self, block: int) -> Limits:
        """Return the limits of one block, which has an equal part of each limit; a worker has its part of each rate."""
        limits = self.options.limits
        requests, tokens = limits.requests_per_minute, limits.tokens_per_minute
        return replace(
            limits,
            max_cost_usd=None if limits.max_cost_usd is None else limits.max_cost_usd / self.of,
            max_requests=None if limits.max_requests is None else (limits.max_requests + self.of - block) // self.of,
            max_seconds=None if self.ends is None else max(0.0, self.ends - time.time()),
            requests_per_minute=None if requests is None else requests / self.workers,
            tokens_per_minute=None if tokens is None else tokens / self.workers,
        )

    def __call__(self, block: int) -> BlockResult:
        """Evaluate a block, or resume it from what a dead worker has stored."""
        if self.stop.exists():
            return BlockResult()
        with (self.directory / f"{block}{_BEGUN}").open("ab") as begun:
            deaths = begun.tell()
            begun.write(b"1")
        if deaths >= _DEATHS:
            died = f"The worker of shard {block} died {_DEATHS} times."
            advice = "The logs of Ray have the reason. A frequent one is too little memory."
            return BlockResult(error=f"{died} {advice}", kind=RunError.__name__)
        work = _Block(self.stop)
        if deaths:
            work.note(f"The worker of shard {block} died. Another one resumed the shard.")
        options = replace(
            self.options,
            reading=replace(self.options.reading, shard=f"{block}/{self.of}"),
            out=self.paths[block - 1],
            limits=self._limits(block),
            progress=work,
        )
        try:
            found = run_blocking(work.complete(self.data, options))
        except MeriloError as error:
            found = BlockResult(error=str(error), kind=type(error).__name__)
        return found._replace(done=work.done, notes=tuple(work.notes))


class _Block:
    """The evaluation of a block and its `Progress`, which cancels it if the file `stop` is there."""

    def __init__(self, stop: Path) -> None:
        self._stop = stop
        self._task: asyncio.Task[Run] | None = None
        self._stopped = False
        self.done = 0
        self.notes = list[str]()

    async def complete(self, data: str, options: Options) -> BlockResult:
        """Evaluate the block until it is complete, or until a limit or the driver stops it."""
        self._task = asyncio.ensure_future(run_evaluation(data, options))
        try:
            run = await self._task
            return BlockResult(run.complete, stopped=str(run.usage.get("stopped") or ""))
        except asyncio.CancelledError:
            if self._stopped:
                return BlockResult()
            raise

    def begin(self, run: Path, samples: int) -> None:
        del run, samples

    def advance(self, samples: int) -> None:
        self.done += samples
        self.tick()

    def tick(self) -> None:
        if self._task is not None and not self._stopped and self._stop.exists():
            self._stopped = self._task.cancel()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self) -> None: ...


# -- in the driver -------------------------------------------------------------------------------------


async def _merged(start: Runner, blocks: Blocks, path: Path, samples: int, progress: ProgressDispatcher) -> Run:
    """Evaluate all blocks, and merge their runs. Raises the first error of a block, and LimitReached."""
    progress.begin(path, samples)
    try:
        results = await _results(start, blocks, progress)
        for each in results:
            if each.error:
                raise _ERRORS.get(each.kind, MeriloError)(each.error)
        if len(results) < blocks.of or not all(each.complete for each in results):
            limit = next((f"A shard reached its part of a limit: {one.stopped}" for one in results if one.stopped), "")
            done = f"{sum(each.done for each in results):,} of {count(samples, 'sample')} are done."
            raise LimitReached(f"{limit} In all, {done}".strip())
        run = await asyncio.to_thread(merge_runs, blocks.paths, path)
        await asyncio.to_thread(shutil.rmtree, blocks.directory, ignore_errors=True)
        progress.spent(run.usage)
        return run
    finally:
        progress.end()


async def _results(start: Runner, blocks: Blocks, progress: ProgressDispatcher) -> list[BlockResult]:
    """Run the workers in a thread, because a runner blocks; show meanwhile which blocks are done."""
    loop, noted = asyncio.get_running_loop(), set[str]()

    def show(result: BlockResult) -> None:
        progress.advance(result.done)
        for text in result.notes:
            if text not in noted:
                noted.add(text)
                progress.note(text)

    def run() -> list[BlockResult]:
        results = list[BlockResult]()
        for each in start(blocks, blocks.all, blocks.workers):
            results.append(BlockResult(*each))
            if results[-1].error:
                blocks.stop.touch()
            loop.call_soon_threadsafe(show, results[-1])
        return results

    for old in (blocks.stop, *blocks.directory.glob(f"*{_BEGUN}")):
        old.unlink(missing_ok=True)
    running = asyncio.create_task(asyncio.to_thread(run))
    try:
        await asyncio.wait([running])
    except asyncio.CancelledError:
        blocks.stop.touch()
        await asyncio.wait([running], timeout=_STOPPING_S)
        raise
    return running.result()
