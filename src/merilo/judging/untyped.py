"""Writes JSON, and narrows values from it and from Python, whose insides nobody has looked at yet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

Json = dict[str, object]

compact: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""A value as JSON in the fewest characters, its fields in their order: as it stands in our files."""


def loaded(text: str) -> object:
    """The JSON value of a text. Raises ValueError, also where it is nested too deeply."""
    try:
        value: object = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def plain(value: object) -> object:
    """The value as it is when it was written as JSON and read again: tuples are lists, keys texts."""
    return loaded(json.dumps(value))


def as_object(value: object) -> Json | None:
    """The value when it is a dict with text keys, as those from JSON are; else None."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[object, object]", value)  # isinstance cannot tell what is inside
    return cast("Json", fields) if all(isinstance(key, str) for key in fields) else None


def as_mapping(value: object) -> Mapping[object, object] | None:
    """The value when it is a mapping; else None."""
    return cast("Mapping[object, object]", value) if isinstance(value, Mapping) else None


def as_list(value: object) -> list[object] | None:
    """The value when it is a list; else None."""
    return cast("list[object]", value) if isinstance(value, list) else None
