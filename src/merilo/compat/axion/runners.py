"""axion's metrics computed by merilo's own engine, with its cache, limits and retries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from merilo.api import aevaluate
from merilo.compat.axion.dataset import item_from
from merilo.compat.axion.metrics import AxionMetric, threshold_from
from merilo.engine.rate_limits import CONCURRENCY
from merilo.errors import UsageError
from merilo.judges.spec import judge_from
from merilo.metrics.base import Undefined
from merilo.metrics.registry import metric_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from merilo.compat.axion.dataset import DatasetItem
    from merilo.compat.axion.results import MetricResult
    from merilo.data.sample import Sample
    from merilo.judges.base import Judge
    from merilo.judges.spec import JudgeLike
    from merilo.metrics.base import Metric, Outcome

_DEFAULT: Final = "embedded"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The options of a run; the fields are those of `MetricRunner`."""

    judge: JudgeLike | None = None
    max_concurrent: int = CONCURRENCY
    thresholds: Mapping[str, float] | None = None
    cache: bool | str | PathLike[str] = True
    out: str | PathLike[str] | None = None


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


@dataclass(frozen=True)
class _Part:
    """Metrics that share a judge, each with its index among all."""

    judge: Judge
    metrics: Mapping[int, Metric]


async def results_of(
    metrics: Sequence[AxionMetric], items: Sequence[DatasetItem], setting: Setting
) -> list[MetricResult]:
    """Return the results of all metrics on all items: item by item, metrics in order."""
    parts = _parts(metrics, setting)
    if setting.out is not None and len(parts) > 1:
        raise UsageError("A stored run (out=...) has one judge for all metrics; omit out=, or use one judge.")
    found: dict[tuple[int, int], MetricResult] = {}
    for part in parts:
        outcomes = await _outcomes(part, metrics, items, setting)
        for at, computed in part.metrics.items():
            metric = metrics[at]
            threshold = (setting.thresholds or {}).get(metric.name, metric.threshold)
            for place, item in enumerate(items):
                sentence = metric.lacking(item)
                outcome = Undefined(sentence) if sentence else outcomes[place][metric_text(computed)]
                found[place, at] = metric.result(item, outcome, computed, judge=part.judge.name, threshold=threshold)
    return [found[place, at] for place in range(len(items)) for at in range(len(metrics))]


async def _outcomes(
    part: _Part, metrics: Sequence[AxionMetric], items: Sequence[DatasetItem], setting: Setting
) -> list[Mapping[str, Outcome]]:
    """Return the outcomes on each item, by the metric's text."""
    asked = {
        metric_text(computed): computed
        for at, computed in part.metrics.items()
        if any(not metrics[at].lacking(item) for item in items)
    }
    if not asked:
        return [{} for _ in items]
    samples = [item.sample(str(number)) for number, item in enumerate(items, start=1)]
    if setting.out is not None:
        return await _evaluated(samples, list(asked.values()), part.judge, setting, Path(setting.out))
    with TemporaryDirectory(prefix="merilo-", ignore_cleanup_errors=True) as folder:
        return await _evaluated(samples, list(asked.values()), part.judge, setting, Path(folder) / "run")


async def _evaluated(
    samples: Sequence[Sample], metrics: Sequence[Metric], judge: Judge, setting: Setting, out: Path
) -> list[Mapping[str, Outcome]]:
    run = await aevaluate(
        samples, metrics=metrics, judge=judge, out=out, cache=setting.cache, concurrency=setting.max_concurrent
    )
    return [found.outcomes for found in run.samples]


def _parts(metrics: Sequence[AxionMetric], setting: Setting) -> list[_Part]:
    """Return the metrics by judge; judges with the same specification are one."""
    judges: dict[object, Judge] = {}
    members: dict[object, dict[int, Metric]] = {}
    for at, metric in enumerate(metrics):
        given = metric.judge or setting.judge or _DEFAULT
        key: object = given if isinstance(given, str) else id(given)
        judge = judges.setdefault(key, judges.get(key) or judge_from(given))
        members.setdefault(key, {})[at] = metric.metric_for(judge)
    return [_Part(judges[key], members[key]) for key in judges]
