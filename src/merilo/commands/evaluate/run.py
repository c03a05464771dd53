"""One evaluation, from data to a finished run."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from contextlib import ExitStack, aclosing, nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from merilo.commands.evaluate.batching import RunBatches, batches_of
from merilo.commands.evaluate.cascade import RunCascades
from merilo.commands.evaluate.local_time import asks_local_model, local_time, time_sentence
from merilo.commands.evaluate.look_up import LookUp
from merilo.commands.evaluate.selection import Selection, select
from merilo.commands.evaluate.settings import check_shard, checked, judges_of
from merilo.data.load import load
from merilo.data.sentences import SPLITTER_ID
from merilo.engine.answer_store import SPECIAL, AnswerStore, JudgeRoles
from merilo.engine.budget import Reached, check_prices, check_spent, price_again, providers_of, spent_record
from merilo.engine.cache import VerdictCache, default_path
from merilo.engine.dispatcher import Dispatcher
from merilo.engine.drivers import AsyncDriver
from merilo.engine.gc_tuning import rare_collections
from merilo.engine.installed.worded import INSTALLED, worded, wordings_of
from merilo.engine.progress import ProgressDispatcher
from merilo.engine.repeated import draws_for, draws_of, repeated
from merilo.engine.rounds import Batches, asks_in_rounds, in_rounds
from merilo.engine.schedule import early_stop_bounds, in_flight_bounds, stream
from merilo.errors import ProviderDown, RunError, UsageError
from merilo.judges.cascade import each_judge
from merilo.judges.routed import part_for
from merilo.judging.registry import KINDS
from merilo.judging.rubric import rubric_versions
from merilo.providers.prices import outdated, prices_from
from merilo.rendering.event_log import EventLog
from merilo.rendering.spent import spent_so_far
from merilo.rendering.wording import count
from merilo.results.summary import Tallies, spans_of
from merilo.runs.balance import balance_in
from merilo.runs.clusters import check_clusters, cluster_numbers
from merilo.runs.directory import run_directory
from merilo.runs.empty_runs import is_worthless
from merilo.runs.files import LEDGER, TABLE
from merilo.runs.ingest import Intake, take_in
from merilo.runs.ledger import Balance, Ledger
from merilo.runs.lock import RunLock
from merilo.runs.manifest import Manifest
from merilo.runs.manifest_diff import resumed
from merilo.runs.outcome_lines import as_table
from merilo.runs.publish import part_of
from merilo.runs.run import MANIFEST, OUTCOMES, STORE, SUMMARY, Run, json_text, write_json
from merilo.runs.scales import scales_of
from merilo.runs.seal import publish, recover
from merilo.runs.shards import Shard
from merilo.runs.store import Store
from merilo.runs.tape_writer import write_tape
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
    from os import PathLike

    from merilo.commands.evaluate.options import Options
    from merilo.commands.evaluate.stopping import Stopping
    from merilo.data.load import Records
    from merilo.data.sample import Dataset, Sample
    from merilo.judges.base import Judge
    from merilo.metrics.base import Metric
    from merilo.results.early_stopping import EarlyStopState
    from merilo.results.planned_stopping import PlannedStopState
    from merilo.runs.outcomes import Result

_MIN_TIMEOUTS = 3
"""Number of timed-out requests from which a too short timeout is suggested."""


async def run_evaluation(data: str | PathLike[str] | Records, options: Options) -> Run:
    """Evaluate a data set; return the finished run, or an incomplete one if a limit was reached.

    After a cancellation, or if a provider is down, all answers are stored and the same call resumes the run. If there
    are none, a directory that this call created is removed.
    """
    options = checked(options)
    if options.runner is not None:
        raise UsageError("Only `merilo run` and `merilo.evaluate` have a runner. Leave it out.")
    judges = judges_of(options)
    check_shard(options, judges.values())
    check_prices(options.budget, judges.values(), options.price)
    dataset = load(data, mapping=options.mapping, language=options.language, limit=options.limit)
    try:
        path, made = run_directory(options.out, dataset.name)
    except (OSError, ValueError) as error:
        raise RunError(f"Cannot use the run directory ({error}). Choose another one (--out).") from error
    with RunLock(path):
        try:
            recover(path)
            with _event_log(options) as log:
                return await _run_in(path, dataset, judges, options, log)
        except BaseException as error:
            worthless = made and is_worthless(path)
            if worthless:
                shutil.rmtree(path, ignore_errors=True)
            if isinstance(error, sqlite3.Error | OSError):
                kept = "" if worthless else " Earlier answers are stored."
                raise RunError(f"Cannot read or write {path} ({error}).{kept}") from error
            raise


class Prepared(NamedTuple):
    """The data in the store, the judges and the metrics of a run, before its first question."""

    intake: Intake
    roles: JudgeRoles
    selection: Selection


async def prepared(dataset: Dataset, store: Store, judges: dict[str, Judge], options: Options) -> Prepared:
    """Read the data into the store and select the metrics that data and judges support.

    Raises DataError and UsageError.
    """
    limited = _limited(judges)
    knows = None if limited is None else partial(_knows, limited)
    shard = None if options.shard is None else Shard.parse(options.shard)
    intake = await take_in(dataset, store, skip_invalid=options.skip_invalid, knows=knows, shard=shard)
    if dataset.columns.unseen:
        names = ", ".join(map(repr, dataset.columns.unseen))
        raise UsageError(f"No record has the mapped column {names}. Check its spelling (--map).")
    roles = JudgeRoles(judges)
    selection = select(options.metrics, intake, roles, lenient=options.lenient)
    draws = draws_for(selection.metrics, roles, options.draws)
    metrics = worded(selection.metrics) if options.prompts == INSTALLED else selection.metrics
    return Prepared(intake, roles, replace(selection, metrics=repeated(metrics, draws)))


def _limited(judges: Mapping[str, Judge]) -> Judge | None:
    """Return the first judge that supports certain languages only; None if all support every language."""
    own = {role: judge for role, judge in judges.items() if role not in SPECIAL.values()}
    return next((judge for judge in each_judge(own.values()) if hasattr(judge, "supports_language")), None)


def _knows(judge: Judge, sample: Sample) -> bool:
    known: Callable[[Sequence[str]], bool] = getattr(judge, "supports_language")  # noqa: B009  not every judge has it
    texts = [sample.user_input, sample.response, *(each.text for each in sample.retrieved_contexts or ())]
    given = [text for text in texts if text is not None and text.strip()]
    return not given or known(given)


def _event_log(options: Options) -> EventLog | nullcontext[None]:
    """Return the open event log, or a no-op. Raises UsageError if the file cannot be written."""
    if options.log_json is None:
        return nullcontext()
    return EventLog(options.log_json, {**asdict(options.request_limits), **asdict(options.budget)})


async def _run_in(
    path: Path, dataset: Dataset, judges: dict[str, Judge], options: Options, log: EventLog | None
) -> Run:
    with ExitStack() as stack:
        store = Store.open(path / STORE, create=not (path / MANIFEST).exists())
        stack.callback(store.close)
        intake, roles, selection = await prepared(dataset, store, judges, options)
        manifest = _manifest(dataset, intake, selection, roles, options)
        stopping = _stopping(options, manifest, selection, store)
        if stopping is not None:
            manifest = replace(manifest, until=stopping.rule.record())
        found = resumed(path, manifest)
        manifest = found.manifest
        store.accept_samples(None if stopping is None else stopping.place)
        if manifest.cluster is not None:
            check_clusters(store, manifest.cluster)
        if not (path / MANIFEST).exists() or MANIFEST in found.changed:
            store.put_copy(MANIFEST, json_text(manifest.to_fields()))
        elif store.remark(MANIFEST) is None:  # merilo 0.1.0 stored no copy
            store.put_copy(MANIFEST, (path / MANIFEST).read_text(encoding="utf-8"))
        if not (path / MANIFEST).exists():
            write_json(path / MANIFEST, manifest.to_fields())
        audience = ProgressDispatcher(options.progress, log)
        for name in found.changed:
            audience.note(f"{path / name} was changed after merilo wrote it. It is computed again.")
        _check_age_of_prices(judges, options, audience)
        cache = None
        if options.cache is not False:
            cache = VerdictCache(default_path() if options.cache is True else Path(options.cache))
            stack.callback(_closed, cache, audience)
        batches = batches_of(path, selection.metrics.values(), roles, options)
        if batches is not None:
            stack.callback(batches.close)
        ledger = _ledger(path, store, judges, options, batches)
        stack.callback(ledger.close)
        answers = AnswerStore(roles, store, cache)
        rounds = asks_in_rounds(selection.metrics.values(), roles)
        work = _Work(
            path,
            manifest,
            selection,
            options,
            store=store,
            answers=answers,
            look_up=LookUp(store, cache, failures=not options.retry_failed),
            judges=tuple(judges.values()),
            ledger=ledger,
            audience=audience,
            rounds=rounds,
            batches=batches,
            rewrite=MANIFEST in found.changed,
        )
        try:
            await work.do()
        except BaseException:
            _record(path, options, audience, stopped=True)
            raise
        _record(path, options, audience)
    return Run.open(path)


def _stopping(options: Options, manifest: Manifest, selection: Selection, store: Store) -> Stopping | None:
    if options.until is None:
        return None
    from merilo.commands.evaluate.stopping import stopping_of

    return stopping_of(options, manifest, selection.metrics, store)


def _check_age_of_prices(judges: Mapping[str, Judge], options: Options, audience: ProgressDispatcher) -> None:
    """Note that prices which this run uses are outdated."""
    prices = prices_from(options.prices).known(provider for _, provider in providers_of(judges.values()))
    if warning := outdated(prices, datetime.now(UTC).date()):
        audience.note(warning)


def _closed(cache: VerdictCache, audience: ProgressDispatcher) -> None:
    if (message := cache.close()) is not None:
        audience.note(message)


def _ledger(
    path: Path, store: Store, judges: Mapping[str, Judge], options: Options, batches: RunBatches | None
) -> Ledger:
    """Open the ledger of a run. Raises RunError if it is damaged, UsageError if a cost limit cannot be kept."""
    in_flight = None if batches is None else batches.in_flight()
    ledger = Ledger.open(path / LEDGER, store.charges(), lines=store.ledger_lines, in_flight=in_flight)
    price_again(ledger, options.price, judges.values())
    check_spent(path, ledger.balance + _elsewhere(options), options.budget)
    return ledger


def _elsewhere(options: Options) -> Balance:
    """Return what other run directories have spent of the same budget."""
    return sum(map(balance_in, options.shared_with), Balance())


class _Work:
    """The evaluation of a prepared run: streams samples through the metrics and writes the results."""

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        selection: Selection,
        options: Options,
        *,
        store: Store,
        answers: AnswerStore,
        look_up: LookUp,
        judges: Sequence[Judge],
        ledger: Ledger,
        audience: ProgressDispatcher,
        rounds: bool,
        batches: RunBatches | None,
        rewrite: bool,
    ) -> None:
        """Prepare the run. `rewrite`: the manifest on disk is outdated and is written again."""
        self._path = path
        self._rewrite = rewrite
        self._manifest = manifest
        self._selection = selection
        self._store = store
        self._answers = answers
        self._look_up = look_up
        self._judges = judges
        self._ledger = ledger
        self._options = options
        self._progress = audience
        self._rounds = rounds
        self._batches = batches
        self._cascades = RunCascades(store, path / STORE, answers, [*selection.metrics.values()], self._results)
        self._deciding: EarlyStopState | PlannedStopState | None = None
        self._part = part_of(path / OUTCOMES)
        self._shown = 0
        """Number of samples that the progress display has counted as done."""
        self._begin_pass()

    async def do(self) -> None:
        """Evaluate all samples. Write the summary also after a cancellation, a limit or a provider failure."""
        began = time.monotonic()
        self._progress.begin(self._path, self._manifest.samples)
        if self._options.retry_failed and (dropped := self._store.drop_failures()):
            if self._batches is not None:
                self._batches.ask_again()
            again = count(dropped, "failed question")
            self._progress.note(f"Asking {again} again; outcomes may change with the answers.")
        self._note_local_time()
        dispatcher = Dispatcher(
            self._options.request_limits,
            budget=self._options.budget,
            ledger=self._ledger,
            elsewhere=_elsewhere(self._options),
            price=self._options.price,
            shared=self._options.shared_limits,
            known=_known_adaptations(self._path),
            tell=self._progress.quote,
            listen=self._progress.listener,
        )
        self._progress.watch(dispatcher.traffic)
        ended: BaseException | None = None
        try:
            with rare_collections():
                async with dispatcher:
                    await self._everything(dispatcher)
        except BaseException as error:
            ended = error
            self._progress.stopped(error)
            raise
        finally:
            try:
                self._answers.commit()
                self._finish(dispatcher, time.monotonic() - began, ended)
            finally:
                self._progress.end()

    def _note_local_time(self) -> None:
        """Report how long local models will take, unless the caller reports it or no progress is shown."""
        options = self._options
        if options.reports_local_time and options.progress is not None and asks_local_model(self._judges):
            time = local_time(self._manifest.samples, self._selection.metrics, self._answers, self._look_up)
            if time is not None:
                self._progress.note(time_sentence(time))

    async def _everything(self, dispatcher: Dispatcher) -> None:
        """Run all samples; again if an audit of a cascade failed, since some of its verdicts then change."""
        self._part.write_text("", encoding="utf-8")
        if not await self._cascades.calibrate(dispatcher):
            return
        while True:
            self._begin_pass()
            await self._all(dispatcher)
            if self._decided or not self._whole:
                return
            failed = await self._cascades.audit(dispatcher)
            if not failed:
                return
            for each in failed:
                self._progress.note(each)

    def _begin_pass(self) -> None:
        """Reset the aggregates before a pass over all samples."""
        selection = self._selection
        self._tallies = Tallies(spans_of(selection.metrics), selection.composites, self._manifest.fingerprint)
        self._deciding = _deciding(self._manifest, selection)
        self._done = 0

    async def _all(self, dispatcher: Dispatcher) -> None:
        quoted: set[str] = set()
        clusters = cluster_numbers(self._store, self._manifest.cluster)
        with self._part.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
            samples, metrics = self._store.samples(), self._selection.metrics
            async with aclosing(self._results(samples, metrics, dispatcher)) as coming:
                async for results in coming:
                    cluster = next(clusters)
                    if self._decided:  # answers that were in flight are stored, but not counted
                        continue
                    self._tallies.add({result.metric: result.outcome for result in results}, cluster)
                    out.writelines(result.line() for result in results)
                    out.flush()  # `merilo view` counts the lines of a run in progress; it costs microseconds
                    self._done += 1
                    if self._done > self._shown:
                        self._shown += 1
                        self._progress.sample(results)
                    if self._deciding is not None:
                        self._decide(self._deciding, results, cluster, dispatcher)
                    for notice in (*dispatcher.notices(), *self._answers.notices()):
                        if notice not in quoted:
                            quoted.add(notice)
                            self._progress.quote(notice)

    @property
    def _decided(self) -> bool:
        return self._deciding is not None and self._deciding.decided

    def _decide(
        self,
        deciding: EarlyStopState | PlannedStopState,
        results: list[Result],
        cluster: int | None,
        dispatcher: Dispatcher,
    ) -> None:
        """Add a sample to the gates; stop sending once all are decided."""
        deciding.add(results, cluster)
        if deciding.decided:
            dispatcher.halt(Reached("Every gate is decided."))

    def _results(
        self, samples: Iterable[Sample], metrics: Mapping[str, Metric], dispatcher: Dispatcher
    ) -> AsyncGenerator[list[Result], None]:
        """Return the results of each sample, in order."""
        if self._batches is not None:
            return self._batches.results(samples, metrics, self._answers, dispatcher, self._progress.note)
        return (
            self._in_rounds(samples, metrics, dispatcher)
            if self._rounds
            else self._by_request(samples, metrics, dispatcher)
        )

    async def _by_request(
        self, samples: Iterable[Sample], metrics: Mapping[str, Metric], dispatcher: Dispatcher
    ) -> AsyncGenerator[list[Result], None]:
        """Yield the results of each sample, for judges that are asked by single requests."""
        driver, concurrency = AsyncDriver(self._answers, dispatcher), self._options.concurrency
        room = in_flight_bounds(concurrency) if self._deciding is None else early_stop_bounds(concurrency)
        try:
            async for results in stream(samples, metrics, driver, room):
                yield results
        finally:
            await driver.close()

    def _in_rounds(
        self, samples: Iterable[Sample], metrics: Mapping[str, Metric], dispatcher: Dispatcher
    ) -> AsyncGenerator[list[Result], None]:
        """Return the same for judges that are asked the questions of many samples in one batch."""
        batches = Batches()
        dispatcher.on_stop(batches.stop)
        return in_rounds(samples, metrics, self._answers, batches, price=dispatcher.price, count=dispatcher.count)

    def _finish(self, dispatcher: Dispatcher, seconds: float, ended: BaseException | None) -> None:
        """Write results and usage. `ended`: the error that stopped the run, if any."""
        aggregates = self._tallies.aggregates()
        deciding, reached = self._deciding, dispatcher.reached
        if deciding is not None:
            aggregates = [deciding.valid(aggregate) for aggregate in aggregates]
        cascades = self._cascades.records(self._part if self._decided else None)
        summary = {
            "complete": self._complete,
            "samples": self._done,
            "metrics": [aggregate.to_fields() for aggregate in aggregates],
            **({"cascades": cascades} if cascades else {}),
            **({} if deciding is None else {"until_decided": deciding.record(self._manifest.samples)}),
        }
        usage = {
            **self._spent(),
            "seconds": round(seconds, 3),
            "adaptations": dispatcher.adaptations(),
            "stopped": self._stopped(dispatcher, ended),
            **({} if self._batches is None else self._batches.record(complete=self._complete)),
            "raise_to": None if reached is None else reached.raise_to(self._done / self._manifest.samples),
        }
        self._publish(summary, usage)
        if isinstance(ended, ProviderDown):
            ended.args = (" ".join(filter(None, [str(ended), _timeouts(dispatcher), spent_so_far(usage)])),)
        elif reached is None and (advice := _timeouts(dispatcher)):
            self._progress.note(advice)
        self._progress.spent(usage)

    def _spent(self) -> dict[str, object]:
        """Return what the run has spent: from its ledger, or from its store if no paid model was ever asked."""
        if self._ledger.lines:
            self._store.note_ledger(self._ledger.lines)
        balance = self._ledger.balance if self._ledger.lines else Balance(self._store.charges())
        return {**spent_record(balance, self._options.unanswered), "cached": self._store.spent().cached}

    def _publish(self, summary: Mapping[str, object], usage: Mapping[str, object]) -> None:
        """Replace the files of an earlier part of the run, all in one step."""
        texts = {SUMMARY: json_text(summary)}
        if self._rewrite:
            texts[MANIFEST] = json_text(self._manifest.to_fields())
        if self._part.exists() or not any((self._path / name).exists() for name in (OUTCOMES, TABLE)):
            self._part.touch()
            form = as_table(self._options.outcomes)
            publish(self._path, texts, streamed=True, usage=usage, store=self._store, table=form)

    def _stopped(self, dispatcher: Dispatcher, ended: BaseException | None) -> str | None:
        """Return what ended this call and how many samples are done; None if all is done."""
        if self._complete:
            return None
        if ended is not None:
            stopped = isinstance(ended, asyncio.CancelledError | KeyboardInterrupt)
            why = "Interrupted." if stopped else f"Stopped by an error ({type(ended).__name__})."
        elif dispatcher.reached is None:
            return None
        else:
            why = " ".join(filter(None, [dispatcher.reached.sentence, _timeouts(dispatcher)]))
        if self._whole:
            return f"{why} All samples are done, but not the audit of the cascade."
        return f"{why} {self._done:,} of {self._manifest.samples:,} samples are done."

    @property
    def _complete(self) -> bool:
        """True if there is nothing left to do."""
        return self._decided or (self._whole and self._cascades.audited)

    @property
    def _whole(self) -> bool:
        """True if there is nothing left to do with any sample."""
        return self._decided or self._done == self._manifest.samples


def _deciding(manifest: Manifest, selection: Selection) -> EarlyStopState | PlannedStopState | None:
    """Return what decides the gates of a run; None if it does not stop early."""
    if manifest.until is None:
        return None
    from merilo.results.planned_stopping import stop_of_record

    return stop_of_record(manifest.until).deciding(selection.metrics)


def _timeouts(dispatcher: Dispatcher) -> str:
    """Return advice if most requests of this call were not answered in time; otherwise nothing."""
    sent, lost = dispatcher.spending.sent, dispatcher.timed_out
    if lost < _MIN_TIMEOUTS or 2 * lost <= sent:
        return ""
    return (
        f"{lost:,} of {count(sent, 'request')} got no reply in time: the timeout is probably too short. "
        "Raise it (--timeout, timeout_s)."
    )


def _manifest(dataset: Dataset, intake: Intake, selection: Selection, roles: JudgeRoles, options: Options) -> Manifest:
    first = roles.judges["judge"]
    others = {role: judge for role, judge in roles.judgements.items() if judge is not first}
    judges = {"judge": first} | others | roles.special(selection.kinds)
    return Manifest(
        merilo=version(),
        data=dataset.name,
        fingerprint=intake.fingerprint,
        samples=intake.samples,
        skipped=intake.skipped,
        metrics={text: metric.version for text, metric in selection.metrics.items()},
        left_out=selection.left_out,
        judges={
            role: {
                "name": judge.name,
                "fingerprint": judge.fingerprint(),
                "rates": judge.agreement_note,
                **_weak(judge, role, selection),
            }
            for role, judge in judges.items()
        },
        splitter=SPLITTER_ID,
        language=options.language,
        cluster=options.cluster,
        notes=tuple(
            filter(None, [dataset.columns.sentence(), _limit_note(options.limit), _language_note(intake, roles)])
        ),
        composites={text: chosen.composite.version for text, chosen in selection.composites.items()},
        rubrics=rubric_versions(selection.kinds),
        scales=scales_of(selection.metrics),
        draws=draws_of(selection.metrics),
        wordings=wordings_of(selection.metrics),
        shard=intake.shard,
    )


def _weak(judge: Judge, role: str, selection: Selection) -> dict[str, list[str]]:
    """Return the weak metrics of a run and the weak kinds of a judge, as manifest entries; empty if there are none.

    The weak metrics are recorded with the judge of the role `judge`, whichever role makes them weak.
    """
    order = [*selection.metrics, *selection.composites, *selection.left_out]
    found = [text for text in dict.fromkeys(order) if text in selection.weak] if role == "judge" else []
    kinds = [name for name, kind in KINDS.items() if (part := part_for(judge, kind)) and name in _weak_kinds(part)]
    return {**({"weak": found} if found else {}), **({"weak_kinds": kinds} if kinds else {})}


def _weak_kinds(judge: Judge) -> frozenset[str]:
    found: frozenset[str] = getattr(judge, "weak_kinds", frozenset())
    return found


def _record(path: Path, options: Options, audience: ProgressDispatcher, *, stopped: bool = False) -> None:
    """Write the tape, if one is wanted. After a stop, a tape that cannot be written is only noted."""
    if options.record is None:
        return
    try:
        cached = write_tape(Run.open(path), Path(options.record))
    except RunError as error:
        if not stopped:
            raise
        audience.note(str(error))
    else:
        if cached:
            audience.note(f"{cached:,} answers came from the cache; {options.record} has no raw replies to them.")


def _language_note(intake: Intake, roles: JudgeRoles) -> str:
    judge = _limited(roles.judges)
    if judge is None or not intake.unknown:
        return ""
    which = f"{intake.unknown:,} of {count(intake.read, 'sample')}"
    verb, them = ("is", "it") if intake.unknown == 1 else ("are", "them")
    languages = ", ".join(f"{code} {n:,}" for code, n in sorted(intake.unknown_languages.items(), key=_most_first))
    first = [f"{each:.40}" for each in intake.unknown_first]
    named = ", ".join([*first, "..."] if intake.unknown > len(first) else first)
    return (
        f"{which} ({named}) {verb} in a language that {judge.name} does not support ({languages}). Metrics that it "
        f"judges there are weak, and its agreement with human labels does not cover {them}."
    )


def _most_first(language: tuple[str, int]) -> tuple[int, str]:
    code, samples = language
    return -samples, code


def _limit_note(limit: int | None) -> str:
    return "" if limit is None else f"Only the first {limit:,} records were read (--limit)."


def _known_adaptations(path: Path) -> dict[str, dict[str, str]]:
    """Return the request adaptations that an earlier part of this run learnt."""
    try:
        known: dict[str, dict[str, str]] = Run.open(path).usage["adaptations"]
    except (RunError, KeyError):  # not written yet or damaged; they are learnt again
        return {}
    return known
