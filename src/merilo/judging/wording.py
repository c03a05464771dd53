"""Short phrases for the wording of verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def listed(indices: Sequence[int], thing: str) -> str:
    """Return things by their 0-based indices, counted from 1: `context 2`, `contexts 1, 3`."""
    return f"{thing}{'s' if len(indices) > 1 else ''} {', '.join(str(index + 1) for index in indices)}"


def counting_only(contexts: Sequence[int], reason: str) -> str:
    """Return a judge's reason about some contexts of a sample; its numbers count only these, so they are named."""
    if not reason or list(contexts) == [*range(len(contexts))]:
        return reason
    return f"Counting only {listed(contexts, 'context')}: {reason}"


def number_of(things: Sequence[object], one: str, many: str) -> str:
    """Return the number of things in words: `1 part`, `1,200 parts`."""
    return f"{len(things):,} {one if len(things) == 1 else many}"
