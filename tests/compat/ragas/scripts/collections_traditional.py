# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/traditional/
# Lines: 0.4
"""Metrics of spelling, without a judge."""

import asyncio

from ragas.metrics.collections import (
    DistanceMeasure,
    ExactMatch,
    NonLLMStringSimilarity,
    StringPresence,
)

fields = {"reference": "The tower stands in Arden.", "response": "The tower is in Arden"}


async def main():
    found = {}
    for measure in DistanceMeasure:
        scorer = NonLLMStringSimilarity(distance_measure=measure)
        found[measure.value] = (await scorer.ascore(**fields)).value
    found["exact_match"] = (await ExactMatch().ascore(**fields)).value
    found["presence"] = (await StringPresence().ascore(reference="in Arden", response=fields["response"])).value
    return found


SCORES = asyncio.run(main())
