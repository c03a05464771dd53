"""Which metrics a replay computes: those of the run, or those asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from merilo.errors import UsageError
from merilo.metrics.base import is_composite
from merilo.metrics.registry import metric_text, parse_metric, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from merilo.metrics.base import Composite, Definition, Metric
    from merilo.replaying.recorded import Recorded
    from merilo.runs.run import Manifest
    from merilo.runs.store import Store


@dataclass(frozen=True, slots=True)
class Selection:
    """The metrics to recompute by their text, and the composites with the texts of their parts."""

    metrics: Mapping[str, Metric]
    composites: Mapping[str, tuple[Composite, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Choosing:
    """Finds the metrics to recompute: those of the run, or those asked for."""

    manifest: Manifest
    store: Store
    recorded: Recorded
    source: Path
    fields: list[tuple[frozenset[str], frozenset[str]]] = field(default_factory=list[Any])
    """Found when first needed: it takes a pass over the samples."""

    def selection(self, asked: Sequence[str | Definition] | None) -> Selection:
        """Raises UsageError for a metric that is not known here."""
        stored = [*self.manifest.metrics, *self.manifest.composites]
        given = [self._known(text) for text in stored] if asked is None else [self._named(each) for each in asked]
        metrics: dict[str, Metric] = {}
        composites: dict[str, tuple[Composite, tuple[str, ...]]] = {}
        for each in given:
            if is_composite(each):
                parts = {metric_text(part): part for part in (self._part(text, each) for text in each.parts)}
                self._check(parts if asked else {})
                metrics |= {text: metrics.get(text, part) for text, part in parts.items()}
                composites[metric_text(each)] = (each, tuple(parts))
            else:
                metric = self._bound(cast("Metric", each))  # what is no composite is a metric
                self._check({metric_text(metric): metric} if asked else {})
                metrics.setdefault(metric_text(metric), metric)
        return Selection(metrics, composites)

    def _known(self, text: str) -> Definition:
        try:
            return parse_metric(text)
        except UsageError as error:
            raise UsageError(
                f"{self.source} has the metric {text}, which cannot be made here ({str(error).rstrip('.')}); give it "
                "as an object (merilo.replay(..., metrics=[...])) or name others (--metrics)."
            ) from error

    def _named(self, given: str | Definition) -> Definition:
        return resolve(given, self._fields()[0]) if isinstance(given, str) else given

    def _part(self, text: str, composite: Composite) -> Metric:
        part = self._named(text)
        if is_composite(part):
            raise UsageError(f"{composite.name} is made of {text}, which has no value for a sample; name metrics.")
        return self._bound(cast("Metric", part))  # as above

    def _bound(self, metric: Metric) -> Metric:
        """The metric as the run's judges answered it: one that asks several takes their names."""
        bind: Callable[[Sequence[str]], Metric] | None = getattr(metric, "for_judges", None)
        return metric if bind is None else bind(self.recorded.names())

    def _check(self, asked: Mapping[str, Metric]) -> None:
        """Raises UsageError for a metric that no sample has the fields for."""
        for text, metric in asked.items():
            if missing := sorted(metric.needs - self._fields()[1]):
                raise UsageError(f"{text} cannot be computed: no sample has {' or '.join(missing)}.")

    def _fields(self) -> tuple[frozenset[str], frozenset[str]]:
        """The fields that every sample has, and those that some sample has."""
        if not self.fields:
            in_every: frozenset[str] | None = None
            in_some: frozenset[str] = frozenset()
            for sample in self.store.samples():
                in_every = sample.present if in_every is None else in_every & sample.present
                in_some |= sample.present
            self.fields.append((in_every or frozenset(), in_some))
        return self.fields[0]
