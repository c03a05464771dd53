# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/noise_sensitivity/
# Lines: 0.4
"""Wrong statements of an answer that a context supports."""

import asyncio

from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import NoiseSensitivity

llm = llm_factory("gpt-4o-mini", client=AsyncOpenAI())
fields = {
    "user_input": "What happens at Pell in January?",
    "response": "The harbour at Pell freezes. Boats are moved to Oss.",
    "reference": "The harbour at Pell freezes. Boats are pulled ashore.",
    "retrieved_contexts": ["In January Pell harbour is ice-bound.", "Boats from Pell winter at Oss, says an old song."],
}


async def main():
    relevant = await NoiseSensitivity(llm=llm).ascore(**fields)
    irrelevant = await NoiseSensitivity(llm=llm, mode="irrelevant").ascore(**fields)
    return relevant, irrelevant


relevant, irrelevant = asyncio.run(main())
SCORES = {"relevant": relevant.value, "irrelevant": irrelevant.value}
