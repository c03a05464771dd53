# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/context_recall/
# Lines: 0.2 0.3 0.4
"""Contexts compared with reference contexts by spelling."""

import asyncio

from ragas.dataset_schema import SingleTurnSample
from ragas.metrics import NonLLMContextPrecisionWithReference, NonLLMContextRecall

sample = SingleTurnSample(
    retrieved_contexts=["The fair at Noll is in May.", "Wool is sold at Noll."],
    reference_contexts=["The fair of Noll is in May.", "Sheep come from Ebb.", "Wool is sold in Noll."],
)
SCORES = {
    "recall": asyncio.run(NonLLMContextRecall().single_turn_ascore(sample)),
    "precision": asyncio.run(NonLLMContextPrecisionWithReference().single_turn_ascore(sample)),
}
