"""The readers of spring-ai-ragas: JSON at the beginning of a reply, mapped to fields as Jackson does.

A field that is null is not an error. A whole reply of null is a success without a result there: most metrics then break
for the sample (`NULL`), and some read it as an object without fields (`or_nothing`).
"""

from __future__ import annotations

import json
import math
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from merilo.metrics.published.replies import Fields, ReplyFault, items_of, without_halves
from merilo.metrics.published.replies import fields_of as fields_of_any

if TYPE_CHECKING:
    from collections.abc import Sequence

_THINKING: Final = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,10}")
_SMALLEST, _LARGEST = -(2**31), 2**31 - 1
"""Of an Integer in Java."""
_NOT_FINITE: Final = ("NaN", "INF", "Infinity", "-INF", "-Infinity")
_LARGEST_DOUBLE: Final = sys.float_info.max
NULL: Final = "The reply has null where the published code breaks, which fails the whole sample."
_FENCE: Final = re.compile(r"```(?:json)?(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)


def json_of(text: str) -> object:
    """Return the JSON value with which a reply begins, without thinking and code fence. Raises ReplyFault."""
    cleaned = _without_thinking(without_halves(text)).strip()
    fenced = _FENCE.match(cleaned)
    try:
        found: object = _DECODER.raw_decode(fenced[1].strip() if fenced else cleaned)[0]
    except (ValueError, RecursionError):
        raise ReplyFault("The reply does not begin with JSON.") from None
    return found


def fields_of(value: object) -> Fields:
    """Return a value as a JSON object. Raises ReplyFault, with `NULL` for null."""
    if value is None:
        raise ReplyFault(NULL)
    return fields_of_any(value)


def or_nothing(value: object) -> object:
    """Return a value, or an object without fields in place of null."""
    return {} if value is None else value


def whole_or_none(fields: Fields, name: str) -> int | None:
    """Return the whole number in a field: a number, its fraction cut off, or digits as text. None if null or missing.

    Raises ReplyFault, also for a number of more than 32 bits.
    """
    value = _given(fields, name)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and _SMALLEST <= value <= _LARGEST:
        return int(value)
    if value is None:
        return None
    raise ReplyFault(f'The reply gives {json.dumps(value)} as "{name}" where a whole number was asked for.')


def _given(fields: Fields, name: str) -> object:
    """Return the value of a field, stripped if it is text; None for a text that is blank or "null"."""
    value = fields.get(name)
    if not isinstance(value, str):
        return value
    return None if value.strip() in {"", "null"} else value.strip()


def flag_or_none(fields: Fields, name: str) -> bool | None:
    """Return the truth value in a field, also as 0, 1 or text; None if it is null or missing. Raises ReplyFault."""
    value = _given(fields, name)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value != 0
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    raise ReplyFault(f'The reply gives {json.dumps(value)} as "{name}" where true or false was asked for.')


def number_or_none(fields: Fields, name: str) -> float | None:
    """Return the number in a field, also as text; None if it is null, missing or not finite. Raises ReplyFault."""
    value = _given(fields, name)
    if value is None or value in _NOT_FINITE:
        return None
    number: float | None = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value) if abs(value) <= _LARGEST_DOUBLE else math.inf
    elif isinstance(value, str) and any(map(str.isdigit, value)):  # float() also reads "inf" and "nan"
        with suppress(ValueError):
            number = float(value)
    if number is None:
        raise ReplyFault(f'The reply gives {json.dumps(value)} as "{name}" where a number was asked for.')
    return number if math.isfinite(number) else None


def text_or_blank(fields: Fields, name: str) -> str:
    """Return the text in a field, or its JSON if it is something else; blank if it is null or missing."""
    value = fields.get(name)
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def objects_in(value: object, name: str) -> tuple[Fields, ...]:
    """Return the objects of the list in a field of a reply; none if it is null or missing. Raises ReplyFault."""
    listed = fields_of(value).get(name)
    return () if listed is None else tuple(fields_of(item) for item in items_of(listed))


def texts_of(value: object, name: str) -> tuple[str, ...]:
    """Return the texts of the list in a field of a reply; none if it is null or missing. Raises ReplyFault."""
    listed = fields_of(value).get(name)
    if listed is None:
        return ()
    return tuple(text_or_blank({name: item}, name) for item in items_of(listed))


def numbered(texts: Sequence[str]) -> str:
    """Return the texts one per line, numbered from 1."""
    return "\n".join(f"{place}. {text}" for place, text in enumerate(texts, start=1))


def _without_thinking(text: str) -> str:
    """Remove everything from an opening tag to the next closing one, in one pass."""
    kept: list[str] = []
    end, opened = 0, -1
    for tag in _THINKING.finditer(text):
        if not tag[1] and opened < 0:
            opened = tag.start()
        elif tag[1] and opened >= 0:
            kept.append(text[end:opened])
            end, opened = tag.end(), -1
    return "".join((*kept, text[end:]))


def _no_constant(name: str) -> object:
    raise ReplyFault(f"The reply holds {name}, which is not a JSON value.")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)
