"""JSON output, and type narrowing of JSON and Python values of unknown structure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

Json = dict[str, object]

compact: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Function that returns a value as JSON without white space, its fields in their order: the form used in merilo's
files."""


_TEXT: Final = {str}


def loaded(text: str) -> object:
    """Return the JSON value of a text. Raises ValueError, also if it is nested too deeply."""
    try:
        value: object = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def plain(value: object) -> object:
    """Return the value as it is after a round trip through JSON: tuples become lists, keys become texts."""
    return loaded(json.dumps(value))


def as_object(value: object) -> Json | None:
    """Return the value if it is a dict with text keys, like a JSON object; otherwise None."""
    if not isinstance(value, dict):
        return None
    return cast("Json", value) if {*map(type, cast("Json", value))} <= _TEXT else None


def as_mapping(value: object) -> Mapping[object, object] | None:
    """Return the value if it is a mapping; otherwise None."""
    return cast("Mapping[object, object]", value) if isinstance(value, Mapping) else None


def as_list(value: object) -> list[object] | None:
    """Return the value if it is a list; otherwise None."""
    return cast("list[object]", value) if isinstance(value, list) else None
