"""The metrics of the newest line of ragas: `from merilo.compat.ragas.metrics import faithfulness, Faithfulness`."""

from __future__ import annotations

from merilo.compat.ragas.scorers import names_of
from merilo.compat.ragas.table import NEWEST

METRICS, __getattr__, __dir__ = names_of(NEWEST, __name__)
__all__ = list(METRICS)  # pyright: ignore[reportUnsupportedDunderAll]  the names come from the table
