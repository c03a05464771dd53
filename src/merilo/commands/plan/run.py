"""What an evaluation would ask and cost, found out without a request and without a key."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from itertools import islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from merilo.commands.evaluate.look_up import LookUp
from merilo.commands.evaluate.preparation import dataset_of, prepared
from merilo.commands.evaluate.settings import checked, judges_of
from merilo.engine.amounts import LOOKED_AT, Amount, Estimate, MetricEstimate
from merilo.engine.answer_store import AnswerStore
from merilo.engine.budget import providers_of
from merilo.engine.cache import VerdictCache, default_path
from merilo.engine.dry_run import DryRun
from merilo.providers.prices import prices_from
from merilo.results.basis import Basis
from merilo.runs.directory_usage import measured_in
from merilo.runs.manifest_diff import broken_files
from merilo.runs.run import STORE
from merilo.runs.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from merilo.commands.evaluate.options import Options
    from merilo.data.lines import ForeignRecords
    from merilo.data.load import Records
    from merilo.engine.dry_run import QuestionCounts


async def run_estimate(
    data: str | PathLike[str] | Records | ForeignRecords, options: Options, *, sample: int | None = LOOKED_AT
) -> Estimate:
    """Run the plans of an evaluation dry.

    `sample`: how many samples to look at, spread evenly; None for all. Nothing is written but a copy of the data in a
    temporary directory.
    """
    options = checked(options)
    judges = judges_of(options)
    dataset = dataset_of(data, options)
    prices = prices_from(options.limits.prices)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="merilo-"))
        store = Store.open(Path(folder, STORE), create=True)
        stack.callback(store.close)
        intake, roles, selection = await prepared(dataset, store, judges, options)
        store.accept_samples()
        begun = None if options.out is None else Path(options.out, STORE)
        look_up = _look_up(begun, options, stack)
        dry = DryRun(AnswerStore(roles, store, None), look_up.held, options.price, measured_in(begun) if begun else {})
        step = 1 if sample is None else -(-intake.samples // sample)
        looked_at = 0
        for each in islice(store.samples(), 0, None, step):
            dry.add(each, selection.metrics)
            looked_at += 1
        scale = intake.samples / looked_at
        local_time = dry.local.time(scale)
    metrics = _metrics(dry.counted, scale)
    if dry.again.questions and options.neighbour_test:
        metrics += _metrics({"asked again at the end": dry.again}, 1.0)
    typical = sum((each.added for each in metrics), Amount())
    at_most = sum((each.at_most for each in metrics), Amount())
    return Estimate(
        data=dataset.name,
        judge=roles.judges["judge"].name if selection.kinds else Basis.NO_JUDGE.value,
        samples=intake.samples,
        looked_at=looked_at,
        metrics=metrics,
        left_out=selection.left_out,
        typical=typical,
        at_most=at_most,
        seconds=_seconds(typical, options),
        concurrency=options.limits.concurrency,
        measured=dry.measured_used,
        prices=prices.known(provider for _, provider in providers_of(judges.values())),
        unpriced=tuple(dry.unpriced),
        weak=selection.weak,
        local_time=local_time,
    )


def _look_up(begun: Path | None, options: Options, stack: ExitStack) -> LookUp:
    """Return the look-up of answers that are there already."""
    run = cache = None
    if begun is not None and begun.exists():
        broken_files(begun.parent)  # raises if the store is damaged or belongs to another run
        run = Store.read(begun)
        stack.callback(run.close)
    path = default_path() if options.storage.cache is True else Path(options.storage.cache or "")
    if options.storage.cache is not False and path.is_file():
        cache = VerdictCache(path)
        stack.callback(cache.close)
    return LookUp(run, cache, failures=not options.storage.retry_failed)


def _metrics(counted: Mapping[str, QuestionCounts], scale: float) -> tuple[MetricEstimate, ...]:
    return tuple(
        MetricEstimate(
            text, each.questions, each.held, each.alone.times(scale), each.added.times(scale), each.at_most.times(scale)
        )
        for text, each in counted.items()
    )


def _seconds(typical: Amount, options: Options) -> float | None:
    """Return the duration that concurrency and rate limits imply; None if the time of a reply is unknown."""
    if not typical.requests:
        return 0.0
    if typical.seconds is None:
        return None
    minutes = [
        typical.requests / (options.limits.requests_per_minute or inf),
        (typical.input_tokens + typical.output_tokens) / (options.limits.tokens_per_minute or inf),
    ]
    return max(typical.seconds / options.limits.concurrency, 60 * max(minutes))
