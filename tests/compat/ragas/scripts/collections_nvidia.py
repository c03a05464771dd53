# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/nvidia_metrics/
# Lines: 0.4
"""The metrics by two ratings."""

import asyncio

from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import (
    AnswerAccuracy,
    ContextRelevance,
    ResponseGroundedness,
)

llm = llm_factory("gpt-4o-mini", client=AsyncOpenAI())
question = "Which river passes Tarn?"
contexts = ["The Weir passes Tarn and Ulm."]


async def main():
    accuracy = await AnswerAccuracy(llm=llm).ascore(
        user_input=question, response="The Weir does.", reference="It is the river Weir."
    )
    relevance = await ContextRelevance(llm=llm).ascore(user_input=question, retrieved_contexts=contexts)
    grounded = await ResponseGroundedness(llm=llm).ascore(response="The Weir does.", retrieved_contexts=contexts)
    return accuracy, relevance, grounded


accuracy, relevance, grounded = asyncio.run(main())
SCORES = {"accuracy": accuracy.value, "relevance": relevance.value, "groundedness": grounded.value}
