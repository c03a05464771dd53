"""Deployments on Azure OpenAI: chat completions with Azure's own addresses and keys."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from merilo.errors import UsageError
from merilo.providers.endpoint import Service
from merilo.providers.openai import OpenAIProvider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.providers.secrets import KeySource

_EXAMPLE = "https://NAME.openai.azure.com"
_DEPLOYMENT = re.compile(r"/openai/deployments(?:/[^/]+)?$")
_DATED = re.compile(r"\d{4}-\d\d-\d\d(?:-preview)?")
_UNDATED = frozenset({"", "v1", "preview", "latest"})


def _default_url() -> str:
    url = os.environ.get("AZURE_OPENAI_ENDPOINT")
    if not url:
        raise UsageError(f"Azure OpenAI needs an address such as {_EXAMPLE}: set AZURE_OPENAI_ENDPOINT or --base-url.")
    return url


@dataclass(frozen=True)
class AzureProvider(OpenAIProvider):
    """A deployment of a model on Azure OpenAI.

    `model` is the deployment's name. `base_url` is the resource's endpoint, AZURE_OPENAI_ENDPOINT at construction.
    `api_version` is AZURE_OPENAI_API_VERSION. With a date such as 2024-10-21 the deployment's own address is used;
    without one (or with `preview`) the newer `/openai/v1`. A key, from the environment variable `api_key_env` or the
    callable `api_key`, is sent as `api-key`. `token` is a callable that returns a token of Microsoft Entra ID instead,
    sent as a bearer token. Otherwise as `OpenAIProvider`. Raises UsageError for an invalid address or version.
    """

    service = Service(
        "azure",
        model="azure:my-deployment",
        url=_EXAMPLE,
        endings=("/chat/completions", "/embeddings", "/v1", "/openai"),
        hosts=(".azure.com", ".azure.us", ".azure.cn"),
    )

    base_url: str = field(default_factory=_default_url, repr=False)
    api_key_env: str = "AZURE_OPENAI_API_KEY"
    api_version: str = field(default_factory=lambda: os.environ.get("AZURE_OPENAI_API_VERSION") or "")
    token: KeySource | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "base_url", _DEPLOYMENT.sub("", self.base_url))
        if self.api_version not in _UNDATED and not _DATED.fullmatch(self.api_version):
            raise UsageError(
                "AZURE_OPENAI_API_VERSION must be a date such as 2024-10-21, or empty for the newer /openai/v1, "
                f"got {self.api_version!r}."
            )

    def fingerprint(self) -> Mapping[str, object]:
        """Return the fingerprint of `Endpoint` with the version."""
        return {**super().fingerprint(), "api_version": self.api_version}

    def route(self, path: str) -> str:
        """Return the path of a kind of request, relative to the base URL."""
        if self.api_version not in _UNDATED:
            deployment = quote(self.model, safe="")
            return f"/openai/deployments/{deployment}{path}?api-version={self.api_version}"
        version = f"?api-version={self.api_version}" if self.api_version in {"preview", "latest"} else ""
        return f"/openai/v1{path}{version}"

    @property
    def newer(self) -> bool:
        """True: every deployment takes `max_completion_tokens`."""
        return True

    @property
    def key_source(self) -> KeySource | None:
        """See `Endpoint`."""
        return self.token or self.api_key

    @property
    def key_header(self) -> tuple[str, str]:
        """See `Endpoint`."""
        return ("Authorization", "Bearer ") if self.token else ("api-key", "")

    @property
    def check_place(self) -> str:
        """See `Endpoint`."""
        version = f"and the API version {self.api_version}" if self.api_version else "and whether it has /openai/v1"
        return f"Check the endpoint, the name of the deployment {self.model!r} {version}."


PROVIDER: Final = AzureProvider
