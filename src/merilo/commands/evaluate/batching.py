"""Evaluation by batches: checks, and what a run keeps between the calls that submit and collect."""

from __future__ import annotations

from contextlib import aclosing, closing
from pathlib import Path
from typing import TYPE_CHECKING

from merilo.engine.budget import providers_of
from merilo.engine.rate_limits import asks_no_model
from merilo.engine.schedule import in_rounds
from merilo.errors import UsageError
from merilo.runs.batch_store import BatchStore
from merilo.runs.files import BATCHES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from merilo.commands.evaluate.options import Options
    from merilo.data.sample import Sample
    from merilo.engine.answer_store import AnswerStore, JudgeRoles
    from merilo.engine.dispatcher import Dispatcher
    from merilo.metrics.base import Metric
    from merilo.providers.base import Provider
    from merilo.runs.outcomes import Result


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
