# Upstream page: https://docs.ragas.io/en/v0.2.15/concepts/metrics/available_metrics/semantic_similarity/
# Lines: 0.2 0.3 0.4
"""Similarity above a threshold is 1."""

import asyncio

from langchain_openai import OpenAIEmbeddings
from ragas import SingleTurnSample
from ragas.embeddings import LangchainEmbeddingsWrapper
from ragas.metrics import SemanticSimilarity

embeddings = LangchainEmbeddingsWrapper(OpenAIEmbeddings(check_embedding_ctx_length=False))
sample = SingleTurnSample(response="Ada mends the mill.", reference="The mill is mended by Ada.")
SCORES = {
    str(threshold): asyncio.run(
        SemanticSimilarity(embeddings=embeddings, threshold=threshold).single_turn_ascore(sample)
    )
    for threshold in (0.5, 0.999)
}
