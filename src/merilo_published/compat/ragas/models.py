"""ragas' wrappers and factories of language and embedding models, as judges, and its settings of a run.

Each also accepts a specification, such as `openai:MODEL`. Scripts import them from `llms`, `embeddings`, `run_config`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError
from merilo.judges.spec import judge_from

from ..scoring import Wrapped, embedder_for, embedder_of_client, judge_for, judge_of_client, spec_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "gemini": "google",
}
"""Provider of `llm_factory` → our provider."""

BaseRagasLLM = Wrapped


def LangchainLLMWrapper(llm: object = None, *_: object, **named: object) -> Wrapped:  # noqa: N802  ragas' name
    """Wrap a model of LangChain or LlamaIndex, or a specification. Other arguments of ragas have no effect."""
    return Wrapped(judge_for(named.get("langchain_llm") if llm is None else llm))


LlamaIndexLLMWrapper = LangchainLLMWrapper


def llm_factory(
    model: str = "gpt-4o-mini",
    provider: str = "openai",
    client: object = None,
    base_url: str | None = None,
    **_: object,
) -> Wrapped:
    """Return the judge for a model: of a provider, behind an OpenAI client, or by our specification.

    Raises UsageError for a provider that merilo does not have.
    """
    if client is not None and provider == "openai":
        return Wrapped(judge_of_client(client, model))
    if provider not in _PROVIDERS:
        raise UsageError(f"llm_factory has no provider {provider!r}; name a model of {', '.join(_PROVIDERS)} instead.")
    spec = spec_of(model) if provider == "openai" else f"{_PROVIDERS[provider]}:{model}"
    return Wrapped(judge_for(spec) if base_url is None else judge_from(spec, base_url=base_url))


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


class RunConfig:
    """Settings under ragas' names. `max_workers` limits the requests in flight; merilo has its own retries."""

    def __init__(self, *, max_workers: int = 16, **others: object) -> None:
        self.__dict__.update(others)
        self.max_workers = max_workers
