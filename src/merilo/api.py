"""The verbs of the Python API."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Unpack

from merilo.errors import Interrupted
from merilo.evaluation import Options, run_evaluation

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from os import PathLike

    from merilo.data.load import Records
    from merilo.evaluation import EvaluateArguments
    from merilo.runs.run import Run


def evaluate(data: str | PathLike[str] | Records, **arguments: Unpack[EvaluateArguments]) -> Run:
    """A finished run over the samples in `data`.

    Works inside a running event loop too (a notebook): it runs its own loop in its own thread.

    Args:
        data: a path (.jsonl, .json, .csv, .tsv, each perhaps .gz), "-", or an iterable of dicts or `Sample`s.
        **arguments: all optional.

            - metrics: texts such as "faithfulness", or `Metric`s. None: every native one that data and judge allow.
            - judge: "embedded" (the default), "openai:MODEL", "scripted:FILE", each perhaps as "NAME=SPEC", a
              judge, an async callable, or a list of these. The first answers unless a metric asks for another.
            - out: the run's directory, made if need be; an interrupted run there is resumed. None: a new one
              under `.merilo/runs`.
            - limit: look at so many records only.
            - mapping: column → field, for columns with names of their own.
            - language: of rubrics and sentence splitting (such as "ru"). None: the sample's own.
            - concurrency: requests in the air at once, at least 1; 16 by default.
            - base_url: of an OpenAI-compatible server, for "openai:" judges.
            - api_key_env: name of the environment variable that holds the key, for "openai:" judges.
            - judged: "each" or "together": whether an "openai:" judge gets statements one by one, or in packs of
              at most ten (the default).
            - skip_invalid: leave bad records out instead of refusing the data.
            - cache: True (the default) for the user's verdict cache, False for none, or the path of a file.
            - retry_failed: ask again what failed in the run that is resumed.
            - progress: a `Progress` that is told how far the run is. None: nothing is shown.

    Raises:
        DataError: the data cannot be read, or has bad records that are not to be skipped.
        UsageError: a metric, judge or argument cannot be used as named.
        ProviderDown: no request can work; the same call resumes the run.
        RunError: the directory cannot be used.
        Interrupted: somebody pressed Ctrl-C; the same call resumes the run.
    """
    return _in_own_thread(run_evaluation(data, _options(**arguments)))


async def aevaluate(data: str | PathLike[str] | Records, **arguments: Unpack[EvaluateArguments]) -> Run:
    """`evaluate` for code that runs in an event loop: same arguments, result and errors.

    Cancelling it leaves a run that the same call resumes.
    """
    return await run_evaluation(data, _options(**arguments))


def _options(**arguments: Unpack[EvaluateArguments]) -> Options:
    known = Options.__dataclass_fields__
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise TypeError(f"evaluate() has no argument {', '.join(unknown)}; it takes {', '.join(known)}.")
    return Options(**arguments)


class _Worker(threading.Thread):
    """Runs one coroutine to its end in a loop of its own."""

    def __init__(self, work: Coroutine[None, None, Run]) -> None:
        super().__init__(name="merilo", daemon=True)
        self._work = work
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Run] | None = None
        self.done = threading.Event()
        self.run_made: Run | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.run_made = asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits, whatever it is
            self.error = error
        finally:
            self.done.set()

    def cancel(self) -> None:
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def _main(self) -> Run:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._work)
        return await self._task


def _in_own_thread(work: Coroutine[None, None, Run]) -> Run:
    worker = _Worker(work)
    worker.start()
    interrupted = False
    while not worker.done.is_set():
        try:
            worker.done.wait(timeout=0.2)  # not join: interrupted, it takes a living thread for a dead one (3.11)
        except KeyboardInterrupt:
            if interrupted:
                raise Interrupted("Stopped at once. What was answered is kept.") from None
            interrupted = True
            worker.cancel()
    if interrupted and isinstance(worker.error, asyncio.CancelledError):
        raise Interrupted("Stopped. What was answered is kept: the same command with the same run resumes it.")
    if worker.error is not None:
        raise worker.error
    if worker.run_made is None:
        raise Interrupted("The evaluation ended without a run.")
    return worker.run_made
