# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/context_recall/
# Lines: 0.4
"""Recall of the statements of a reference."""

import asyncio

from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import ContextRecall

llm = llm_factory("gpt-4o-mini", client=AsyncOpenAI())
scorer = ContextRecall(llm=llm)
result = asyncio.run(
    scorer.ascore(
        user_input="What grows in the Orrin valley?",
        retrieved_contexts=["Barley and rye grow in the Orrin valley."],
        reference="Barley grows in the Orrin valley. Rye grows there. So do apples.",
    )
)
print(result.value)
SCORES = {"context_recall": result.value}
