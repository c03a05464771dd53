"""Addresses of endpoints, checked where they are given."""

from __future__ import annotations

from urllib.parse import urlsplit

from merilo.errors import UsageError
from merilo.providers.keys import checked_variable


def checked_url(url: str, endings: tuple[str, ...], *, example: str = "http://localhost:8000/v1") -> str:
    """The address without a slash or one of these endings at its end. Raises UsageError for one that cannot be used.

    `endings` are taken off in their order, each once.
    """
    if "@" in url:  # what stands before it is not repeated, wherever a parser sees it
        raise UsageError("The base URL must hold no password and no @; keys belong in an environment variable.")
    try:
        parts = urlsplit(url.strip())
        _ = parts.port, (parts.hostname or "").encode("idna")
    except ValueError as error:
        raise UsageError(f"The base URL cannot be read ({error}); write it as in {example}.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"A base URL begins with http:// or https:// and names a host, as in {example}.")
    if parts.query or parts.fragment:
        raise UsageError(
            f"The base URL for {parts.hostname} must hold no query or fragment; keys belong in an environment variable."
        )
    path = parts.path.rstrip("/")
    for ending in endings:
        path = path.removesuffix(ending)
    return f"{parts.scheme}://{parts.netloc}{path}"


def check_provider(model: str, timeout_s: float, api_key_env: str, *, example: str) -> None:
    """Raises UsageError for a model without a name, a timeout of nothing, or a variable that cannot be one."""
    if not model.strip():
        raise UsageError(f"A model name is needed, as in {example!r}.")
    if timeout_s <= 0:
        raise UsageError(f"The timeout must be more than 0 seconds, got {timeout_s}.")
    checked_variable(api_key_env)
