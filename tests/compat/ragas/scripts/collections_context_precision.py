# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/context_precision/
# Lines: 0.4
"""Precision of ranked contexts, with and without a reference."""

import asyncio

from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import (
    ContextPrecision,
    ContextPrecisionWithoutReference,
    ContextPrecisionWithReference,
    ContextUtilization,
)

llm = llm_factory("gpt-4o-mini", client=AsyncOpenAI())
contexts = [
    "Ferries to Lund leave from pier two.",
    "The museum of Lund opens at nine.",
    "Tickets for the ferry to Lund cost four crowns.",
]
question = "Where does the ferry to Lund leave, and what does it cost?"
reference = "It leaves from pier two and costs four crowns."


async def main():
    with_reference = {"user_input": question, "reference": reference, "retrieved_contexts": contexts}
    with_response = {"user_input": question, "response": "From pier two.", "retrieved_contexts": contexts}
    return {
        "context_precision": await ContextPrecision(llm=llm).ascore(**with_reference),
        "with_reference": await ContextPrecisionWithReference(llm=llm).ascore(**with_reference),
        "utilization": await ContextUtilization(llm=llm).ascore(**with_response),
        "without_reference": await ContextPrecisionWithoutReference(llm=llm).ascore(**with_response),
    }


results = asyncio.run(main())
SCORES = {name: result.value for name, result in results.items()}
