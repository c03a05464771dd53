"""axion's documented names: a script written for its page on contextual relevancy runs with this import alone changed.

Where the page and axion's code disagree, the interface is the page's (`execute`, `run`, `pretty`, the names of the
signals) and the numbers are the code's. docs/how-to/axion.md shows all of it.
"""

from __future__ import annotations

from merilo.compat.axion_items import DatasetItem
from merilo.compat.axion_metrics import (
    AnswerRelevancy,
    ContextualPrecision,
    ContextualRanking,
    ContextualRecall,
    ContextualRelevancy,
    ContextualSufficiency,
    ContextualUtilization,
    FactualAccuracy,
    Faithfulness,
)
from merilo.compat.axion_results import Interpretation, MetricResult
from merilo.compat.axion_running import MetricRunner
from merilo.compat.axion_signals import ContextualRelevancyResult
from merilo.metrics.published.axion.steps import Mode as EvaluationMode

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
