"""The providers that have a batch API, and how a connection to one is opened."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from merilo.errors import UsageError
from merilo.providers.openai import OpenAIProvider
from merilo.providers.secrets import secrets_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from merilo.providers.base import Connection, Provider
    from merilo.providers.batch_api import BatchApi
    from merilo.providers.chat import ChatConnection

    class _Opened(Protocol):
        @property
        def connection(self) -> Connection: ...


_APIS: Final = {
    "openai": ("merilo.providers.openai_batches", "OpenAIBatches"),
    "anthropic": ("merilo.providers.anthropic_batches", "AnthropicBatches"),
    "google": ("merilo.providers.google_batches", "GoogleBatches"),
}
"""The class of each provider's batch API, by the kind of provider."""


class OpenBatches(NamedTuple):
    """A batch API, and the connection that makes its bodies and reads its replies."""

    connection: ChatConnection
    api: BatchApi


def check_batches(name: str, provider: Provider, *, files: bool) -> None:
    """Raise UsageError if a judge's requests cannot go into batches."""
    if files and not isinstance(provider, OpenAIProvider):
        raise UsageError(f"--batch-files writes OpenAI's format, which {name} does not read. Use --judge openai:MODEL.")
    if isinstance(provider, OpenAIProvider) and files and [*secrets_in(provider.body, provider.base_url)]:
        raise UsageError("--batch-files would write a secret of the judge's `body` to a file. Leave it out.")
    if _kind(provider) not in _APIS:
        known = ", ".join(f"{kind}:MODEL" for kind in _APIS)
        raise UsageError(f"merilo knows no batch API for {name}. Leave out --batch, or use another judge ({known}).")


async def open_batches(
    provider: Provider, connect: Callable[[Provider], Awaitable[_Opened]], directory: Path | None
) -> OpenBatches:
    """Open a provider's batch API; `connect` opens its connection. With a `directory`, batches are files there, and no
    key is needed.
    """
    if directory is not None and isinstance(provider, OpenAIProvider):
        from merilo.providers.batch_files import BatchFiles

        keyless = provider if provider.api_key is not None else replace(provider, api_key=lambda: "")
        return OpenBatches(cast("ChatConnection", (await connect(keyless)).connection), BatchFiles(directory))
    module, name = _APIS[_kind(provider)]
    connection = cast("ChatConnection", (await connect(provider)).connection)  # of each provider in the table
    return OpenBatches(connection, getattr(import_module(module), name)(connection))


def _kind(provider: Provider) -> str:
    return str(provider.fingerprint().get("provider", ""))
