"""axion's metrics computed by merilo's own engine, with its cache, limits and retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.engine.rate_limits import CONCURRENCY
from merilo.errors import UsageError

from .dataset import item_from
from .metrics import AxionMetric, Setting, results_of, threshold_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from merilo.judges.base import JudgeLike

    from .dataset import DatasetItem
    from .signals import MetricResult


class MetricRunner:
    """A runner that computes several metrics over a data set.

    Args:
        metrics: of this module.
        judge: for every metric without its own judge: any value that `merilo.evaluate` accepts. None: "embedded".
        max_concurrent: maximum requests in flight.
        thresholds: name of a metric's class → score to reach; takes precedence over the metric's own.
        cache: as in `merilo.evaluate`.
        out: directory in which the run is stored, to resume and show it. None: the run is not stored.

    Raises UsageError for invalid arguments.
    """

    def __init__(
        self,
        metrics: Sequence[AxionMetric],
        *,
        judge: JudgeLike | None = None,
        max_concurrent: int = CONCURRENCY,
        thresholds: Mapping[str, float] | None = None,
        cache: bool | str | PathLike[str] = True,
        out: str | PathLike[str] | None = None,
    ) -> None:
        self.metrics = tuple(metrics)
        if not self.metrics:
            raise UsageError("A MetricRunner needs at least one metric: MetricRunner(metrics=[ContextualRelevancy()]).")
        for metric in self.metrics:
            given: object = metric
            if not isinstance(given, AxionMetric):
                raise UsageError(f"A MetricRunner takes metrics of merilo.compat.axion, got {given!r}.")
        unknown = [name for name in thresholds or {} if name not in {metric.name for metric in self.metrics}]
        if unknown:
            raise UsageError(f"thresholds names {unknown[0]!r}, which is not a metric of this runner.")
        checked = {name: threshold_from(number) for name, number in (thresholds or {}).items()}
        self.setting = Setting(judge=judge, max_concurrent=max_concurrent, thresholds=checked, cache=cache, out=out)

    async def run(self, dataset: Iterable[DatasetItem | Mapping[str, object]]) -> list[MetricResult]:
        """Return the results, item by item in the order of the data set; within an item in the order of the metrics.

        The whole data set is one run (one for each judge). An item without a field that a metric needs has a result
        without a score, with the reason. Raises UsageError if a judge cannot answer, DataError for bad records.
        """
        return await results_of(self.metrics, [item_from(item) for item in dataset], self.setting)
