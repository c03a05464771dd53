"""Which metrics a replay computes: those of the run, or those asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.errors import UsageError
from merilo.metrics.base import is_composite
from merilo.metrics.registry import metric_text, parse_metric
from merilo.selection import Chosen, definitions_of, metrics_of, missing_fields

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

    def selection(self, asked: Sequence[str | Definition] | None) -> Selection:
        """Raises UsageError for a metric that is not known here."""
        stored = [*self.manifest.metrics, *self.manifest.composites]
        given = [self._known(text) for text in stored] if asked is None else definitions_of(asked)
        in_some = self._in_some() if asked else None
        metrics: dict[str, Metric] = {}
        composites: dict[str, Chosen] = {}
        for each in given:
            parts = metrics_of(each, self.recorded.names)
            if in_some is not None:
                _check(parts, in_some)
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

    def _in_some(self) -> frozenset[str]:
        """The fields that some sample has; it takes a pass over the samples."""
        return frozenset[str]().union(*(sample.present for sample in self.store.samples()))


def _check(asked: Mapping[str, Metric], in_some: frozenset[str]) -> None:
    """Raises UsageError for a metric that no sample has the fields for."""
    for text, metric in asked.items():
        if (missing := missing_fields(metric, in_some)) is not None:
            raise UsageError(f"{text} cannot be computed: {missing}.")
