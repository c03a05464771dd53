# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/noise_sensitivity/
# Lines: 0.2 0.3 0.4
"""Noise sensitivity in both modes."""

import asyncio

from langchain_openai import ChatOpenAI
from ragas.dataset_schema import SingleTurnSample
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import NoiseSensitivity

evaluator_llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o"))
sample = SingleTurnSample(
    user_input="What happens at Pell in January?",
    response="The harbour at Pell freezes. Boats are moved to Oss.",
    reference="The harbour at Pell freezes. Boats are pulled ashore.",
    retrieved_contexts=["In January Pell harbour is ice-bound.", "Boats from Pell winter at Oss, says an old song."],
)
relevant = NoiseSensitivity(llm=evaluator_llm)
irrelevant = NoiseSensitivity(llm=evaluator_llm, mode="irrelevant")
SCORES = {
    "relevant": asyncio.run(relevant.single_turn_ascore(sample)),
    "irrelevant": asyncio.run(irrelevant.single_turn_ascore(sample)),
}
