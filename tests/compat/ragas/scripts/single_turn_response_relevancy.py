# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/answer_relevance/
# Lines: 0.2 0.3 0.4
"""Relevancy, with LangChain's embeddings."""

import asyncio

from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from ragas import SingleTurnSample
from ragas.embeddings import LangchainEmbeddingsWrapper
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import ResponseRelevancy

evaluator_llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o"))
evaluator_embeddings = LangchainEmbeddingsWrapper(OpenAIEmbeddings(check_embedding_ctx_length=False))
sample = SingleTurnSample(
    user_input="How long is the Ketter bridge?",
    response="The Ketter bridge is 310 metres long.",
    retrieved_contexts=["The bridge at Ketter measures 310 metres."],
)
scorer = ResponseRelevancy(llm=evaluator_llm, embeddings=evaluator_embeddings)
SCORES = {"answer_relevancy": asyncio.run(scorer.single_turn_ascore(sample))}
