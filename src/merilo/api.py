"""The verbs of the Python API."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Generic, TypeVar, Unpack

from merilo.errors import Interrupted
from merilo.evaluation import run_evaluation
from merilo.options import EvaluateArguments, Options

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from os import PathLike

    from merilo.data.load import Records
    from merilo.engine.amounts import Estimate
    from merilo.metrics.base import Definition
    from merilo.replaying.replay import Replay
    from merilo.reports.definitions import LineageTables
    from merilo.runs.run import Run

T = TypeVar("T")


def evaluate(data: str | PathLike[str] | Records, **arguments: Unpack[EvaluateArguments]) -> Run:
    """A finished run over the samples in `data`.

    Works inside a running event loop too (a notebook): it runs its own loop in its own thread.

    Args:
        data: a path (.jsonl, .json, .csv, .tsv, each perhaps .gz), "-", or an iterable of dicts or `Sample`s.
        **arguments: all optional.

            - metrics: texts such as "faithfulness", or `Metric`s. None: every native one that data and judge allow.
              A composite is computed from its parts, which come with it.
            - judge: "embedded" (the default), "openai:MODEL", "anthropic:MODEL", "azure:DEPLOYMENT", "scripted:FILE",
              each perhaps as "NAME=SPEC", a judge, an async callable, or a list of these. The first answers unless a
              metric asks for another.
            - embedder: who makes vectors of texts: "embedded" (the default: hashed character n-grams),
              "openai:MODEL" (an embedding model), "azure:DEPLOYMENT", "scripted:FILE", a judge or a callable. Asked
              only by metrics that compare texts by their vectors.
            - cross_encoder: who says how alike two texts are: "embedded" (the default), "scripted:FILE", a judge or
              a callable.
            - out: the run's directory, made if need be; an interrupted run there is resumed. None: a new one
              under `.merilo/runs`.
            - limit: look at so many records only.
            - mapping: column → field, for columns with names of their own.
            - language: of rubrics and sentence splitting (such as "ru"). None: the sample's own.
            - concurrency: requests in the air at once at each model, at least 1; 16 by default. Runs of one process
              share what a model bears: each sends only while fewer than its own number are in the air there.
            - requests_per_minute, tokens_per_minute: the most that each model is sent. None: no limit of ours.
            - timeout_s: seconds to wait for one reply before it is asked for again. None: the provider's own (120).
            - max_cost_usd, max_requests, max_seconds: of this call. No request is begun that would pass one; the run
              is then returned incomplete (`run.complete` is False, `run.usage["stopped"]` says why), and the same
              call resumes it.
            - base_url: of the server, for "openai:", "anthropic:" and "azure:" judges and an embedder of that kind.
            - api_key_env: name of the environment variable that holds the key, for the same.
            - embedder_base_url: of the embedder's server, where it is another; it is not sent the judges' key then.
            - embedder_api_key_env: name of the environment variable that holds the embedder's own key.
            - judged: "each" or "together": whether a judge at an address gets statements one by one, or in packs of
              at most ten (the default).
            - skip_invalid: leave bad records out instead of refusing the data.
            - cache: True (the default) for the user's verdict cache, False for none, or the path of a file.
            - retry_failed: ask again what failed in the run that is resumed.
            - prices: what models cost, before the list prices that come with merilo: the path of a TOML file, or
              its rows, such as [{"model": "qwen3", "input": 0.1, "output": 0.4}] in USD per million tokens. None:
              the file that MERILO_PRICES names, if any.
            - record: a file that gets the run with every reply, a tape, such as "tape.jsonl.gz"; also where the run
              is stopped. None: no tape.
            - progress: a `Progress` that is told how far the run is. None: nothing is shown.
            - log_json: a file to which the events of the run are appended, one JSON object a line. None: none.

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


def plan(
    data: str | PathLike[str] | Records,
    *,
    sample: int | None = 2_000,
    latency_s: float | None = None,
    **arguments: Unpack[EvaluateArguments],
) -> Estimate:
    """What `evaluate` with the same arguments would ask and cost; asks nothing and needs no key.

    The metrics' plans are run with likely verdicts, so the amounts are typical ones; `at_most` bounds them. What
    the run at `out` or the verdict cache holds costs nothing. Tokens are characters / 4, or what that run measured.

    Args:
        data: as in `evaluate`.
        sample: how many samples to look at, spread evenly over a larger data set, whose amounts are scaled up. None:
            all of them.
        latency_s: seconds that a reply takes, where the run has not measured it.
        **arguments: those of `evaluate`.

    Raises what `evaluate` raises, but for what happens while asking.
    """
    from merilo.estimate import run_estimate

    return _in_own_thread(run_estimate(data, _options(**arguments), sample=sample, latency_s=latency_s))


def replay(
    source: str | PathLike[str],
    *,
    metrics: Sequence[str | Definition] | None = None,
    out: str | PathLike[str] | None = None,
    reread: bool = False,
) -> Replay:
    """The scores of a run or a tape, recomputed without a call from the answers that it holds.

    Each plan is driven again and sent what was recorded under its trail; the scores are bit-equal unless a metric
    has changed. Failures are replayed as failures.

    Args:
        source: the directory of a run, or a tape that `record` made.
        metrics: those to compute, as in `evaluate`; None: those of the run. One that the run did not have is
            answered by whatever the run was asked in the same words, of the same judge.
        out: a new directory for the recomputed run. None: it is there as long as the result's `run`.
        reread: take the answers that the reading rules of today find in the raw replies of language models.

    Raises:
        RunError: the run or tape cannot be read, or holds no answer to a question; the message names the question
            and the command to record it.
        UsageError: a metric cannot be made as named.
    """
    from merilo.replaying.replay import replay_run

    return replay_run(source, metrics=metrics, out=out, reread=reread)


def lineage(
    data: str | PathLike[str] | Records,
    *,
    families: Sequence[str] = (),
    as_published: bool = False,
    **arguments: Unpack[EvaluateArguments],
) -> LineageTables:
    """How the published definitions of one name score the samples in `data`, side by side.

    By default each published formula is taken over the verdicts of our own metrics, so that only the formulas
    differ and nothing is asked twice.

    Args:
        data: as in `evaluate`.
        families: of "context_relevance", "context_precision", "context_recall", "faithfulness" and
            "answer_relevancy"; all of them for none.
        as_published: ask each definition's own questions, as its system does.
        **arguments: those of `evaluate`; `metrics` is not taken.

    Raises what `evaluate` raises.
    """
    if "metrics" in arguments:
        raise TypeError("lineage() chooses its metrics by families; leave metrics out.")
    from merilo.definitions import run_lineage

    return _in_own_thread(run_lineage(data, _options(**arguments), families=families, as_published=as_published))


def _options(**arguments: Unpack[EvaluateArguments]) -> Options:
    known = EvaluateArguments.__annotations__
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise TypeError(f"evaluate() has no argument {', '.join(unknown)}; it takes {', '.join(known)}.")
    return Options(**arguments)


class _Worker(threading.Thread, Generic[T]):
    """Runs one coroutine to its end in a loop of its own."""

    def __init__(self, work: Coroutine[None, None, T]) -> None:
        super().__init__(name="merilo", daemon=True)
        self._work = work
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[T] | None = None
        self.done = threading.Event()
        self.made: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.made = asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits, whatever it is
            self.error = error
        finally:
            self.done.set()

    def cancel(self) -> None:
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def _main(self) -> T:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._work)
        return await self._task


def _in_own_thread(work: Coroutine[None, None, T]) -> T:
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
    if worker.made is None:
        raise Interrupted("The evaluation ended without a run.")
    return worker.made
