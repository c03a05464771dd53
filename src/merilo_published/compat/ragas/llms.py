"""ragas' wrappers of language models, as judges. Each also accepts a specification, such as `openai:MODEL`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError

from ..scoring import Wrapped, judge_for, judge_of_client, spec_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BaseRagasLLM", "LangchainLLMWrapper", "LlamaIndexLLMWrapper", "llm_factory"]

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
    if base_url is not None:
        from merilo.judges.spec import judge_from

        return Wrapped(judge_from(spec, base_url=base_url))
    return Wrapped(judge_for(spec))
