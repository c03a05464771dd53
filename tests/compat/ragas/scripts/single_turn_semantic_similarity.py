# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/semantic_similarity/
# Lines: 0.2 0.3 0.4
"""Likeness with LangChain's embeddings."""

import asyncio

from langchain_openai import OpenAIEmbeddings
from ragas.dataset_schema import SingleTurnSample
from ragas.embeddings import LangchainEmbeddingsWrapper
from ragas.metrics import SemanticSimilarity

sample = SingleTurnSample(
    response="In winter nobody drives to Bask.", reference="The road to Bask is closed in winter."
)
evaluator_embedding = LangchainEmbeddingsWrapper(OpenAIEmbeddings(check_embedding_ctx_length=False))
scorer = SemanticSimilarity(embeddings=evaluator_embedding)
SCORES = {"semantic_similarity": asyncio.run(scorer.single_turn_ascore(sample))}
