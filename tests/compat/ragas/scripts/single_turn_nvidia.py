# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/nvidia_metrics/
# Lines: 0.2 0.3 0.4
"""The metrics by two ratings."""

import asyncio

from langchain_openai import ChatOpenAI
from ragas.dataset_schema import SingleTurnSample
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import AnswerAccuracy, ContextRelevance, ResponseGroundedness

evaluator_llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o"))
sample = SingleTurnSample(
    user_input="Which river passes Tarn?",
    response="The Weir does.",
    reference="It is the river Weir.",
    retrieved_contexts=["The Weir passes Tarn and Ulm."],
)
SCORES = {
    "accuracy": asyncio.run(AnswerAccuracy(llm=evaluator_llm).single_turn_ascore(sample)),
    "relevance": asyncio.run(ContextRelevance(llm=evaluator_llm).single_turn_ascore(sample)),
    "groundedness": asyncio.run(ResponseGroundedness(llm=evaluator_llm).single_turn_ascore(sample)),
}
