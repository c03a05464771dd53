# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/factual_correctness/
# Lines: 0.2 0.3 0.4
"""Factual correctness in its modes."""

import asyncio

from langchain_openai import ChatOpenAI
from ragas.dataset_schema import SingleTurnSample
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import FactualCorrectness

evaluator_llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o"))
sample = SingleTurnSample(
    response="The isle of Iven has two villages, a harbour and a school.",
    reference="The isle of Iven has two villages and a harbour.",
)


def scored(**options):
    return asyncio.run(FactualCorrectness(llm=evaluator_llm, **options).single_turn_ascore(sample))


SCORES = {
    "f1": scored(),
    "precision": scored(mode="precision"),
    "recall": scored(mode="recall"),
    "high": scored(atomicity="high", coverage="high"),
    "beta": scored(beta=0.5),
}
