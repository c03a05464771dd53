# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/factual_correctness/
# Lines: 0.4
"""Claims of answer and reference, by precision, recall and F1."""

import asyncio

from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import FactualCorrectness

llm = llm_factory("gpt-4o-mini", client=AsyncOpenAI())
response = "The isle of Iven has two villages, a harbour and a school."
reference = "The isle of Iven has two villages and a harbour."


async def main():
    found = {}
    for mode in ("f1", "precision", "recall"):
        scorer = FactualCorrectness(llm=llm, mode=mode)
        found[mode] = (await scorer.ascore(response=response, reference=reference)).value
    return found


SCORES = asyncio.run(main())
