"""Plain records: the fields of a result as JSON, values grouped by a key, and the first of many texts."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

K = TypeVar("K")
V = TypeVar("V")


def picked(value: object, names: str) -> dict[str, Any]:  # Any: JSON
    """Return these attributes, whose names are divided by blanks, as JSON-able fields."""
    return {name: _plain(getattr(value, name)) for name in names.split()}


def _plain(found: object) -> object:
    if isinstance(found, Enum):
        return found.value
    if isinstance(found, Path):
        return str(found)
    if isinstance(found, Mapping):
        found = dict(cast("Mapping[str, object]", found))
    return list(cast("tuple[object, ...]", found)) if isinstance(found, tuple) else found


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, both in the order of first appearance."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def first_of(texts: Sequence[str], most: int, amount: int | None = None) -> str:
    """Return `a, b and 7 more`. `amount`: of all texts, if only the first ones are given."""
    shown = texts[:most]
    more = (len(texts) if amount is None else amount) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")
