"""Short representations of results, which may hold thousands of values, for notebooks, debuggers and messages."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

LIMIT: Final = 300
"""Maximum length of a representation."""
_VALUE_LIMIT: Final = 60


def short_repr(value: object, /, **facts: object) -> str:
    """Return `Class(name=fact, ...)` with at most 300 characters.

    Facts that are None are left out. A long text is truncated, and a collection is shown as its number of items.
    """
    shown = ", ".join(f"{name}={_shown(fact)}" for name, fact in facts.items() if fact is not None)
    text = f"{type(value).__name__}({shown})"
    return text if len(text) <= LIMIT else f"{text[: LIMIT - 4]}...)"


def _shown(fact: object) -> str:
    if isinstance(fact, str | Path):
        text = str(fact)
        # cut before repr, which takes long for a text of megabytes
        shown = repr(text[:_VALUE_LIMIT])
        return shown if len(text) <= _VALUE_LIMIT else f"{shown[: _VALUE_LIMIT - 4]}...{shown[-1]}"
    if isinstance(fact, Collection):
        return f"<{len(fact):,} {'item' if len(fact) == 1 else 'items'}>"  # pyright: ignore[reportUnknownArgumentType]  # of anything
    return repr(fact)
