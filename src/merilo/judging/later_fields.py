"""Fields that were added to a question or verdict type after its first release.

Stored keys and records must not move if a type gets a field. Such a field has an empty default and the metadata
`LATER`. Keys ignore it while it is empty, and records omit it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

LATER: Final = {"later": True}
"""Metadata of a field that was added to a released type, with an empty value as its default."""


def later_fields(of: type[Any]) -> frozenset[str]:  # Any: a question or verdict type
    """Return the names of the fields that keys and records omit while they are empty."""
    found = _NAMES.get(of)
    if found is None:
        found = _NAMES[of] = frozenset(each.name for each in fields(of) if each.metadata.get("later"))
    return found


_NAMES: dict[type, frozenset[str]] = {}
