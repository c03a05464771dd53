"""The metrics of ragas 0.3."""

from __future__ import annotations

from merilo.compat.ragas.distances import DistanceMeasure
from merilo.compat.ragas.scorers import MetricResult, RagasMetric, metrics_of, missing_name
from merilo.compat.ragas.table import V0_3 as LINE

METRICS = {
    **metrics_of(LINE, RagasMetric),
    "DistanceMeasure": DistanceMeasure,
    "MetricResult": MetricResult,
}
__all__ = list(METRICS)  # pyright: ignore[reportUnsupportedDunderAll]  the names come from the table


def __getattr__(name: str) -> object:
    """Return a metric by name. Raises ImportError for a metric of ragas that merilo does not have."""
    if name in METRICS:
        return METRICS[name]
    raise missing_name(LINE, name, __name__)


def __dir__() -> list[str]:
    """Return the names of the metrics."""
    return sorted(METRICS)
