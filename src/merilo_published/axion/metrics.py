"""The metrics of axion as its code computes them, quirks included; the other modules of this package define them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo_published.axion.answers import AnswerRelevancy, FactualAccuracy
from merilo_published.axion.contexts import (
    ContextualPrecision,
    ContextualRanking,
    ContextualRelevancy,
    ContextualSufficiency,
    ContextualUtilization,
)
from merilo_published.axion.statements import ContextualRecall, Faithfulness

if TYPE_CHECKING:
    from merilo.metrics.base import Metric

METRICS: Final[tuple[type[Metric], ...]] = (
    ContextualRelevancy,
    ContextualRanking,
    ContextualPrecision,
    ContextualRecall,
    ContextualSufficiency,
    ContextualUtilization,
    Faithfulness,
    AnswerRelevancy,
    FactualAccuracy,
)
