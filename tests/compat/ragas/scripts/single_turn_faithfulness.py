# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/faithfulness/
# Lines: 0.2 0.3 0.4
"""Faithfulness of a SingleTurnSample."""

import asyncio

from langchain_openai import ChatOpenAI
from ragas.dataset_schema import SingleTurnSample
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import Faithfulness

evaluator_llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o"))
sample = SingleTurnSample(
    user_input="When was the Doran lighthouse lit?",
    response="The Doran lighthouse was lit in 1871. It is painted red.",
    retrieved_contexts=["The lamp at Cape Doran first burned in 1871. The tower is white."],
)
scorer = Faithfulness(llm=evaluator_llm)
score = asyncio.run(scorer.single_turn_ascore(sample))
SCORES = {"faithfulness": score}
