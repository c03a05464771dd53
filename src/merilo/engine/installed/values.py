"""Conversion of the values of merilo's requests for the packages, and import of objects by name."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

from merilo.metrics.published.replies import Listed

if TYPE_CHECKING:
    from collections.abc import Mapping


def value_of(values: Mapping[str, Any], value: str) -> Any:  # Any: what a package takes
    """Return a value as `Prompt` describes it."""
    if value.startswith("="):
        return value[1:]
    if not value.startswith("["):
        return values[value]
    found = values[value[1:-1]]
    return list(found.items) if isinstance(found, Listed) else json.loads(found)


def imported(source: str) -> Any:  # Any: an object of a package that merilo does not depend on
    """Return the object that `module:name` names."""
    module, _, name = source.partition(":")
    return getattr(import_module(module), name)
