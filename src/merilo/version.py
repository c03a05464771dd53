"""The installed version of merilo."""

from functools import cache
from importlib.metadata import version as _installed


@cache
def version() -> str:
    """Return the version of the installed distribution, such as "0.1.0"."""
    return _installed("merilo")
