"""An evaluation on several workers: shards of the data are evaluated as runs, and merged into one.

The runs of the shards are in the directory RUN.shards until RUN itself is written, in one step. So the
same command resumes an interrupted evaluation, and repeats only what was in flight. design/scale.md explains
the choices.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.evaluate.block import Blocks, block_error, used_in
from merilo.commands.evaluate.board import Board, Status
from merilo.commands.evaluate.preparation import dataset_of
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.evaluate.settings import checked, judges_of
from merilo.commands.merge.run import merge_runs
from merilo.data.remote import fetched_file, is_url
from merilo.data.sample import BadRecord
from merilo.engine.budget import Spending, check_prices
from merilo.engine.progress import ProgressDispatcher, Traffic
from merilo.errors import LimitReached, UsageError
from merilo.rendering.wording import count
from merilo.runs.directory import run_directory
from merilo.runs.directory_usage import balance_in
from merilo.runs.files import MANIFEST
from merilo.runs.ledger import Balance
from merilo.runs.lock import RunLock

if TYPE_CHECKING:
    from os import PathLike

    from merilo.commands.evaluate.block import BlockResult
    from merilo.commands.evaluate.board import Used
    from merilo.commands.evaluate.options import Options
    from merilo.data.load import Records
    from merilo.data.sample import Dataset
    from merilo.runners.base import Pool, Runner
    from merilo.runs.run import Run

SHARDS: Final = ".shards"
"""Added to the name of a run, for the directory with the runs of its shards."""
BLOCKS_PER_WORKER: Final = 4
"""More blocks would leave workers idle for less time at the end of a run, but each block reads the whole data."""
_POLL_S: Final = 0.5
"""Seconds between two updates of the progress."""
_STOPPING_S: Final = 30.0
"""Seconds to wait for the workers to store what is in flight after a cancellation."""
_READ_AT_ONCE: Final = 1_000
"""Records that are read before other tasks of the event loop run."""
_CACHE: Final = "cache.sqlite"


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
    shards = path.absolute().with_name(path.name + SHARDS)
    if (path / MANIFEST).exists():
        run = await run_evaluation(source, _in_process(options, out=path))
        if run.complete:
            shutil.rmtree(shards, ignore_errors=True)
        return run
    try:
        shards.mkdir(exist_ok=True)
        with RunLock(shards):
            samples = await _samples(dataset)
            blocks = _blocks(source, options, shards, samples)
            return await _DistributedEvaluation(path, blocks, samples, options, start).run()
    except BaseException:
        if made and not any(shards.glob(f"*/{MANIFEST}")):
            shutil.rmtree(shards, ignore_errors=True)
            with suppress(OSError):
                path.rmdir()
        raise


def planned_blocks(samples: int, workers: int, names: list[str]) -> int:
    """Return the number of blocks: that of an interrupted evaluation, from the `names` of its directories, if any.

    Raises UsageError if their numbers of blocks differ.
    """
    found = {int(of) for name in names if (of := name.partition("-of-")[2]).isdecimal()}
    if len(found) > 1:
        raise UsageError(f"The shards belong to different evaluations: {', '.join(sorted(names))}. Remove them.")
    return found.pop() if found else max(1, min(samples, workers * BLOCKS_PER_WORKER))


def runner_of(options: Options) -> Runner:
    """Return the runner of these options. Raises UsageError if it is unknown or not installed."""
    if options.limits.runner != "ray":
        raise UsageError(f"Unknown runner {options.limits.runner!r}. The only one is ray (--runner).")
    from merilo.runners.ray import checked_ray, ray_pool

    checked_ray()
    return ray_pool


def _checked_path(data: str | PathLike[str] | Records, options: Options) -> str:
    """Return the path of the data, or of a copy of data at an address.

    Raises UsageError for data or options that workers cannot use.
    """
    if not isinstance(data, str | os.PathLike) or str(data) == "-":
        raise UsageError("The workers of --runner read the data themselves. Give the path of a file.")
    if options.limits.workers is not None and options.limits.workers < 1:
        raise UsageError(f"workers must be at least 1, got {options.limits.workers} (--workers).")
    others = {
        "--shard": options.reading.shard,
        "--batch": options.storage.batched or None,
    }
    for name, value in others.items():
        if value is not None:
            raise UsageError(f"{name} cannot be combined with --runner. Leave one of them out.")
    judges = judges_of(options)
    check_prices(options.limits.budget, judges.values(), options.price)
    return str((fetched_file(data) if isinstance(data, str) and is_url(data) else Path(data)).absolute())


async def _samples(dataset: Dataset) -> int:
    """Return the number of valid records. Yields to the event loop, so that reading can be cancelled."""
    samples = 0
    for number, each in enumerate(dataset):
        samples += not isinstance(each, BadRecord)
        if number % _READ_AT_ONCE == 0:
            await asyncio.sleep(0)
    return samples


def _in_process(options: Options, **changes: Any) -> Options:  # Any: values of options
    return replace(options, limits=replace(options.limits, runner=None, workers=None), **changes)


def _blocks(source: str, options: Options, shards: Path, samples: int) -> Blocks:
    workers = options.limits.workers or os.cpu_count() or 1
    cache = (
        options.storage.cache if options.storage.cache is not False else shards / _CACHE
    )  # equal questions are asked once
    ends = None if options.limits.max_seconds is None else time.time() + options.limits.max_seconds
    return Blocks(
        source,
        _in_process(options, storage=replace(options.storage, cache=cache), progress=None),
        shards,
        planned_blocks(samples, workers, [each.name for each in shards.iterdir()]),
        workers,
        ends,
    )


class _DistributedEvaluation:
    """The evaluation of all blocks of a run, and their merge."""

    def __init__(self, path: Path, blocks: Blocks, samples: int, options: Options, start: Runner) -> None:
        self._path = path
        self._blocks = blocks
        self._samples = samples
        self._options = options
        self._start = start
        self._all = range(1, blocks.of + 1)
        self._progress = ProgressDispatcher(options.progress)
        self._status = Status(0, Traffic())
        self._shown = 0

    async def run(self) -> Run:
        self._progress.begin(self._path, self._samples)
        self._progress.watch(lambda: self._status.traffic)
        try:
            results = await self._evaluated()
            self._check_complete(results)
            run = await asyncio.to_thread(self._merged)
            self._advance(self._samples)
            self._progress.spent(run.usage)
            return run
        finally:
            self._progress.end()

    async def _evaluated(self) -> list[BlockResult]:
        """Run the workers in a thread, because a runner blocks; show their progress meanwhile."""
        used = {block: used_in(self._blocks.path(block), self._options.limits.unanswered) for block in self._all}
        pools: list[Pool] = []
        running = asyncio.create_task(asyncio.to_thread(self._run_blocks, used, pools))
        try:
            while not running.done():
                await asyncio.wait([running], timeout=_POLL_S)
                if pools:
                    await self._show(pools[0])
        except asyncio.CancelledError:
            self._stop(pools)
            await asyncio.wait([running], timeout=_STOPPING_S)
            raise
        return running.result()

    def _run_blocks(self, used: dict[int, Used], pools: list[Pool]) -> list[BlockResult]:
        make = partial(Board, self._options.limits.budget, self._blocks.workers, used)
        results: list[BlockResult] = []
        with self._start(self._blocks, make, self._blocks.workers) as pool:
            pools.append(pool)
            for result in pool.results(self._all):
                results.append(result)
                if result["error"] is not None:
                    pool.call("stop")
            self._status = pool.call("status")
            pools.clear()
        return results

    def _stop(self, pools: list[Pool]) -> None:
        for pool in pools:
            with suppress(Exception):  # the runner may be gone; the workers end with it
                pool.call("stop")

    async def _show(self, pool: Pool) -> None:
        with suppress(Exception):  # the pool may have just closed; its errors are those of `results`
            self._status = await asyncio.to_thread(pool.call, "status")
        for text in self._status.notes:
            self._progress.note(text)
        self._status = replace(self._status, notes=())
        self._advance(min(self._status.done, self._samples - 1))  # the last one is done when the run is written

    def _advance(self, done: int) -> None:
        if done > self._shown:
            self._progress.advance(done - self._shown)
            self._shown = done

    def _check_complete(self, results: list[BlockResult]) -> None:
        """Raise the error of a block, or LimitReached if some are not complete."""
        errors = [result for result in results if result["error"] is not None]
        if errors:
            raise block_error(min(errors, key=lambda each: each["block"]))
        if len(results) == self._blocks.of and all(result["complete"] for result in results):
            return
        done = f"{self._status.done:,} of {count(self._samples, 'sample')} are done."
        raise LimitReached(f"{self._limit_sentence()} {done}")

    def _limit_sentence(self) -> str:
        balance = sum((balance_in(self._blocks.path(block)) for block in self._all), Balance())
        spending = Spending(self._options.limits.budget, self._options.price, elsewhere=balance)
        refused = self._status.refused
        if "max_requests" in refused:
            return spending.requests_reached.sentence
        if "max_cost_usd" in refused:
            return spending.cost_reached(refused["max_cost_usd"]).sentence
        return spending.time_limit_message.sentence

    def _merged(self) -> Run:
        run = merge_runs([self._blocks.path(block) for block in self._all], self._path).run
        with suppress(OSError):
            shutil.rmtree(self._blocks.directory)
        return run
