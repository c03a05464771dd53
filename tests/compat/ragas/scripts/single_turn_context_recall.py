# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/context_recall/
# Lines: 0.2 0.3 0.4
"""Recall with a judge."""

import asyncio

from langchain_openai import ChatOpenAI
from ragas.dataset_schema import SingleTurnSample
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import LLMContextRecall

evaluator_llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o"))
sample = SingleTurnSample(
    user_input="What grows in the Orrin valley?",
    response="Barley.",
    reference="Barley grows in the Orrin valley. Rye grows there. So do apples.",
    retrieved_contexts=["Barley and rye grow in the Orrin valley."],
)
context_recall = LLMContextRecall(llm=evaluator_llm)
SCORES = {"context_recall": asyncio.run(context_recall.single_turn_ascore(sample))}
