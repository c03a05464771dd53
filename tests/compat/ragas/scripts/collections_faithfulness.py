# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/faithfulness/
# Lines: 0.4
"""Faithfulness of one answer, with a client of OpenAI."""

import asyncio

from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import Faithfulness

client = AsyncOpenAI()
llm = llm_factory("gpt-4o-mini", client=client)
scorer = Faithfulness(llm=llm)


async def main():
    return await scorer.ascore(
        user_input="When was the Doran lighthouse lit?",
        response="The Doran lighthouse was lit in 1871. It is painted red.",
        retrieved_contexts=["The lamp at Cape Doran first burned in 1871. The tower is white."],
    )


result = asyncio.run(main())
print(f"Faithfulness: {result.value}")
SCORES = {"faithfulness": result.value}
