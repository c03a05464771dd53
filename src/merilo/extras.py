"""Optional packages: imported when they are first needed, with an error that names what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from merilo.errors import UsageError


def optional_module(module: str, *, wanted_by: str, install: str) -> Any:  # Any: the package may be untyped or absent
    """Return an optional module. Raises UsageError if it is not installed.

    `wanted_by`: what needs it, the subject of the message. `install`: what to install, such as `merilo[parquet]`.
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        shown = f"'{install}'" if "[" in install else install
        raise UsageError(f"{wanted_by} needs {package}, which is not installed. Run: pip install {shown}") from None
