"""Use or write a provider: the code that sends a request to a model.

The names in `__all__` are public. Each is imported when it is first used.
"""

from typing import TYPE_CHECKING

from merilo.lazy import exports

if TYPE_CHECKING:
    from merilo.errors import (
        Permanent,
        ProviderDown,
        ProviderError,
        RateLimited,
        Refused,
        Temporary,
        TimedOut,
        TooLarge,
        Unreachable,
    )
    from merilo.providers.anthropic import AnthropicProvider
    from merilo.providers.base import Connection, Finish, Message, Provider, Reply, ReplyPath, Request, Usage
    from merilo.providers.bedrock import BedrockProvider
    from merilo.providers.decisions import DecisionsProvider, SystemOneProvider
    from merilo.providers.google import GoogleProvider
    from merilo.providers.ollama import OllamaProvider
    from merilo.providers.openai import AzureProvider, OpenAIProvider

__all__ = [
    "AnthropicProvider",
    "AzureProvider",
    "BedrockProvider",
    "Connection",
    "DecisionsProvider",
    "Finish",
    "GoogleProvider",
    "Message",
    "OllamaProvider",
    "OpenAIProvider",
    "Permanent",
    "Provider",
    "ProviderDown",
    "ProviderError",
    "RateLimited",
    "Refused",
    "Reply",
    "ReplyPath",
    "Request",
    "SystemOneProvider",
    "Temporary",
    "TimedOut",
    "TooLarge",
    "Unreachable",
    "Usage",
]

__getattr__, __dir__ = exports(__name__)
