# Upstream page: https://docs.ragas.io/en/v0.2.15/getstarted/evals/
# Lines: 0.2 0.3 0.4
"""The user's own yes-or-no question about an answer."""

import asyncio

from langchain_openai import ChatOpenAI
from ragas import SingleTurnSample
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import AspectCritic

evaluator_llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o"))
metric = AspectCritic(
    name="brief", llm=evaluator_llm, definition="Is the response a single sentence that leaves nothing out?"
)
good = SingleTurnSample(user_input="Sum up: Rain fell and roads closed.", response="Rain closed the roads.")
bad = SingleTurnSample(user_input="Sum up: Snow fell and schools closed.", response="Snow fell. It was deep.")
SCORES = {
    "good": asyncio.run(metric.single_turn_ascore(good)),
    "bad": asyncio.run(metric.single_turn_ascore(bad)),
}
