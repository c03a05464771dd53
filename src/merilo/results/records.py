"""Plain records: the fields of a result as JSON, values grouped by a key, and the first of many texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

K = TypeVar("K")
V = TypeVar("V")


def picked(value: object, names: str) -> Any:  # Any: JSON
    """Return these attributes, whose names are separated by blanks, as JSON-able fields; None for None.

    `name=a.b` is the attribute, or the value under the key, `b` of the attribute `a` under another name; None if `a` is
    None.
    """
    if value is None:
        return None
    paths = {name: path or name for name, _, path in (each.partition("=") for each in names.split())}
    return {name: _plain(_at(value, path)) for name, path in paths.items()}


def _at(value: object, path: str) -> object:
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value).get(name)
        else:
            value = None if value is None else getattr(value, name)
    return value


def _plain(found: object) -> object:
    if isinstance(found, Enum):
        return found.value
    if isinstance(found, Path):
        return str(found)
    if isinstance(found, Mapping):
        found = dict(cast("Mapping[str, object]", found))
    return [*map(_plain, cast("tuple[object, ...]", found))] if isinstance(found, tuple) else found


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
