"""Checks of the values of a sample: each returns the clean value or records a problem.

The checks take `object` because they are the first to see a value: nothing is known about it yet.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice, takewhile
from numbers import Real
from typing import Final, TypeAlias, TypeGuard, TypeVar, cast

from merilo.errors import Problem

_T = TypeVar("_T")
JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

MAX_PROBLEMS: Final = 1_000
"""Number of problems of one record after which it is not checked further."""
MAX_DEPTH: Final = 64
"""Maximum levels of nesting in metadata."""

MAX_VALUES: Final = 500_000
"""Maximum number of values in one record. A few megabytes of brackets would become gigabytes of objects."""

MAX_COLUMNS: Final = 16_384
"""Maximum number of columns of a table, or of fields of a record: that of a spreadsheet."""
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*|unknown")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN_CHARS = 60
_SHOWN_KEYS = 4
ID: Final = "an id (text or a whole number)"
_AS_WHOLE: Final = "write whole numbers without a fraction; for a column of pandas, use .astype('Int64')"


def shown(value: object) -> str:
    """Describe a value briefly for a message: "the number 3", "a list of 2"."""
    match value:
        case None:
            return "null"
        case _ if is_missing(value):
            return "NaN (a missing value)"
        case bool():
            return "true" if value else "false"
        case int() | float():
            is_long = isinstance(value, int) and not _is_short(value)
            return "a number too long to show" if is_long else f"the number {cut(str(value))}"
        case str():
            return f"the text {cut(value)!r}" if value else "an empty text"
        case _ if is_mapping(value):
            keys = [*(repr(cut(str(key))) for key in islice(value, _SHOWN_KEYS)), *["..."][: len(value) > _SHOWN_KEYS]]
            return f"an object with {', '.join(keys)}" if value else "an empty object"
        case _ if is_list(value):
            return f"a list of {len(value)}" if value else "an empty list"
        case _:
            return f"a value of type {type(value).__name__}"


def is_missing(value: object) -> bool:
    """Return True for None and for the missing values of numpy and pandas: NaN, NA, NaT."""
    if value is None:
        return True
    if isinstance(value, (str, int, list, tuple, dict)):  # nearly all values
        return False
    if isinstance(value, float):
        return math.isnan(value)
    kind = type(value)
    if kind.__name__ in {"NAType", "NaTType"} and kind.__module__.startswith("pandas."):
        return True
    # numpy's numbers are not floats; NaN is the only number that differs from itself
    return isinstance(value, Real) and bool(value != value)  # noqa: PLR0124


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """Return True if the value is a mapping; its keys may be anything."""
    return type(value) is dict or isinstance(value, Mapping)


def is_record(value: object) -> TypeGuard[Mapping[str, object]]:
    """Return True if the value is a mapping whose keys are texts."""
    return is_mapping(value) and ({*map(type, value)} <= {str} or all(isinstance(key, str) for key in value))


def is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Return True if the value is a list or a tuple."""
    return isinstance(value, (list, tuple))


def is_ordered(value: object) -> TypeGuard[Iterable[object]]:
    """Return True if the value yields items in an order and is not a text."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping, AbstractSet))


def has_too_many_values(text: str, most: int = 0) -> bool:
    """Return True for JSON of more than `MAX_VALUES` and `most` values, by its brackets and commas outside of texts."""
    most = max(most, MAX_VALUES)

    def marks(part: str) -> int:
        return part.count(",") + part.count("[") + part.count("{")

    return len(text) > most and marks(text) > most and marks(_STRING.sub("", text)) > most


def without_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the pairs of a JSON object as a dict. Raises ValueError if a key is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"duplicate key {next(name for name in names if names.count(name) > 1)!r}")
    return found


def text_fault(text: str) -> str | None:
    """Return the problem that makes the text unusable, with its position in characters from 1; None if clean."""
    if "\0" in text:
        return f"a NUL character at character {text.index(chr(0)) + 1}"
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        return f"half of a character (lone surrogate U+{code:04X}) at character {error.start + 1}"
    return None


def text(value: object, field: str, problems: list[Problem]) -> str | None:
    """Return the text unchanged, or None if it is missing."""
    if not isinstance(value, str):
        if not is_missing(value):
            problems.append(Problem("text", shown(value), field))
        return None
    if (fault := text_fault(value)) is not None:
        problems.append(Problem("clean Unicode text", fault, field))
    return value


def identifier(value: object, field: str, problems: list[Problem]) -> str | None:
    """Return an id as text, a whole number as its digits, or None if it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and _is_short(value):
        return str(value)
    if isinstance(value, str) and value:
        return text(value, field, problems)
    # pandas turns a column of whole numbers with a missing value into floats
    advice = _AS_WHOLE if isinstance(value, float) and value.is_integer() else ""
    problems.append(Problem(ID, shown(value), field, advice=advice))
    return None


