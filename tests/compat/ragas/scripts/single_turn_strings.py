# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/traditional/
# Lines: 0.2 0.3 0.4
"""Metrics of spelling."""

import asyncio

from ragas.dataset_schema import SingleTurnSample
from ragas.metrics import (
    DistanceMeasure,
    ExactMatch,
    NonLLMStringSimilarity,
    StringPresence,
)

sample = SingleTurnSample(response="The tower is in Arden", reference="The tower stands in Arden.")
hamming = NonLLMStringSimilarity()
hamming.distance_measure = DistanceMeasure.HAMMING
SCORES = {
    "levenshtein": asyncio.run(NonLLMStringSimilarity().single_turn_ascore(sample)),
    "hamming": asyncio.run(hamming.single_turn_ascore(sample)),
    "exact": asyncio.run(ExactMatch().single_turn_ascore(sample)),
    "presence": asyncio.run(StringPresence().single_turn_ascore(sample)),
}
