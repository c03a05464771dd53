"""Validation of endpoint addresses and common provider settings."""

from __future__ import annotations

from urllib.parse import urlsplit

from merilo.errors import UsageError
from merilo.providers.keys import checked_variable


def checked_url(url: str, endings: tuple[str, ...], *, example: str = "http://localhost:8000/v1") -> str:
    """Return the address without a trailing slash or one of these endings. Raises UsageError for an invalid address.

    `endings` are removed in order, each once.
    """
    if "@" in url:  # the message does not quote the URL, which may contain a password
        raise UsageError("The base URL must not contain a password or @; keys belong in an environment variable.")
    try:
        parts = urlsplit(url.strip())
        _ = parts.port, (parts.hostname or "").encode("idna")
    except ValueError as error:
        raise UsageError(f"The base URL is not valid ({error}); example: {example}.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"A base URL must begin with http:// or https:// and name a host; example: {example}.")
    if parts.query or parts.fragment:
        raise UsageError(
            f"The base URL for {parts.hostname} must not have a query or fragment. Keys belong in an environment "
            "variable."
        )
    path = parts.path.rstrip("/")
    for ending in endings:
        path = path.removesuffix(ending)
    return f"{parts.scheme}://{parts.netloc}{path}"


def check_provider(model: str, timeout_s: float, api_key_env: str, *, example: str) -> None:
    """Raise UsageError for an empty model name, a timeout that is not positive, or an invalid variable name."""
    if not model.strip():
        raise UsageError(f"The model name is missing; example: {example!r}.")
    if timeout_s <= 0:
        raise UsageError(f"The timeout must be more than 0 seconds, got {timeout_s}.")
    checked_variable(api_key_env)
