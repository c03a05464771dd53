# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/context_precision/
# Lines: 0.2 0.3 0.4
"""Samples without contexts, and an answer without a statement."""

import asyncio
import math

from langchain_openai import ChatOpenAI
from ragas import SingleTurnSample
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import (
    Faithfulness,
    LLMContextPrecisionWithReference,
    LLMContextRecall,
)

llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o"))
sample = SingleTurnSample(
    user_input="Who tends the well?", response="Hm!", reference="Eda tends the well.", retrieved_contexts=[]
)
faithfulness = asyncio.run(Faithfulness(llm=llm).single_turn_ascore(sample))
SCORES = {
    "precision": asyncio.run(LLMContextPrecisionWithReference(llm=llm).single_turn_ascore(sample)),
    "recall": asyncio.run(LLMContextRecall(llm=llm).single_turn_ascore(sample)),
    "faithfulness is missing": math.isnan(faithfulness),
}
