# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/answer_relevance/
# Lines: 0.2 0.3 0.4
"""An answer that some of the replies call evasive."""

import asyncio

from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from ragas import SingleTurnSample
from ragas.embeddings import LangchainEmbeddingsWrapper
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import ResponseRelevancy

scorer = ResponseRelevancy(
    llm=LangchainLLMWrapper(ChatOpenAI(model="gpt-4o")),
    embeddings=LangchainEmbeddingsWrapper(OpenAIEmbeddings(check_embedding_ctx_length=False)),
)
sample = SingleTurnSample(
    user_input="How old is the oak at Brack?", response="The oak is old, but its age is not certain."
)
SCORES = {"answer_relevancy": asyncio.run(scorer.single_turn_ascore(sample))}
