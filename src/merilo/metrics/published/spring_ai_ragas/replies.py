"""The readers of spring-ai-ragas: JSON at the beginning of a reply, mapped to fields; null is not an error."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Final

from merilo.metrics.published.replies import Fields, ReplyFault, fields_of, integer_in, items_of, without_halves

if TYPE_CHECKING:
    from collections.abc import Sequence

_THINKING: Final = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
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


def whole_or_none(fields: Fields, name: str) -> int | None:
    """Return the whole number in a field; None if it is null or missing. Raises ReplyFault."""
    value = fields.get(name)
    if isinstance(value, bool):
        raise ReplyFault(f'The reply gives {json.dumps(value)} as "{name}" where a whole number was asked for.')
    return None if value is None else integer_in(fields, name)


def flag_or_none(fields: Fields, name: str) -> bool | None:
    """Return the truth value in a field, also as 0, 1 or text; None if it is null or missing. Raises ReplyFault."""
    value = fields.get(name)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value != 0
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    raise ReplyFault(f'The reply gives {json.dumps(value)} as "{name}" where true or false was asked for.')


def number_or_none(fields: Fields, name: str) -> float | None:
    """Return the number in a field, also as text; None if it is null or missing. Raises ReplyFault."""
    value = fields.get(name)
    if value is None:
        return None
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float, str)) else float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ReplyFault(f'The reply gives {json.dumps(value)} as "{name}" where a number was asked for.')
    return number


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
