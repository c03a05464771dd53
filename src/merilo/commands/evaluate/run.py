"""One evaluation, from data to a finished run."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from merilo.commands.evaluate.batching import RunBatches, batches_of
from merilo.commands.evaluate.evaluation import RunEvaluation, spent_elsewhere
from merilo.commands.evaluate.preparation import Prepared, checked, dataset_of, judges_of, manifest_of, prepared
from merilo.engine.answer_store import AnswerStore, LookUp
from merilo.engine.budget import check_prices, check_spent, providers_of
from merilo.engine.cache import VerdictCache
from merilo.engine.cache_file import default_path
from merilo.engine.progress import ProgressDispatcher
from merilo.errors import RunError, UsageError
from merilo.providers.prices import outdated, prices_from
from merilo.runs.clusters import clusters_by_sample
from merilo.runs.directory import Resumed, is_worthless, resumed, run_directory
from merilo.runs.files import LEDGER, MANIFEST, STORE, RunLock
from merilo.runs.ledger import Ledger
from merilo.runs.run import Run, json_text, write_json
from merilo.runs.seal import recover
from merilo.runs.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from merilo.commands.evaluate.options import Options
    from merilo.data.lines import ForeignRecords
    from merilo.data.load import Records
    from merilo.data.sample import Dataset
    from merilo.judges.base import Judge


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
            return await _run_in(path, dataset, judges, options)
        except BaseException as error:
            worthless = made and is_worthless(path)
            if worthless:
                shutil.rmtree(path, ignore_errors=True)
            if isinstance(error, sqlite3.Error | OSError):
                kept = "" if worthless else " Earlier answers are stored."
                raise RunError(f"Cannot read or write {path} ({error}).{kept}") from error
            raise


async def _run_in(path: Path, dataset: Dataset, judges: dict[str, Judge], options: Options) -> Run:
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
        answers = AnswerStore(roles, store, cache)
        work = RunEvaluation(
            path,
            found.manifest,
            selection,
            options,
            store=store,
            answers=answers,
            look_up=LookUp(store, cache, failures=not options.storage.retry_failed),
            roles=roles,
            ledger=ledger,
            audience=audience,
            batches=batches,
            rewrite=MANIFEST in found.changed,
        )
        await work.do()
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
