# Upstream page: https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/context_precision/
# Lines: 0.4
"""A judge that replies 2 where 1 is asked for: classes and collections count it unlike."""

import asyncio

from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from ragas import SingleTurnSample
from ragas.llms import LangchainLLMWrapper, llm_factory
from ragas.metrics import LLMContextPrecisionWithReference
from ragas.metrics.collections import ContextPrecision

fields = {
    "user_input": "Who keeps bees?",
    "reference": "Ana keeps bees.",
    "retrieved_contexts": ["Ana keeps bees.", "Bo keeps goats."],
}
collected = ContextPrecision(llm=llm_factory("gpt-4o-mini", client=AsyncOpenAI()))
classic = LLMContextPrecisionWithReference(llm=LangchainLLMWrapper(ChatOpenAI(model="gpt-4o")))
SCORES = {
    "collections": asyncio.run(collected.ascore(**fields)).value,
    "class": asyncio.run(classic.single_turn_ascore(SingleTurnSample(**fields))),
}
