"""The choice of metrics that a replay computes: those of the run, or the requested ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.commands.evaluate.selection import Chosen, definitions_of, metrics_of, missing_fields
from merilo.errors import UsageError
from merilo.metrics.base import is_composite
from merilo.metrics.registry import RecordedMetric, metric_text, parse_recorded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from merilo.commands.replay.recorded_answers import Recorded
    from merilo.metrics.base import Definition, Metric
    from merilo.runs.manifest import Manifest
    from merilo.runs.store import Store


@dataclass(frozen=True, slots=True)
class Selection:
    """The metrics to recompute with their versions, and the composites, by their text."""

    metrics: Mapping[str, Metric]
    versions: Mapping[str, int]
    composites: Mapping[str, Chosen]


@dataclass(frozen=True, slots=True)
class Choosing:
    """Finds the metrics to recompute: those of the run, or the requested ones."""

    manifest: Manifest
    store: Store
    recorded: Recorded
    source: Path

    def selection(self, asked: Sequence[str | Definition] | None) -> Selection:
        """Return the metrics to recompute; `asked`: None for those of the run. Raises UsageError if one is unknown."""
        stored = {**self.manifest.metrics, **self.manifest.composites}
        if asked is None:
            given = [(text, self._known(text, version)) for text, version in stored.items()]
        else:
            given = [("", RecordedMetric(each, each.version)) for each in definitions_of(asked)]
        in_some = self._in_some() if asked else None
        metrics: dict[str, Metric] = {}
        versions: dict[str, int] = {}
        composites: dict[str, Chosen] = {}
        for stored_text, (each, version) in given:
            parts = metrics_of(each, self.recorded.names)
            if in_some is not None:
                _check(parts, in_some)
            if is_composite(each):
                composites[metric_text(each)] = Chosen(each, tuple(parts))
            elif stored_text:  # an earlier version may have had another name
                parts = dict.fromkeys((stored_text,), *parts.values())
                versions[stored_text] = version
            metrics |= {text: metrics.get(text, part) for text, part in parts.items()}
        return Selection(metrics, {text: each.version for text, each in metrics.items()} | versions, composites)

    def _known(self, text: str, version: int) -> RecordedMetric:
        try:
            return parse_recorded(text, version)
        except UsageError as error:
            raise UsageError(
                f"{self.source} has the metric {text}, which cannot be built here ({str(error).rstrip('.')}). Choose "
                "others (--metrics)."
            ) from error

    def _in_some(self) -> frozenset[str]:
        """Return the fields that at least one sample has; needs a pass over the samples."""
        return frozenset[str]().union(*(sample.present for sample in self.store.samples()))


def _check(asked: Mapping[str, Metric], in_some: frozenset[str]) -> None:
    """Raise UsageError for a metric that no sample has the fields for."""
    for text, metric in asked.items():
        if (missing := missing_fields(metric, in_some)) is not None:
            raise UsageError(f"{text} cannot be computed: {missing}.")
