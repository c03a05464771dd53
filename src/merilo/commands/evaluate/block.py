"""One block of an evaluation on several workers: a run over a shard, in its own directory."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypedDict

from merilo.commands.blocking import run_blocking
from merilo.commands.evaluate.board import DEATHS
from merilo.commands.evaluate.run import run_evaluation
from merilo.engine.progress import Traffic
from merilo.errors import DataError, MeriloError, ProviderDown, RunError, UsageError
from merilo.runs.directory_usage import balance_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from merilo.commands.evaluate.board import Used
    from merilo.commands.evaluate.options import Options
    from merilo.engine.budget import Unanswered
    from merilo.engine.leases import SharedLimit
    from merilo.runners.base import Call
    from merilo.runs.run import Run

_REPORT_S: Final = 1.0
"""Seconds between two reports of progress."""
_ERRORS: Final = {each.__name__: each for each in (DataError, ProviderDown, RunError, UsageError)}


class BlockResult(TypedDict):
    """The result of a block, as its worker returns it."""

    block: int
    complete: bool
    error: str | None
    """The error that ended it; None if it is complete, was stopped or reached a limit."""
    kind: str
    """The class of the error; empty without one."""


def block_error(result: BlockResult) -> MeriloError:
    """Return the error of a block, of the class that its worker raised."""
    return _ERRORS.get(result["kind"], MeriloError)(result["error"] or "")


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

    def path(self, block: int) -> Path:
        """Return the run directory of a block."""
        return self.directory / f"{block}-of-{self.of}"

    def __call__(self, block: int, call: Call) -> BlockResult:
        """Evaluate a block, or resume it from what a dead worker has stored."""
        result = BlockResult(block=block, complete=False, error=None, kind="")
        if not call("begin", block):
            return _lost(result) if call("fatal", block) else result
        shared = _Shared(call, block, self.workers)
        progress = _Reports(call, block)
        seconds = None if self.ends is None else max(0.0, self.ends - time.time())
        options = replace(
            self.options,
            reading=replace(self.options.reading, shard=f"{block}/{self.of}"),
            out=self.path(block),
            limits=replace(self.options.limits, max_seconds=seconds),
            progress=progress,
            shared_limits=shared,
            reports_local_time=False,
        )
        try:
            run = run_blocking(_stoppable(self.data, options, progress))
        except MeriloError as error:
            return {**result, "error": str(error), "kind": type(error).__name__}
        finally:
            call("finish", block, used_in(self.path(block), options.limits.unanswered))
        return {**result, "complete": run is not None and run.complete}


def _lost(result: BlockResult) -> BlockResult:
    error = (
        f"The worker of shard {result['block']} died {DEATHS} times in a row without another sample done. "
        "The logs of Ray have the reason. A frequent one is too little memory."
    )
    return {**result, "error": error, "kind": RunError.__name__}


def used_in(path: Path, unanswered: Unanswered) -> Used:
    """Return what the run in this directory counts against its limits, like `Spending`."""
    balance = balance_in(path)
    usd = balance.answered.usd
    if unanswered == "charged":
        usd += balance.unanswered.usd + balance.unanswered.reply_usd
    return {"max_cost_usd": usd, "max_requests": balance.requests}


async def _stoppable(data: str, options: Options, progress: _Reports) -> Run | None:
    """Evaluate a block; return None if the driver stopped it."""
    task = asyncio.ensure_future(run_evaluation(data, options))
    progress.stop = task.cancel
    try:
        return await task
    except asyncio.CancelledError:
        if progress.stopped:
            return None
        raise


@dataclass(frozen=True, slots=True)
class _Shared:
    """The limits of all workers, see `SharedLimits`. A call blocks the event loop for about a millisecond."""

    call: Call
    block: int
    workers: int

    def reserve(self, endpoint: str, kind: str, per_minute: float, amount: float) -> float:
        seconds: float = self.call("reserve", endpoint, kind, per_minute, amount)
        return seconds

    def grant(self, name: SharedLimit, used: float, more: float) -> float:
        limit: float = self.call("grant", self.block, name, used, more)
        return limit


class _Reports:
    """A `Progress` that reports to the board once a second, and stops the evaluation if the board says so."""

    def __init__(self, call: Call, block: int) -> None:
        self.stop: Callable[[], object] = bool  # does nothing until there is a task to cancel
        self.stopped = False
        self._call = call
        self._block = block
        self._done = 0
        self._traffic: Callable[[], Traffic] = Traffic
        self._reported = 0.0

    def begin(self, run: Path, samples: int) -> None:
        del run, samples

    def watch(self, traffic: Callable[[], Traffic]) -> None:
        self._traffic = traffic

    def advance(self, samples: int) -> None:
        self._done += samples
        self.tick()

    def tick(self) -> None:
        if time.monotonic() - self._reported >= _REPORT_S:
            self._report()

    def note(self, text: str) -> None:
        self._call("note", text)

    def end(self) -> None:
        self._report()

    def _report(self) -> None:
        self._reported = time.monotonic()
        if not self._call("report", self._block, self._done, self._traffic()) and not self.stopped:
            self.stopped = True
            self.stop()
