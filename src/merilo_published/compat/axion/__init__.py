"""axion's documented names: a script written for its page on contextual relevancy runs with its imports changed.

`axion.metrics`, `axion.dataset` and `axion.runners` are modules here too, and this module has all their names. If the
page and axion's code disagree, the interface is the page's (`execute`, `run`, `pretty`, the names of the signals) and
the numbers are the code's. docs/axion.md shows all of it.
"""

from __future__ import annotations

import sys

from .. import missing
from . import metrics as runners
from .metrics import (
    AnswerRelevancy,
    ContextualPrecision,
    ContextualRanking,
    ContextualRecall,
    ContextualRelevancy,
    ContextualRelevancyResult,
    ContextualSufficiency,
    ContextualUtilization,
    DatasetItem,
    EvaluationMode,
    FactualAccuracy,
    Faithfulness,
    Interpretation,
    MetricResult,
    MetricRunner,
)

__all__ = [
    "AnswerRelevancy",
    "ContextualPrecision",
    "ContextualRanking",
    "ContextualRecall",
    "ContextualRelevancy",
    "ContextualRelevancyResult",
    "ContextualSufficiency",
    "ContextualUtilization",
    "DatasetItem",
    "EvaluationMode",
    "FactualAccuracy",
    "Faithfulness",
    "Interpretation",
    "MetricResult",
    "MetricRunner",
]

missing.add_files(f"{__name__}.metrics", "internals", "internals.engine", "internals.schema")
dataset = runners
sys.modules.update({f"{__name__}.{name}": runners for name in ("dataset", "runners")})
missing.cover(__name__)
