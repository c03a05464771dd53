"""The base of a user's own model, where DeepEval has it too."""

from __future__ import annotations

from merilo.compat.deepeval.models import DeepEvalBaseLLM

__all__ = ["DeepEvalBaseLLM"]
