# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/context_precision/
# Lines: 0.2 0.3 0.4
"""Precision with a judge, with and without a reference."""

import asyncio

from langchain_openai import ChatOpenAI
from ragas import SingleTurnSample
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import (
    LLMContextPrecisionWithoutReference,
    LLMContextPrecisionWithReference,
)

evaluator_llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o"))
sample = SingleTurnSample(
    user_input="Where does the ferry to Lund leave, and what does it cost?",
    response="From pier two.",
    reference="It leaves from pier two and costs four crowns.",
    retrieved_contexts=[
        "The museum of Lund opens at nine.",
        "Ferries to Lund leave from pier two.",
        "Tickets for the ferry to Lund cost four crowns.",
    ],
)
with_reference = LLMContextPrecisionWithReference(llm=evaluator_llm)
without = LLMContextPrecisionWithoutReference(llm=evaluator_llm)
SCORES = {
    "with_reference": asyncio.run(with_reference.single_turn_ascore(sample)),
    "without_reference": asyncio.run(without.single_turn_ascore(sample)),
}
