"""The readers of ragas 0.1: JSON, in code fences or truncated, into fields that are coerced if possible.

It reads through a lenient JSON parser and checks by pydantic 1, so a verdict may be `1`, `"1"`, `true` or `1.7`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.judging.json_types import as_object
from merilo.metrics.published.replies import ReplyFault, fields_of, given, items_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.metrics.published.replies import Fields

_EDGES: Final = " \n\r\t`"
_FENCE: Final = "```"
_ROOT: Final = "__root__"
_MAX_TRIES: Final = 100
"""Maximum number of characters to remove from the end of a damaged reply; common damage takes fewer than ten."""
_DECODER: Final = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class JudgedStatement:
    """A statement as the judge repeats it, with its verdict: 0 is no, any other number yes."""

    text: str
    value: int


@dataclass(frozen=True, slots=True)
class Generated:
    """A question that the judge made for an answer."""

    question: str
    noncommittal: bool


@dataclass(frozen=True, slots=True)
class Sorted:
    """The numbers of statements in both texts, in the response alone and in the reference alone."""

    both: int
    response_only: int
    reference_only: int


def json_value(text: str) -> object:
    """Return the JSON value of a reply; None if its brackets do not match. Raises ReplyFault if there is none.

    A reply is JSON from its first character, or from a code fence on. What was cut off is closed, and text
    behind the value is left out; but brackets in such a text spoil it.
    """
    whole = text.strip()
    try:
        return _closed(whole.strip(_EDGES))
    except ValueError:
        fence = whole.find(_FENCE)
    inside = whole[fence + len(_FENCE) :].removeprefix("json") if fence >= 0 else ""
    try:
        return _closed(inside.strip(_EDGES))
    except ValueError:
        raise ReplyFault("The reply holds no JSON where it begins or in a code fence.") from None


def statements(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the statements of each sentence. Raises ReplyFault."""
    found: list[tuple[str, ...]] = []
    for item in _items(text):
        fields = fields_of(item)
        _integer(fields, "sentence_index")
        found.append(_texts(fields, "simpler_statements"))
    return tuple(found)


def judged(key: str) -> Callable[[str], tuple[JudgedStatement, ...]]:
    """Return a reader of a list of statements with verdicts under this key; it raises ReplyFault."""

    def read(text: str) -> tuple[JudgedStatement, ...]:
        found: list[JudgedStatement] = []
        for item in _items(text):
            fields = fields_of(item)
            _text(fields, "reason")
            found.append(JudgedStatement(_text(fields, "statement"), _integer(fields, key)))
        return tuple(found)

    return read


def verdict(text: str) -> int:
    """Return the one verdict of a reply, a number that a float can hold. Raises ReplyFault."""
    fields = fields_of(json_value(text))
    _text(fields, "reason")
    number = _integer(fields, "verdict")
    try:
        float(number)
    except OverflowError:
        raise ReplyFault("The reply gives a verdict that is too large for a number.") from None
    return number


def generated(text: str) -> Generated:
    """Return the generated question. Raises ReplyFault."""
    fields = fields_of(json_value(text))
    return Generated(_text(fields, "question"), noncommittal=_integer(fields, "noncommittal") != 0)


def sorted_statements(text: str) -> Sorted:
    """Return the numbers of statements by class. Raises ReplyFault."""
    fields = fields_of(json_value(text))
    counts: list[int] = []
    for name in ("TP", "FP", "FN"):
        items = items_of(given(fields, name))
        if any(as_object(item) is None for item in items):
            raise ReplyFault(f'The reply gives something else than objects in "{name}".')
        counts.append(len(items))
    return Sorted(*counts)


def texts(key: str) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of the list of texts under this key; it raises ReplyFault."""
    return lambda text: _texts(fields_of(json_value(text)), key)


def _items(text: str) -> list[object]:
    value = json_value(text)
    fields = as_object(value)
    return items_of(fields[_ROOT] if fields is not None and fields.keys() == {_ROOT} else value)


def _texts(fields: Fields, name: str) -> tuple[str, ...]:
    return tuple(_as_text(item, name) for item in items_of(given(fields, name)))


def _text(fields: Fields, name: str) -> str:
    return _as_text(given(fields, name), name)


def _as_text(value: object, name: str) -> str:
    """Return a text, or a number as Python writes it. Raises ReplyFault."""
    if isinstance(value, str | int | float):
        return str(value)
    raise ReplyFault(f'The reply gives no text in "{name}".')


def _integer(fields: Fields, name: str) -> int:
    """Return the field as Python's int reads it, without a fraction. Raises ReplyFault."""
    value = given(fields, name)
    if isinstance(value, str | int | float):
        try:
            return int(value)
        except (ValueError, OverflowError):
            pass
    raise ReplyFault(f'The reply gives no whole number in "{name}".')


def _closed(text: str) -> object:
    """Return the value of the longest beginning that is JSON once the brackets open at the end are closed.

    None if a bracket closes what is not open. Raises ValueError where no beginning is JSON.
    """
    try:
        return _decoded(text)
    except json.JSONDecodeError:
        pass
    ended = _ended(text)
    if ended is None:
        return None
    body, closing = ended
    for _ in range(_MAX_TRIES):
        if not body:
            break
        try:
            return _decoded(body + closing)
        except json.JSONDecodeError as error:
            # no beginning that keeps the faulty character can be JSON, and white space at its end changes nothing
            body = body[: min(len(body) - 1, error.pos)].rstrip()
    raise ValueError("no beginning is JSON")


def _decoded(text: str) -> object:
    try:
        value: object = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _ended(text: str) -> tuple[str, str] | None:
    """Return the text with its last string ended, and the brackets that close it; None if one closes nothing."""
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
            return None
    return (f'{text}"' if inside else text), "".join(reversed(expected))
