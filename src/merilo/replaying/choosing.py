"""Which metrics a replay computes: those of the run, or those asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from merilo.errors import UsageError
from merilo.metrics.base import is_composite
from merilo.metrics.registry import metric_text, parse_metric, resolve
from merilo.selection import Chosen, metrics_of, missing_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from merilo.metrics.base import Definition, Metric
    from merilo.replaying.recorded import Recorded
    from merilo.runs.run import Manifest
    from merilo.runs.store import Store


@dataclass(frozen=True, slots=True)
class Selection:
    """The metrics to recompute, and the composites, by their text."""

    metrics: Mapping[str, Metric]
    composites: Mapping[str, Chosen]


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
        composites: dict[str, Chosen] = {}
        for each in given:
            parts = metrics_of(each, self._named, self.recorded.names)
            self._check(parts if asked else {})
            metrics |= {text: metrics.get(text, part) for text, part in parts.items()}
            if is_composite(each):
                composites[metric_text(each)] = Chosen(each, tuple(parts))
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

    def _check(self, asked: Mapping[str, Metric]) -> None:
        """Raises UsageError for a metric that no sample has the fields for."""
        for text, metric in asked.items():
            if (missing := missing_fields(metric, self._fields()[1])) is not None:
                raise UsageError(f"{text} cannot be computed: {missing}.")

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
