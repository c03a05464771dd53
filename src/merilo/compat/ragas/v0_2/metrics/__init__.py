"""The metrics of ragas 0.2."""

from __future__ import annotations

from merilo.compat.ragas.scorers import names_of
from merilo.compat.ragas.table import V0_2

METRICS, __getattr__, __dir__ = names_of(V0_2, __name__)
__all__ = list(METRICS)  # pyright: ignore[reportUnsupportedDunderAll]  the names come from the table
