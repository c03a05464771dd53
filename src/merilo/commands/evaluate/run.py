"""One evaluation, from data to a finished run."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import time
from contextlib import ExitStack, aclosing, closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merilo.commands.evaluate.preparation import (
    Prepared,
    checked,
    dataset_of,
    inputs_digest,
    judges_of,
    manifest_of,
    prepared,
)
from merilo.engine.answer_store import AnswerStore, JudgeRoles, LookUp
from merilo.engine.budget import check_prices, check_spent, providers_of, spent_record
from merilo.engine.cache import VerdictCache, default_path
from merilo.engine.dispatcher import Dispatcher
from merilo.engine.drivers import AsyncDriver
from merilo.engine.event_loop import rare_collections
from merilo.engine.progress import ProgressDispatcher
from merilo.engine.rate_limits import asks_no_model
from merilo.engine.schedule import Batches, asks_in_rounds, in_flight_bounds, in_rounds, stream
from merilo.errors import ProviderDown, RunError, UsageError
from merilo.numbers import count, spent_so_far
from merilo.providers.prices import outdated, prices_from
from merilo.results.summary import Tallies, spans_of
from merilo.runs.batch_store import BatchStore
from merilo.runs.clusters import cluster_numbers, clusters_by_sample
from merilo.runs.directory import Resumed, balance_in, is_worthless, resumed, run_directory
from merilo.runs.files import BATCHES, INPUTS, LEDGER, MANIFEST, OUTCOMES, STORE, SUMMARY, RunLock, part_of
from merilo.runs.ledger import Balance, Ledger
from merilo.runs.run import Run, json_text, open_store, write_json
from merilo.runs.seal import publish, recover
from merilo.runs.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
    from os import PathLike

    from merilo.commands.evaluate.options import Options
    from merilo.data.lines import ForeignRecords
    from merilo.data.load import Records
    from merilo.data.sample import Dataset, Sample
    from merilo.judges.base import Judge
    from merilo.metrics.base import Metric
    from merilo.providers.base import Provider
    from merilo.runs.outcomes import OutcomeRecord, Result


async def run_evaluation(data: str | PathLike[str] | Records | ForeignRecords, options: Options) -> Run:
    """Evaluate a data set; return the finished run, or an incomplete one if a limit was reached.

    After a cancellation, or if a provider is down, all answers are stored and the same call resumes the run. If there
    are none, a directory that this call created is removed.
    """
    options = checked(options)
    if options.limits.runner is not None:
        raise UsageError("Only `merilo run` and `merilo.evaluate` accept a runner. Remove it (runner).")
    judges = judges_of(options)
    check_prices(options.limits.budget, judges.values(), options.price)
    dataset = dataset_of(data, options)
    if options.cluster is None:
        options = replace(options, cluster=dataset.columns.cluster)
    try:
        path, made = run_directory(options.out, dataset.name)
    except (OSError, ValueError) as error:
        raise RunError(f"Cannot use the run directory ({error}). Choose another one (--out).") from error
    with RunLock(path):
        try:
            recover(path)
            inputs = inputs_digest(data, judges, options)
            return _finished(path, inputs, options) or await _run_in(path, dataset, judges, options, inputs)
        except BaseException as error:
            worthless = made and is_worthless(path)
            if worthless:
                shutil.rmtree(path, ignore_errors=True)
            if isinstance(error, sqlite3.Error | OSError):
                kept = "" if worthless else " Earlier answers are stored."
                raise RunError(f"Cannot read or write {path} ({error}).{kept}") from error
            raise


def _finished(path: Path, inputs: str | None, options: Options) -> Run | None:
    """Return the finished run in a directory if it was made of these inputs, so that nothing has to be read again."""
    if inputs is None or options.storage.retry_failed or not (path / SUMMARY).exists():
        return None
    try:
        run = Run.open(path)
        with closing(open_store(run)) as store:
            same = run.complete and store.remark(INPUTS) == inputs
    except RunError:  # the run is computed again, or the error is raised, where the store is open for writing
        return None
    if same:
        audience = ProgressDispatcher(options.progress)
        audience.begin(path, run.manifest.samples)
        audience.advance(run.manifest.samples)
        audience.spent(run.usage)
        audience.end()
    return run if same else None


async def _run_in(path: Path, dataset: Dataset, judges: dict[str, Judge], options: Options, inputs: str | None) -> Run:
    with ExitStack() as stack:
        resumes = (path / MANIFEST).exists()
        store = Store.open(path / STORE, create=not resumes)
        stack.callback(store.close)
        if resumes:
            store.check()
        ready = await prepared(dataset, store, judges, options)
        _, roles, selection = ready
        found = _resumed(path, dataset, ready, options, store)
        audience = ProgressDispatcher(options.progress)
        if reading := dataset.columns.reading():
            audience.note(f"{dataset.name}: {reading}")
        for name in found.changed:
            audience.note(f"{path / name} was changed after merilo wrote it. It is computed again.")
        prices = prices_from(options.limits.prices).known(provider for _, provider in providers_of(judges.values()))
        if warning := outdated(prices, datetime.now(UTC).date()):
            audience.note(warning)
        cache = None
        if (place := options.storage.cache) is not False:
            cache = VerdictCache(default_path() if place is True else Path(place))
            stack.callback(_closed, cache, audience)
        batches = batches_of(path, selection.metrics.values(), roles, options)
        if batches is not None:
            stack.callback(batches.store.close)
        ledger = _ledger(path, store, options, batches)
        stack.callback(ledger.close)
        work = RunEvaluation(
            path,
            ready,
            found,
            options,
            store=store,
            answers=AnswerStore(roles, store, cache),
            look_up=LookUp(store, cache, failures=not options.storage.retry_failed),
            ledger=ledger,
            audience=audience,
            batches=batches,
        )
        await work.do()
        if inputs is not None and work.complete:
            store.put_copy(INPUTS, inputs)
    return Run.open(path)


def _resumed(path: Path, dataset: Dataset, ready: Prepared, options: Options, store: Store) -> Resumed:
    """Return the manifest of a new run or of one that is resumed, and store it. Raises what `resumed` raises."""
    found = resumed(path, manifest_of(dataset, ready, options))
    store.accept_samples()
    if found.manifest.cluster is not None:
        clusters_by_sample(store, found.manifest.cluster)
    there = (path / MANIFEST).exists()
    if not there or MANIFEST in found.changed:
        store.put_copy(MANIFEST, json_text(found.manifest.to_fields()))
    if not there:
        write_json(path / MANIFEST, found.manifest.to_fields())
    return found


def _closed(cache: VerdictCache, audience: ProgressDispatcher) -> None:
    if (message := cache.close()) is not None:
        audience.note(message)


def _ledger(path: Path, store: Store, options: Options, batches: RunBatches | None) -> Ledger:
    """Open the ledger of a run. Raises RunError if it is damaged, UsageError if a cost limit cannot be kept."""
    in_flight = None if batches is None else batches.in_flight()
    ledger = Ledger.open(path / LEDGER, lines=store.ledger_lines, in_flight=in_flight)
    check_spent(path, ledger.balance + spent_elsewhere(options), options.limits.budget)
    return ledger


# -- the evaluation of a prepared run --------------------------------------------------------------------

_MIN_TIMEOUTS = 3
"""Number of timed-out requests from which a too short timeout is suggested."""


class RunEvaluation:
    """The evaluation of a prepared run: streams samples through the metrics and writes the results."""

    def __init__(
        self,
        path: Path,
        ready: Prepared,
        found: Resumed,
        options: Options,
        *,
        store: Store,
        answers: AnswerStore,
        look_up: LookUp,
        ledger: Ledger,
        audience: ProgressDispatcher,
        batches: RunBatches | None,
    ) -> None:
        self._path = path
        self._rewrite = MANIFEST in found.changed  # the manifest on disk is outdated and is written again
        self._manifest = found.manifest
        _, self._roles, self._selection = ready
        self._answers = answers
        self._store = store
        self._look_up = look_up
        self._ledger = ledger
        self._options = options
        self._progress = audience
        self._batches = batches
        self._part = part_of(path / OUTCOMES)
        self._tallies = Tallies(
            spans_of(ready.selection.metrics), ready.selection.composites, found.manifest.fingerprint
        )
        self._done = 0

    async def do(self) -> None:
        """Evaluate all samples. Write the summary also after a cancellation, a limit or a provider failure."""
        began = time.monotonic()
        self._progress.begin(self._path, self._manifest.samples)
        if self._options.storage.retry_failed and (dropped := self._store.drop_failures(_failed_before(self._path))):
            if self._batches is not None:
                self._batches.store.ask_again()
            again = count(dropped, "failed question")
            self._progress.note(f"Asking {again} again; outcomes may change with the answers.")
        dispatcher = Dispatcher(
            self._options.limits.of_requests,
            budget=self._options.limits.budget,
            ledger=self._ledger,
            elsewhere=spent_elsewhere(self._options),
            price=self._options.price,
            known=_earlier_adaptations(self._path),
            tell=self._progress.note,
        )
        self._progress.watch(dispatcher.traffic)
        ended: BaseException | None = None
        try:
            with rare_collections():
                async with dispatcher:
                    await self._all(dispatcher)
        except BaseException as error:
            ended = error
            raise
        finally:
            try:
                self._answers.commit()
                self._finish(dispatcher, time.monotonic() - began, ended)
            finally:
                self._progress.end()

    async def _all(self, dispatcher: Dispatcher) -> None:
        quoted: set[str] = set()
        clusters = cluster_numbers(self._store, self._manifest.cluster)
        with self._part.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
            samples, metrics = self._store.samples(), self._selection.metrics
            async with aclosing(self._results(samples, metrics, dispatcher)) as coming:
                async for results in coming:
                    self._tallies.add({result.metric: result.outcome for result in results}, next(clusters))
                    out.writelines(result.line() for result in results)
                    out.flush()  # a killed run leaves its failures for --retry-failed
                    self._done += 1
                    self._progress.advance(1)
                    for notice in (*dispatcher.notices(), *self._answers.notices()):
                        if notice not in quoted:
                            quoted.add(notice)
                            self._progress.note(notice)

    def _results(
        self, samples: Iterable[Sample], metrics: Mapping[str, Metric], dispatcher: Dispatcher
    ) -> AsyncGenerator[list[Result], None]:
        """Return the results of each sample, in order."""
        if self._batches is not None:
            return self._batches.results(samples, metrics, self._answers, dispatcher, self._progress.note)
        if not asks_in_rounds(metrics.values(), self._roles):
            return self._by_request(samples, metrics, dispatcher)
        batches = Batches()
        dispatcher.on_stop(batches.stop)
        return in_rounds(
            samples, metrics, self._answers, batches, price=dispatcher.spending.price, count=dispatcher.count
        )

    async def _by_request(
        self, samples: Iterable[Sample], metrics: Mapping[str, Metric], dispatcher: Dispatcher
    ) -> AsyncGenerator[list[Result], None]:
        """Yield the results of each sample, for judges that are asked by single requests."""
        driver = AsyncDriver(self._answers, dispatcher)
        try:
            bounds = in_flight_bounds(dispatcher.limits.max_in_flight)
            async for results in stream(samples, metrics, driver, bounds):
                yield results
        finally:
            await driver.close()

    def _finish(self, dispatcher: Dispatcher, seconds: float, ended: BaseException | None) -> None:
        """Write results and usage. `ended`: the error that stopped the run, if any."""
        reached = dispatcher.reached
        summary = {
            "complete": self.complete,
            "samples": self._done,
            "metrics": [aggregate.to_fields() for aggregate in self._tallies.aggregates()],
        }
        if self._ledger.lines:
            self._store.note_ledger(self._ledger.lines)
        usage = {
            **spent_record(self._ledger.balance, self._options.limits.unanswered),
            "cached": self._store.answer_count(cached=True),
            "seconds": round(seconds, 3),
            "adaptations": dispatcher.adaptations(),
            "stopped": self._stopped(dispatcher, ended),
            **({} if self._batches is None else self._batches.record(complete=self.complete)),
            "raise_to": None
            if reached is None or self.complete
            else reached.raise_to(self._done / self._manifest.samples),
        }
        texts = {SUMMARY: json_text(summary)} | (
            {MANIFEST: json_text(self._manifest.to_fields())} if self._rewrite else {}
        )
        if self._part.exists() or not (self._path / OUTCOMES).exists():
            self._part.touch()
            publish(self._path, texts, streamed=True, usage=usage, store=self._store)
        if isinstance(ended, ProviderDown):
            ended.args = (" ".join(filter(None, [str(ended), _timeouts(dispatcher), spent_so_far(usage)])),)
        elif reached is None and (advice := _timeouts(dispatcher)):
            self._progress.note(advice)
        self._progress.spent(usage)

    def _stopped(self, dispatcher: Dispatcher, ended: BaseException | None) -> str | None:
        """Return what ended this call and how many samples are done; None if all is done."""
        if self.complete:
            return None
        if ended is not None:
            stopped = isinstance(ended, asyncio.CancelledError | KeyboardInterrupt)
            why = "Interrupted." if stopped else f"Stopped by an error ({type(ended).__name__})."
        elif dispatcher.reached is None:
            return None
        else:
            why = " ".join(filter(None, [dispatcher.reached.sentence, _timeouts(dispatcher)]))
        return f"{why} {self._done:,} of {self._manifest.samples:,} samples are done."

    @property
    def complete(self) -> bool:
        """True if there is nothing left to do."""
        return self._done == self._manifest.samples


def spent_elsewhere(options: Options) -> Balance:
    """Return what other run directories have spent of the same budget."""
    return sum(map(balance_in, options.shared_with), Balance())


def _timeouts(dispatcher: Dispatcher) -> str:
    """Return advice if most requests of this call were not answered in time; otherwise nothing."""
    sent, lost = dispatcher.spending.sent, dispatcher.timed_out
    if lost < _MIN_TIMEOUTS or 2 * lost <= sent:
        return ""
    return (
        f"{lost:,} of {count(sent, 'request')} got no reply in time: the timeout is probably too short. "
        "Raise it (--timeout, timeout_s)."
    )


def _failed_before(path: Path) -> Iterator[OutcomeRecord]:
    """Yield the outcomes that failed in earlier parts of the run, also in one that was killed."""
    for read in (Run.open(path).records, lambda: map(json.loads, part_of(path / OUTCOMES).open(encoding="utf-8"))):
        with suppress(RunError, OSError, ValueError):  # no such file, or its last line is incomplete
            yield from (each for each in read() if each["outcome"] == "failed")


def _earlier_adaptations(path: Path) -> Any:  # Any: JSON
    """Return the adaptations that an earlier part of this run recorded; None if it is not written yet or damaged."""
    try:
        return Run.open(path).usage.get("adaptations")
    except RunError:
        return None


# -- batches ----------------------------------------------------------------------------------------------


class RunBatches:
    """The batches of one run directory."""

    def __init__(self, path: Path, providers: list[Provider], options: Options) -> None:
        self.store = BatchStore(path / BATCHES)
        self._providers = providers
        self._directory = None if options.storage.batch_files is None else Path(options.storage.batch_files)
        if options.storage.retry_failed and (self.store.waiting() or self.store.first_entry):
            self.store.close()
            raise UsageError(f"{path} waits for batches. Collect them first: leave out --retry-failed.")

    def in_flight(self) -> Callable[[int], bool]:
        """Return the test whether a ledger entry belongs to a batch, so that its reply may still come."""
        entries, first = self.store.entries(), self.store.first_entry
        return lambda entry: entry in entries or 0 < first <= entry

    async def results(
        self,
        samples: Iterable[Sample],
        metrics: Mapping[str, Metric],
        answers: AnswerStore,
        dispatcher: Dispatcher,
        note: Callable[[str], None],
    ) -> AsyncGenerator[list[Result], None]:
        """Yield the results of each sample up to the first that waits for a reply; submit what is missing."""
        from merilo.engine.batch_rounds import WINDOW, BatchRounds

        rounds = BatchRounds(self.store, dispatcher, self._providers, directory=self._directory, note=note)
        dispatcher.on_stop(rounds.stop)
        price, count = dispatcher.spending.price, dispatcher.count
        try:
            await rounds.begin()
            stream = in_rounds(samples, metrics, answers, rounds, window=WINDOW, price=price, count=count, late=True)
            async with aclosing(stream) as coming:
                async for results in coming:
                    yield results
            if not rounds.stopped:
                await rounds.finish()
        finally:
            rounds.close()

    def record(self, *, complete: bool) -> dict[str, object]:
        """Return what `usage.json` holds of the batches; remove the replies of a complete run: its store has them."""
        from merilo.engine.batch_rounds import waiting_record

        waiting = self.store.waiting()
        if complete and not waiting:
            self.store.finish()
        return {"waiting": waiting_record(waiting)} if waiting and not complete else {}


def batches_of(path: Path, metrics: Iterable[Metric], roles: JudgeRoles, options: Options) -> RunBatches | None:
    """Return the batches of a run; None if it does not use any.

    Raises UsageError for a judge without a batch API, options that cannot be combined, and a run that waits for batches
    if the options do not ask for them.
    """
    if not options.storage.batched:
        if (path / BATCHES).exists():
            with closing(BatchStore(path / BATCHES)) as store:
                if store.in_use:
                    raise UsageError(
                        f"{path} has asked questions in batches, and would pay for them twice. Repeat the command with "
                        "--batch."
                    )
        return None
    from merilo.providers.batch_apis import check_batches

    asked = {
        id(judge): judge
        for metric in metrics
        for role in metric.roles
        for kind in metric.asks
        if (judge := roles.judge(kind, role)) is not None
    }
    found = [(name, each) for name, each in providers_of(asked.values()) if not asks_no_model(each)]
    for name, provider in found:
        check_batches(name, provider, files=options.storage.batch_files is not None)
    if not found:
        raise UsageError("No judge of this run has a batch API, so --batch has no use. Leave it out.")
    return RunBatches(path, [provider for _, provider in found], options)
