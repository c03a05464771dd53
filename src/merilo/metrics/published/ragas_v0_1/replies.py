"""The readers of ragas 0.1: JSON, in code fences or truncated, into fields that are coerced if possible.

It reads through a lenient JSON parser and checks by pydantic 1, so a verdict may be `1`, `"1"`, `true` or `1.7`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.judging.json_types import as_object
from merilo.metrics.published.replies import ReplyFault, UnmatchedBrackets, fields_of, given, items_of, partial_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.metrics.published.replies import Fields

_FENCE: Final = "```"
_ROOT: Final = "__root__"
_MAX_TRIES: Final = 100
"""Maximum number of characters to remove from the end of a damaged reply; common damage takes fewer than ten."""


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
    fence = whole.find(_FENCE)
    inside = whole[fence + len(_FENCE) :].removeprefix("json") if fence >= 0 else ""
    for part in (whole, inside):
        try:
            return partial_json(part, quote_is_dropped=True, tries=_MAX_TRIES)
        except UnmatchedBrackets:
            return None
        except ReplyFault:
            continue
    raise ReplyFault("The reply holds no JSON where it begins or in a code fence.")


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
