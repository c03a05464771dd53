"""The samples of a run with the worst scores of a metric."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from merilo.metrics.registry import known_metric
from merilo.runs.scales import recorded_scale
from merilo.runs.weak import weak_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from merilo.runs.manifest import Aggregate, Manifest
    from merilo.runs.outcomes import OutcomeRecord


@dataclass(frozen=True, slots=True)
class WorstScores:
    """The worst scores of one metric, the worst first; equal scores in the order of the data."""

    metric: str
    higher_is_better: bool
    samples: tuple[tuple[str, float], ...]
    """Sample id and score."""
    scored: int
    undefined: int
    failed: int


def metric_to_inspect(manifest: Manifest, aggregates: Mapping[str, Aggregate]) -> str | None:
    """Return the metric whose mean is farthest from its best value, as a fraction of its range.

    Metrics that ask no judge, or for which the judge is weak, are chosen only if there is no other. None if no sample
    has a score.
    """
    weak = weak_metrics(manifest)
    scored = [each for each in aggregates.values() if each.scored and each.mean is not None and not each.parts]
    judged = [each for each in scored if (known := known_metric(each.metric)) is None or known.asks] or scored
    chosen = [each for each in judged if each.metric not in weak] or judged
    return max(chosen, key=lambda each: _shortfall(manifest, each)).metric if chosen else None


def _shortfall(manifest: Manifest, aggregate: Aggregate) -> float:
    scale = recorded_scale(manifest, aggregate.metric)
    low, high = scale.span
    if aggregate.mean is None or not (isfinite(low) and isfinite(high)) or high <= low:
        return 0.0
    best = high if scale.higher_is_better else low
    return abs(best - aggregate.mean) / (high - low)


def worst_scores(manifest: Manifest, records: Iterable[OutcomeRecord], metric: str, count: int) -> WorstScores:
    """Return the `count` worst scores of a metric, in one pass over the run's outcomes."""
    higher = recorded_scale(manifest, metric).higher_is_better
    tally: Counter[str] = Counter()

    def scored() -> Iterator[tuple[float, int, str]]:
        for place, record in enumerate(records):
            if record["metric"] == metric:
                tally[record["outcome"]] += 1
                value = record.get("value")
                if value is not None:
                    yield value if higher else -value, place, record["sample"]

    found = heapq.nsmallest(count, scored())  # holds `count` scores, whatever the size of the run
    samples = tuple((sample, value if higher else -value) for value, _, sample in found)
    return WorstScores(metric, higher, samples, tally["score"], tally["undefined"], tally["failed"])
