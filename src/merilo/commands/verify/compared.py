"""Compares the JSON files of a run with the recomputed ones: every field, except a short list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.judging.json_types import as_list, as_object, compact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

JSON = dict[str, Any]  # Any: JSON

NOT_RECOMPUTED: Final[Mapping[str, frozenset[str]]] = {
    "manifest.json": frozenset({"merilo"}),
    "usage.json": frozenset({"seconds", "adaptations", "stopped", "raise_to", "replayed", "seal"}),
}
"""Fields that may differ: the version that recomputes, times, and what a server or a limit did."""


def differing(stored: object, now: object, path: str = "") -> Iterator[str]:
    """Yield the path of every value that differs."""
    mine, theirs = as_object(stored), as_object(now)
    if mine is not None and theirs is not None:
        for name in dict.fromkeys([*mine, *theirs]):
            here = f"{path}.{name}" if path else name
            if name in mine and name in theirs:
                yield from differing(mine[name], theirs[name], here)
            else:
                yield here
        return
    left, right = as_list(stored), as_list(now)
    if left is not None and right is not None and len(left) == len(right):
        for place, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from differing(one, other, f"{path}[{place}]")
    elif compact(stored) != compact(now):
        yield path
