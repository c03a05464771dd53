# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/faithfulness/
# Lines: 0.2 0.3 0.4
"""A reply without JSON is sent back and repaired."""

import asyncio

from langchain_openai import ChatOpenAI
from ragas import SingleTurnSample
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import Faithfulness

sample = SingleTurnSample(
    user_input="Who mends nets at Oss?",
    response="Ilse mends nets at Oss.",
    retrieved_contexts=["Ilse and Tam mend nets in the shed."],
)
scorer = Faithfulness(llm=LangchainLLMWrapper(ChatOpenAI(model="gpt-4o")))
SCORES = {"faithfulness": asyncio.run(scorer.single_turn_ascore(sample))}
