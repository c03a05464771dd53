"""DeepEval's model classes: the base of a user's own model, and hosted models as judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.compat.models import Wrapped, judge_for
from merilo.judges.spec import judge_from

if TYPE_CHECKING:
    from merilo.judges.base import Judge

__all__ = [
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


def OpenAIModel(model: str, base_url: str | None = None, **_: object) -> Wrapped:  # noqa: N802  DeepEval's name
    """Return a model of OpenAI as a judge; its key is in OPENAI_API_KEY."""
    return Wrapped(_at(f"openai:{model}", base_url))


GPTModel = OpenAIModel


def LocalModel(model: str, base_url: str, **_: object) -> Wrapped:  # noqa: N802  DeepEval's name
    """Return a model behind an OpenAI-compatible server as a judge."""
    return Wrapped(_at(f"openai:{model}", base_url))


def OllamaModel(model: str, base_url: str | None = None, **_: object) -> Wrapped:  # noqa: N802  DeepEval's name
    """Return a model of an Ollama server as a judge."""
    return Wrapped(_at(f"ollama:{model}", base_url))


def AnthropicModel(model: str, **_: object) -> Wrapped:  # noqa: N802  DeepEval's name
    """Return a model of Anthropic as a judge; its key is in ANTHROPIC_API_KEY."""
    return Wrapped(judge_for(f"anthropic:{model}"))


def GeminiModel(model: str, **_: object) -> Wrapped:  # noqa: N802  DeepEval's name
    """Return a model of Google as a judge."""
    return Wrapped(judge_for(f"google:{model}"))


def AzureOpenAIModel(deployment_name: str, **_: object) -> Wrapped:  # noqa: N802  DeepEval's name
    """Return a deployment of Azure as a judge; its address and key are in the environment variables of `azure:`."""
    return Wrapped(judge_for(f"azure:{deployment_name}"))


def _at(spec: str, base_url: str | None) -> Judge:
    return judge_from(spec) if base_url is None else judge_from(spec, base_url=base_url)
