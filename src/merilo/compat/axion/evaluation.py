"""Metrics of axion computed by merilo's engine, so that its cache, limits and retries apply."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Protocol

from merilo.api import aevaluate
from merilo.engine.rate_limits import CONCURRENCY
from merilo.errors import UsageError
from merilo.judges.spec import judge_from
from merilo.metrics.base import Undefined
from merilo.metrics.registry import metric_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.compat.axion.dataset import DatasetItem
    from merilo.compat.axion.results import MetricResult
    from merilo.data.sample import Sample
    from merilo.judges.base import Judge, JudgeLike
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


class Computed(Protocol):
    """A metric of axion, as far as its evaluation is concerned."""

    judge: JudgeLike | None
    threshold: float

    @property
    def name(self) -> str:
        """The name of the class, as in axion."""
        ...

    def lacking(self, item: DatasetItem) -> str:
        """Return the missing fields of the item as one sentence; empty if there are none."""
        ...

    def metric_for(self, judge: Judge) -> Metric:
        """Return the metric to compute with this judge. Raises UsageError if the judge cannot answer it."""
        ...

    def result(
        self, item: DatasetItem, outcome: Outcome, metric: Metric, *, judge: str, threshold: float
    ) -> MetricResult:
        """Return the outcome as axion reports it."""
        ...


@dataclass(frozen=True)
class _Part:
    """Metrics that share a judge, each with its index among all."""

    judge: Judge
    metrics: Mapping[int, Metric]


async def results_of(metrics: Sequence[Computed], items: Sequence[DatasetItem], setting: Setting) -> list[MetricResult]:
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
    part: _Part, metrics: Sequence[Computed], items: Sequence[DatasetItem], setting: Setting
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


def _parts(metrics: Sequence[Computed], setting: Setting) -> list[_Part]:
    """Return the metrics by judge; judges with the same specification are one."""
    judges: dict[object, Judge] = {}
    members: dict[object, dict[int, Metric]] = {}
    for at, metric in enumerate(metrics):
        given = metric.judge or setting.judge or _DEFAULT
        key: object = given if isinstance(given, str) else id(given)
        judge = judges.setdefault(key, judges.get(key) or judge_from(given))
        members.setdefault(key, {})[at] = metric.metric_for(judge)
    return [_Part(judges[key], members[key]) for key in judges]
