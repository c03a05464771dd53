# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/context_entities_recall/
# Lines: 0.4
"""Entities of a reference that the contexts name."""

import asyncio

from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import ContextEntityRecall

llm = llm_factory("gpt-4o-mini", client=AsyncOpenAI())
scorer = ContextEntityRecall(llm=llm)
result = asyncio.run(
    scorer.ascore(
        reference="Mira Tolk opened the observatory at Henge in 1954.",
        retrieved_contexts=["The observatory of Henge was opened by Mira Tolk."],
    )
)
SCORES = {"context_entity_recall": result.value}
