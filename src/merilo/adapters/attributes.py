"""Attributes of spans as a tree: dotted names, OTLP's typed values, and JSON in strings."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from merilo.data import check
from merilo.data.content import held

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Tree: TypeAlias = "dict[str, object]"

_MAX_DEPTH: Final = 32
"""Levels of names and values below which nothing is unfolded."""
_OWN: Final = ""
"""The key of a node's own value, if a name is also the beginning of longer ones."""
_OTLP_VALUES: Final = ("stringValue", "intValue", "doubleValue", "boolValue")


def tree_of(values: Mapping[str, object]) -> Tree:
    """Return values with dotted names as a tree: `{"a.0.b": 1}` becomes `{"a": {"0": {"b": 1}}}`."""
    return _tree(values, 0)


def find(tree: object, name: str) -> object:
    """Return the value or subtree with a dotted name; None if there is none."""
    node = tree
    for part in name.split(".") if name else ():
        if check.is_record(node := held(node)):
            node = node.get(part)
        else:
            return None
    if check.is_record(node) and _OWN in node:
        return node[_OWN] if len(node) == 1 or not check.is_mapping(node[_OWN]) else node
    return node


def first(tree: object, names: Iterable[str]) -> object:
    """Return the first value that is not missing under one of the names; None if there is none."""
    for name in names:
        value = find(tree, name)
        if value is not None and value not in ("", [], {}):
            return value
    return None


def items_of(node: object) -> list[object]:
    """Return the items of a list, or of a tree whose names are positions; an empty list for anything else."""
    if check.is_list(node):
        return list(node)
    if check.is_record(node) and node and all(name.isdecimal() and len(name) < 10 for name in node):
        return [node[name] for name in sorted(node, key=int)]
    return []


def finite(value: object) -> float | None:
    """Return a number or truth value as a float; None for anything else, and for one that is not finite."""
    if not isinstance(value, bool | int | float):
        return None
    try:
        found = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return None
    return found if isfinite(found) else None


def decoded(value: object) -> object:
    """Return the JSON value in a string; the value itself if it is anything else."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def otlp_attributes(found: object) -> dict[str, object]:
    """Return the attributes of an OTLP span or event, a list of keys and typed values; a plain object as it is."""
    if check.is_record(found):
        return dict(found)
    pairs: dict[str, object] = {}
    for each in found if check.is_list(found) else ():
        if check.is_record(each) and isinstance(key := each.get("key"), str):
            pairs[key] = _otlp_value(each.get("value"), 0)
    return pairs


def _otlp_value(value: object, depth: int) -> object:
    if not check.is_record(value) or depth > _MAX_DEPTH:
        return value
    for name in _OTLP_VALUES:
        if name in value:
            return value[name]
    if check.is_record(array := value.get("arrayValue")):
        listed = array.get("values")
        return [_otlp_value(each, depth + 1) for each in listed] if check.is_list(listed) else []
    if check.is_record(pairs := value.get("kvlistValue")):
        listed = pairs.get("values")
        return {
            str(each.get("key")): _otlp_value(each.get("value"), depth + 1)
            for each in (listed if check.is_list(listed) else ())
            if check.is_record(each)
        }
    return None


def _tree(values: Mapping[str, object], depth: int) -> Tree:
    tree: Tree = {}
    for name, value in values.items():
        _put(tree, name, _unfolded(value, depth + 1))
    return tree


def _unfolded(value: object, depth: int) -> object:
    if depth > _MAX_DEPTH:
        return value
    if check.is_record(value):
        return _tree(value, depth)
    if check.is_list(value):
        return [_unfolded(each, depth + 1) for each in value]
    return value


def _put(tree: Tree, name: str, value: object) -> None:
    parts = name.split(".")
    if len(parts) > _MAX_DEPTH or not all(parts):
        parts = [name]
    node = tree
    for part in parts[:-1]:
        there = node.get(part)
        below = subtree(there)
        if below is None:
            below = {} if there is None else {_OWN: there}
            node[part] = below
        node = below
    last = parts[-1]
    there, added = subtree(node.get(last)), subtree(value)
    if there is not None and added is not None:
        merge(there, added)
    elif there is not None:
        there.setdefault(_OWN, value)
    else:
        node[last] = value


def subtree(value: object) -> Tree | None:
    """Return a value that is a tree; None for anything else."""
    return cast("Tree", value) if isinstance(value, dict) else None  # all names in JSON are texts


def merge(into: Tree, other: Tree) -> None:
    """Add the values of another tree where there is none."""
    for name, value in other.items():
        there, added = subtree(into.setdefault(name, value)), subtree(value)
        if there is not None and added is not None and there is not added:
            merge(there, added)
