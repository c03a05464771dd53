"""DeepEval's model classes: the base of a user's own model, and hosted models as judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.judges.spec import judge_from

from ..scoring import Wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "AmazonBedrockModel",
    "AnthropicModel",
    "AzureOpenAIModel",
    "DeepEvalBaseLLM",
    "GPTModel",
    "GeminiModel",
    "LocalModel",
    "OllamaModel",
    "OpenAIModel",
]


class DeepEvalBaseLLM:
    """The base of a user's own model, which defines `generate(prompt)` and `get_model_name()`.

    merilo calls `generate` in threads, with each prompt as one text. It does not call `a_generate`.
    """

    def __init__(self, *_: object, **__: object) -> None:
        return

    def load_model(self) -> object:
        """Return the model that `generate` uses."""
        return self

    def generate(self, prompt: str) -> str:
        """Return the reply to a prompt."""
        raise NotImplementedError  # the user's class overrides it, as with DeepEval's own base class

    def get_model_name(self) -> str:
        """Return the name of the model."""
        return type(self).__name__


def _hosted(provider: str) -> Callable[..., Wrapped]:
    """Return DeepEval's class for a provider: the model or deployment as a judge, with its key in the environment."""

    def make(model: str = "", base_url: str | None = None, *, deployment_name: str = "", **_: object) -> Wrapped:
        spec = f"{provider}:{model or deployment_name}"
        return Wrapped(judge_from(spec) if base_url is None else judge_from(spec, base_url=base_url))

    return make


OpenAIModel = GPTModel = LocalModel = _hosted("openai")
OllamaModel = _hosted("ollama")
AnthropicModel = _hosted("anthropic")
GeminiModel = _hosted("google")
AzureOpenAIModel = _hosted("azure")
AmazonBedrockModel = _hosted("bedrock")
