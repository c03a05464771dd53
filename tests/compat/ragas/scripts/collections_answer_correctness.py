# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/answer_correctness/
# Lines: 0.4
"""Statements in common, and likeness, as one number."""

import asyncio

from openai import AsyncOpenAI
from ragas.embeddings.base import embedding_factory
from ragas.llms import llm_factory
from ragas.metrics.collections import AnswerCorrectness

client = AsyncOpenAI()
llm = llm_factory("gpt-4o-mini", client=client)
embeddings = embedding_factory("openai", model="text-embedding-3-small", client=client)
fields = {
    "user_input": "Who built the mill at Sarn?",
    "response": "Ada Holt built the mill at Sarn in 1902.",
    "reference": "Ada Holt built the mill at Sarn in 1912.",
}


async def main():
    usual = await AnswerCorrectness(llm=llm, embeddings=embeddings).ascore(**fields)
    facts = await AnswerCorrectness(llm=llm, embeddings=embeddings, weights=[0.5, 0.5], beta=2.0).ascore(**fields)
    return usual, facts


usual, weighted = asyncio.run(main())
SCORES = {"answer_correctness": usual.value, "weighted": weighted.value}
