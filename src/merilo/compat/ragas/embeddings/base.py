"""The names of `embeddings`, where ragas 0.4 has them too."""

from __future__ import annotations

from merilo.compat.ragas.embeddings import LangchainEmbeddingsWrapper, OpenAIEmbeddings, embedding_factory

__all__ = ["LangchainEmbeddingsWrapper", "OpenAIEmbeddings", "embedding_factory"]
