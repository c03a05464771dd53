"""The names of `llms`, where ragas has them too."""

from __future__ import annotations

from merilo.compat.ragas.llms import BaseRagasLLM, LangchainLLMWrapper, LlamaIndexLLMWrapper, llm_factory

__all__ = ["BaseRagasLLM", "LangchainLLMWrapper", "LlamaIndexLLMWrapper", "llm_factory"]
