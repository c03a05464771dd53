"""Reading the free replies that published systems parse themselves: JSON somewhere in a text, and its fields.

Each system has its own rules, in its own module. This module holds what several systems share.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, Self

from merilo.judging.json_types import as_list, as_object

Fields = Mapping[str, object]
"""The fields of a JSON object."""

_FENCE: Final = re.compile(r"```(?:json)?(.*?)```", re.DOTALL | re.IGNORECASE)
_WHOLE_NUMBER: Final = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")
_LARGEST: Final = 10**15
"""Of a whole number that can be counted with; what is larger is not a rating, vote or index."""


_HALVES: Final = re.compile(
    r"(?P<kept>\\(?:[^u]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))|\\u[dD][89a-fA-F][0-9a-fA-F]{2}",
    re.DOTALL,
)
"""An escape that is whole or of another kind, which is `kept`; or half of a pair."""


class ReplyFault(ValueError):
    """A reply that does not have the form asked for; the message is a whole sentence."""


class Listed(str):
    """A list as the text that a prompt shows. `items` are its elements, for the prompts of other packages."""

    __slots__ = ("items",)
    items: tuple[object, ...]

    @classmethod
    def of(cls, text: str, items: Sequence[object]) -> Self:
        """Return a text with its items."""
        made = cls(text)
        made.items = tuple(items)
        return made


def json_array(texts: Sequence[str]) -> str:
    """Return texts as a JSON array, so that their limits stay visible."""
    return json.dumps(list(texts), ensure_ascii=False)


def without_halves(text: str) -> str:
    """Replace each JSON escape that is half of a character, which no request or file can hold, by U+FFFD."""
    if "\\u" not in text:
        return text
    return _HALVES.sub(lambda found: found["kept"] or "\N{REPLACEMENT CHARACTER}", text)


def json_in(text: str) -> object:
    """Return the first JSON object or array in a text, inside code fences or not. Raises ReplyFault."""
    fenced = _FENCE.search(text)
    for part in (fenced[1].strip(), text) if fenced else (text,):
        for start in (at for at, sign in enumerate(part) if sign in "{["):
            try:
                found: object = _DECODER.raw_decode(part, start)[0]
            except (ValueError, RecursionError):
                break  # what the first bracket opens decides; a later one would be a part of it
            return found
    raise ReplyFault("The reply holds no JSON object or array.")


class UnmatchedBrackets(ReplyFault):
    """A bracket closes what is not open."""


def partial_json(text: str, *, quote_is_dropped: bool, tries: int | None = None, tail: int | None = None) -> object:
    """Return the JSON value of a text, as langchain reads it: what is open is closed, and what spoils it is dropped.

    The value is that of the longest beginning that is JSON once its open brackets are closed. `quote_is_dropped`: the
    quote that ends an open string goes with the first characters dropped; otherwise each beginning gets it. `tries`:
    the maximum number of beginnings; `tail`: the maximum number of characters dropped. Raises ReplyFault, and
    UnmatchedBrackets.
    """
    text = text.strip(" \n\r\t`")
    try:
        return _loaded(text)
    except ValueError:
        quote, brackets = _missing_end(text)
    text, closing = (text + quote, brackets) if quote_is_dropped else (text, quote + brackets)
    end, least = len(text), 0 if tail is None else len(text) - tail
    while end > max(0, least) and tries != 0:
        try:
            return _loaded(text[:end] + closing)
        except json.JSONDecodeError as error:
            # no beginning that keeps the faulty character can be JSON, and white space at its end changes nothing
            end = len(text[: min(end - 1, error.pos)].rstrip())
        except ValueError:
            break
        tries = None if tries is None else tries - 1
    raise ReplyFault("The reply holds no JSON that can be read.")


def _loaded(text: str) -> object:
    try:
        value: object = json.loads(text, strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _missing_end(text: str) -> tuple[str, str]:
    """Return the quote that ends an open string, and the brackets that close a text. Raises UnmatchedBrackets."""
    expected: list[str] = []
    inside = escaped = False
    for sign in text:
        if inside:
            inside = escaped or sign != '"'
            escaped = sign == "\\" and not escaped
        elif sign == '"':
            inside, escaped = True, False
        elif sign in "{[":
            expected.append("}" if sign == "{" else "]")
        elif sign in "}]" and (not expected or expected.pop() != sign):
            raise UnmatchedBrackets("The reply holds JSON whose brackets do not match.")
    return '"' * inside, "".join(reversed(expected))


def object_in(text: str) -> Fields:
    """Return the JSON object that a text holds. Raises ReplyFault."""
    return fields_of(json_in(text))


def fields_of(value: object) -> Fields:
    """Return a value as a JSON object. Raises ReplyFault."""
    fields = as_object(value)
    if fields is None:
        raise ReplyFault(f"The reply holds {_shown(value)} where an object was asked for.")
    return fields


def items_of(value: object) -> list[object]:
    """Return a value as a JSON array. Raises ReplyFault."""
    items = as_list(value)
    if items is None:
        raise ReplyFault(f"The reply holds {_shown(value)} where a list was asked for.")
    return items


def given(fields: Fields, name: str) -> object:
    """Return the field with this name. Raises ReplyFault if there is none."""
    if name not in fields:
        raise ReplyFault(f'The reply has no "{name}".')
    return fields[name]


def text_in(fields: Fields, name: str) -> str:
    """Return the text in this field. Raises ReplyFault."""
    value = given(fields, name)
    if not isinstance(value, str):
        raise ReplyFault(f'The reply gives {_shown(value)} as "{name}" where a text was asked for.')
    return value


def texts_in(fields: Fields, name: str) -> tuple[str, ...]:
    """Return the list of texts in this field. Raises ReplyFault."""
    items = items_of(given(fields, name))
    if not all(isinstance(item, str) for item in items):
        raise ReplyFault(f'The reply gives something else than texts in "{name}".')
    return tuple(str(item) for item in items)


def integer_in(fields: Fields, name: str) -> int:
    """Return the whole number in this field: a number without a fraction, true or false, or digits (0 to 9) as text.

    What pydantic takes for an `int` field when it is not strict, up to 10^15 either way. Raises ReplyFault.
    """
    value = given(fields, name)
    whole = (
        isinstance(value, (bool, int))
        or (isinstance(value, float) and value.is_integer())
        or (isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value) is not None)
    )
    if whole and isinstance(value, (int, float, str)):
        number = int(value)
        if abs(number) <= _LARGEST:
            return number
        raise ReplyFault(f'The reply gives a number as "{name}" that is too large to count with.')
    raise ReplyFault(f'The reply gives {_shown(value)} as "{name}" where a whole number was asked for.')


def _shown(value: object) -> str:
    try:
        shown = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "something nested too deeply"
    return shown if len(shown) <= 60 else f"{shown[:60]}..."


def _no_constant(name: str) -> object:
    raise ReplyFault(f"The reply holds {name}, which is not a JSON value.")


_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=_no_constant)