def identifiers(value: object, field: str, problems: list[Problem]) -> tuple[str, ...] | None:
    """Return ids as a tuple of texts, or None if there is no list; an id in it must not be missing."""
    if is_missing(value):
        return None
    if not is_ordered(value):
        problems.append(Problem("a list of ids", shown(value), field))
        return None
    if is_list(value) and {*map(type, value)} == {str} and all(value):
        texts = cast("Sequence[str]", value)  # as just checked
        if text_fault("".join(texts)) is None:  # nearly always; otherwise each id is checked, to name it
            return tuple(texts)
    found: list[str] = []
    for place, item in _until_many(enumerate(value), problems):
        one = identifier(item, f"{field}[{place}]", problems)
        if one is not None:
            found.append(one)
        elif is_missing(item):
            problems.append(Problem(ID, shown(item), f"{field}[{place}]"))
    return tuple(found)


def number(value: object, field: str, problems: list[Problem]) -> float | None:
    """Return a finite number, or None if it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            as_float = float(value)
        except OverflowError:
            as_float = math.inf
        if math.isfinite(as_float):
            return as_float
    problems.append(Problem("a finite number", shown(value), field))
    return None


def language(value: object, field: str, problems: list[Problem]) -> str | None:
    """Return a language code such as "en" or "pt-BR", or "unknown"; None if it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, str) and _LANGUAGE.fullmatch(value):
        return value
    problems.append(Problem("a language code such as 'en' or 'ru'", shown(value), field))
    return None


def metadata(value: object, field: str, problems: list[Problem]) -> Mapping[str, JSON] | None:
    """Return an object of JSON values with text keys, at most `MAX_DEPTH` levels deep, or None if it is missing.

    NaN in it becomes null, since JSON has no NaN.
    """
    if is_missing(value):
        return None
    if not is_mapping(value):
        problems.append(Problem("an object", shown(value), field))
        return None
    count = len(problems)
    plain = _json_value(dict(value), field, problems, 1)
    return cast("dict[str, JSON]", plain) if len(problems) == count else None


def _json_value(value: object, field: str, problems: list[Problem], depth: int) -> object:
    """Return a value with null instead of each NaN, or record a problem for each part that JSON cannot represent."""
    if depth > MAX_DEPTH:
        problems.append(Problem(f"at most {MAX_DEPTH} levels of nesting", "more", field[:_SHOWN_CHARS]))
        return None
    match value:
        case str():
            return text(value, field, problems)
        case int() if _is_short(value):  # a bool too
            return value
        case _ if is_missing(value):
            return None
        case int() | float():
            return number(value, field, problems)
        case dict():  # no other mapping can be written as JSON
            pairs = _until_many(cast("dict[object, object]", value).items(), problems)
            return {
                key: _json_value(item, _checked_key(key, field, problems), problems, depth + 1) for key, item in pairs
            }
        case _ if is_list(value):
            items = [
                _json_value(item, f"{field}[{place}]", problems, depth + 1)
                for place, item in _until_many(enumerate(value), problems)
            ]
            return tuple(items) if isinstance(value, tuple) else items
        case _:
            problems.append(Problem("a JSON value", shown(value), field))
            return None


def _until_many(items: Iterable[_T], problems: list[Problem]) -> Iterator[_T]:
    """Yield items until there are too many problems."""
    return takewhile(lambda _: len(problems) <= MAX_PROBLEMS, items)


def _checked_key(key: object, field: str, problems: list[Problem]) -> str:
    if isinstance(key, str):
        text(key, f"a key of {field}", problems)
        return f"{field}.{cut(key)}"
    problems.append(Problem("keys that are text", shown(key), field))
    return field


def _is_short(value: int) -> bool:
    return value.bit_length() < 13_000  # under Python's limit of 4,300 digits for int to str


def cut(text_to_cut: str) -> str:
    """Return the beginning of a text for a message, without half characters."""
    clean = _SURROGATE.sub("\ufffd", text_to_cut[: _SHOWN_CHARS + 1])
    return clean if len(clean) <= _SHOWN_CHARS else clean[: _SHOWN_CHARS - 3] + "..."
