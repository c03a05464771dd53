"""ragas' wrappers of embedding models. Each also accepts a specification, such as `openai:MODEL`."""

from __future__ import annotations

from merilo.errors import UsageError

from ..scoring import Wrapped, embedder_for, embedder_of_client

__all__ = ["LangchainEmbeddingsWrapper", "OpenAIEmbeddings", "embedding_factory"]


def LangchainEmbeddingsWrapper(embeddings: object, *_: object, **__: object) -> Wrapped:  # noqa: N802  ragas' name
    """Wrap a LangChain embedding model, or a specification. Other arguments of ragas have no effect."""
    return Wrapped(embedder_for(embeddings))


def OpenAIEmbeddings(client: object = None, model: str = "text-embedding-3-small", **_: object) -> Wrapped:  # noqa: N802  ragas' name
    """Return the embedder for a model of OpenAI, or behind an OpenAI client."""
    return Wrapped(embedder_for(model) if client is None else embedder_of_client(client, model))


def embedding_factory(
    provider: str = "openai", model: str | None = None, client: object = None, **_: object
) -> Wrapped:
    """Return the embedder for a model of OpenAI, behind an OpenAI client, or by our specification.

    Raises UsageError for another provider.
    """
    known, _separator, named = provider.partition("/")
    if known == "openai":
        return OpenAIEmbeddings(client, model or named or "text-embedding-3-small")
    if model is not None:
        raise UsageError(f"embedding_factory has no provider {provider!r}; name an embedder, such as openai:MODEL.")
    return Wrapped(embedder_for(provider))  # the name of a model, as in ragas 0.2
