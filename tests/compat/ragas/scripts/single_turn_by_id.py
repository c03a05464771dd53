# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/context_precision/#id-based-context-precision
# Lines: 0.3 0.4
"""Precision and recall of ids."""

import asyncio

from ragas import SingleTurnSample
from ragas.metrics import IDBasedContextPrecision, IDBasedContextRecall

sample = SingleTurnSample(
    retrieved_context_ids=["d1", "d2", "d7", "d9"],
    reference_context_ids=["d2", "d7", "d8"],
)
SCORES = {
    "precision": asyncio.run(IDBasedContextPrecision().single_turn_ascore(sample)),
    "recall": asyncio.run(IDBasedContextRecall().single_turn_ascore(sample)),
}
