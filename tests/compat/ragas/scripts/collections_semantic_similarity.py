# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/semantic_similarity/
# Lines: 0.4
"""Likeness of answer and reference by their vectors."""

import asyncio

from openai import AsyncOpenAI
from ragas.embeddings import OpenAIEmbeddings
from ragas.metrics.collections import SemanticSimilarity

embeddings = OpenAIEmbeddings(client=AsyncOpenAI(), model="text-embedding-3-small")
fields = {"reference": "The road to Bask is closed in winter.", "response": "In winter nobody drives to Bask."}


async def main():
    usual = await SemanticSimilarity(embeddings=embeddings).ascore(**fields)
    strict = await SemanticSimilarity(embeddings=embeddings, threshold=0.99).ascore(**fields)
    return usual, strict


usual, strict = asyncio.run(main())
SCORES = {"semantic_similarity": usual.value, "with_threshold": strict.value}
