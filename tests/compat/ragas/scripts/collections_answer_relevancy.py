# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/answer_relevance/
# Lines: 0.4
"""Questions made of an answer, compared by their vectors."""

import asyncio

from openai import AsyncOpenAI
from ragas.embeddings.base import embedding_factory
from ragas.llms import llm_factory
from ragas.metrics.collections import AnswerRelevancy

client = AsyncOpenAI()
llm = llm_factory("gpt-4o-mini", client=client)
embeddings = embedding_factory("openai", model="text-embedding-3-small", client=client)
scorer = AnswerRelevancy(llm=llm, embeddings=embeddings)
result = asyncio.run(
    scorer.ascore(user_input="How long is the Ketter bridge?", response="The Ketter bridge is 310 metres long.")
)
SCORES = {"answer_relevancy": result.value}
