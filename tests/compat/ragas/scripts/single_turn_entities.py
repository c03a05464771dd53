# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/context_entities_recall/
# Lines: 0.2 0.3 0.4
"""Entities of the reference in the contexts."""

import asyncio

from langchain_openai import ChatOpenAI
from ragas import SingleTurnSample
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import ContextEntityRecall

scorer = ContextEntityRecall(llm=LangchainLLMWrapper(ChatOpenAI(model="gpt-4o")))
sample = SingleTurnSample(
    reference="Mira Tolk opened the observatory at Henge in 1954.",
    retrieved_contexts=["The observatory of Henge was opened by Mira Tolk."],
)
SCORES = {"context_entity_recall": asyncio.run(scorer.single_turn_ascore(sample))}
