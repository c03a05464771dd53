"""JSON output, and type narrowing of JSON and Python values of unknown structure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

Json = dict[str, object]

compact: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Function that returns a value as JSON without white space, its fields in their order: the form used in merilo's
files."""


_TEXT: Final = {str}
_OBJECT: Final = {dict}  # exact types, which nearly all values have, are tested without a call
_LIST: Final = {list}


def scanner(decoder: Any) -> Callable[[str, int], tuple[Any, int]]:  # Any: the type stubs lack this attribute
    """Return the function that reads a value at a position; a fifth of the calls of `decode`."""
    scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once
    return scan


_scan: Final = scanner(json.JSONDecoder())


def loaded(text: str) -> object:
    """Return the JSON value of a text. Raises ValueError, also if it is nested too deeply."""
    try:
        value: object = None
        try:
            value, end = _scan(text, 0)
        except StopIteration:  # white space before the value
            end = -1
        return value if end == len(text) else json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def plain(value: object) -> object:
    """Return the value as it is after a round trip through JSON: tuples become lists, keys become texts."""
    return loaded(json.dumps(value))


def as_object(value: Any) -> Json | None:
    """Return the value if it is a dict with text keys, like a JSON object; otherwise None."""
    return value if (type(value) in _OBJECT or _is_a(value, dict)) and {*map(type, value)} <= _TEXT else None


def as_mapping(value: Any) -> Mapping[object, object] | None:
    """Return the value if it is a mapping; otherwise None."""
    return value if _is_a(value, Mapping) else None


def as_list(value: Any) -> list[object] | None:
    """Return the value if it is a list; otherwise None."""
    return value if type(value) in _LIST or _is_a(value, list) else None


def _is_a(value: object, kind: type) -> bool:
    return isinstance(value, kind)
