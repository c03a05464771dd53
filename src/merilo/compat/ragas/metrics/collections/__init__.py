"""The metrics of `ragas.metrics.collections`, whose scores are objects with a `value`."""

from __future__ import annotations

from merilo.compat.ragas.scorers import CollectionsMetric, names_of
from merilo.compat.ragas.table import COLLECTIONS

METRICS, __getattr__, __dir__ = names_of(COLLECTIONS, __name__, CollectionsMetric)
__all__ = list(METRICS)  # pyright: ignore[reportUnsupportedDunderAll]  the names come from the table
