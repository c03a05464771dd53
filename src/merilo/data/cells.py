"""Parsing of lists printed into one cell of a table by JSON, Python (list, tuple, deque) or numpy (array).

Each printed form is read exactly or rejected. `ast.literal_eval` must not be used here: Python joins string literals
that only white space separates, so numpy's `['a' 'b']` would become the single text `ab`.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Final

from merilo.data import check

_DEPTH: Final = 32
"""Maximum levels of nesting in a printed list."""
_SEQUENCES: Final = r"(?:(?:np|numpy)\.)?array|list|deque"
_LIST: Final = re.compile(
    rf"\s*(?:\[|(?:{_SEQUENCES}|Index|(?:frozen)?set)\(\s*[\[{{].*\)\s*\Z|<\w*Array>\s*\[)", re.DOTALL
)
"""The beginning of a printed list. pandas prints the texts of an `Index` without escapes, so it is never exact."""
_NOTE: Final = re.compile(r"""\s*\[[^\]\['"{}(),]{1,200}\][ \t:]+[^\s\]]""")
"""A text that begins with words in brackets, such as `[1] The mill ...` or `[Note] The mill ...`."""
_SPACE: Final = re.compile(r"\s*+")
_STRING: Final = re.compile(r"""'[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*+'|"[^"\\\r\n]*+(?:\\.[^"\\\r\n]*+)*+\"""")
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_ESCAPED: Final = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?(?![\w.])")
_CONSTANT: Final = re.compile(r"(?:None|nan|NaN|NaT|<NA>|(?:np\.)?(?:True|False)_?)(?![\w.(])")
_CALL: Final = re.compile(rf"({_SEQUENCES}|np\.(?:str_|bool_?|u?int[0-9]*|float[0-9]*))\(")
_CALL_END: Final = re.compile(
    r"""\s*+(?:,\s*+shape=\([0-9,\s]*+\)\s*+)?(?:,\s*+(?:dtype|maxlen)=[\w'"<>=|.]++(?:\([^()]*+\))?\s*+)*+\)"""
)
_ADVICE: Final = 'write the list as JSON, for instance ["first", "second"]'


class CellError(ValueError):
    """A cell that begins like a list but is not in a supported form; `got` and `advice` explain it."""

    def __init__(self, got: str, advice: str = _ADVICE) -> None:
        super().__init__(got)
        self.got = got
        self.advice = advice


def list_in_cell(cell: str) -> list[object] | None:
    """Return the items of a printed list, or None if the cell is plain text.

    A cell counts as a list if it begins with `[` and is not a text after a note in brackets, or if all of it is
    `array([...])`, `list([...])`, `deque([...])` or a Python tuple of texts.

    Raises CellError for a list that cannot be read exactly, such as pandas' `Index([`, and for a printed set, which
    has lost the order.
    """
    cell = cell.lstrip("\ufeff")
    if not _LIST.match(cell) or _NOTE.match(cell):
        return _texts_in_other_brackets(cell)
    if check.has_too_many_values(cell):
        raise CellError(f"{check.shown(cell)}, with more than {check.MAX_VALUES:,} values")
    try:
        value: object = json.loads(cell, object_pairs_hook=check.without_repeated_keys)
    except (ValueError, RecursionError):
        value = _Reader(cell).whole()
    if not check.is_list(value):
        raise CellError(check.shown(cell))
    return [*value]


def value_in(text: str) -> object:
    """Return the value of a literal as Python prints it. Raises CellError."""
    return _Reader(text).whole()


def _texts_in_other_brackets(cell: str) -> list[object] | None:
    """Return the texts of a tuple; None for plain text. Raises CellError for a set and for a list inside quotes."""
    if not cell.lstrip().startswith(("(", "{", '"')):
        return None
    try:
        value = _Reader(cell).whole()
    except CellError:
        return None
    if isinstance(value, str) and _LIST.match(value):
        raise CellError(f"{check.shown(cell)}, a list inside quotes")
    items = value.items if isinstance(value, _Set) else value
    if not check.is_list(items) or not all(isinstance(item, str) for item in items):
        return None
    if isinstance(value, _Set):
        raise CellError(f"{check.shown(cell)}, a set, which has no order")
    return [*items]


@dataclass(frozen=True, slots=True)
class _Set:
    """The items of a printed set."""

    items: list[object]


class _Reader:
    """Parser of one literal as Python and numpy print it; `position` is the next character to read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.ends_with_comma = False
        """True if the last list of items that was read ends with a comma."""

    def whole(self) -> object:
        """Return the value of the whole text."""
        self._skip_space()
        value = self._value(0)
        self._skip_space()
        if self.position < len(self.text):
            raise self._error()
        return value

    def _value(self, depth: int) -> object:
        text, start = self.text, self.position
        if depth > _DEPTH:
            raise CellError("one that is nested too deeply")
        if text.startswith(("'", '"'), start):
            return self._string()
        if text.startswith("[", start):
            return self._items("]", depth)
        if text.startswith("(", start):
            return self._tuple(depth)
        if text.startswith("{", start):
            return self._braces(depth)
        if text.startswith("...", start):
            got = "one that was shortened to '...' when it was printed, so items are lost"
            raise CellError(got, "save the data again as JSON Lines, or write each list as JSON")
        if call := _CALL.match(text, start):
            return self._call(call, depth)
        if number := _NUMBER.match(text, start):
            self.position = number.end()
            return self._number(number[0])
        if constant := _CONSTANT.match(text, start):
            self.position = constant.end()
            word = constant[0].removeprefix("np.").removesuffix("_")
            return {"None": None, "True": True, "False": False}.get(word, math.nan)
        raise self._error()

    def _items(self, close: str, depth: int, *, commas_only: bool = False) -> list[object]:
        """Return the items up to `close`, separated by commas only, or by white space only as in numpy."""
        items: list[object] = []
        commas = gaps = 0
        like_repr = True
        self.position += 1
        is_apart = self._skip_space()
        is_after_comma = False
        while not self._take(close):
            if items and not is_after_comma:
                if not is_apart:
                    raise self._error()
                gaps += 1
            start = self.position
            item = self._value(depth + 1)
            like_repr = like_repr and not (isinstance(item, str) and self.text[start] not in ("n", _quote(item)))
            items.append(item)
            is_apart = self._skip_space()
            is_after_comma = self._take(",")
            if is_after_comma:
                commas += 1
                self._skip_space()
        # numpy prints texts as `repr` does; numpy did not print other quotes without commas
        if gaps and (commas or commas_only or not like_repr):
            raise CellError(f"{check.shown(self.text)}, with a comma missing between two items")
        self.ends_with_comma = is_after_comma
        return items

    def _tuple(self, depth: int) -> tuple[object, ...]:
        items = self._items(")", depth, commas_only=True)
        if len(items) == 1 and not self.ends_with_comma:
            raise self._error()  # `('a')` is a text in parentheses
        return tuple(items)

    def _braces(self, depth: int) -> dict[object, object] | _Set:
        start = self.position
        found: dict[object, object] = {}
        self.position += 1
        self._skip_space()
        while not self._take("}"):
            # only a text is read twice: nested sets that were read twice would take 2^depth steps
            key = self._string() if self.text.startswith(("'", '"'), self.position) else None
            self._skip_space()
            if not found and (key is None or not self.text.startswith(":", self.position)):
                self.position = start
                return _Set(self._items("}", depth, commas_only=True))
            if key is None or key in found or not self._take(":"):
                raise self._error()
            self._skip_space()
            found[key] = self._value(depth + 1)
            self._skip_space()
            if not self._take(",") and not self.text.startswith("}", self.position):
                raise self._error()
            self._skip_space()
        return found

    def _call(self, call: re.Match[str], depth: int) -> object:
        """Return the value inside `array(...)`, `list(...)` or a call of a numpy number or text type."""
        self.position = call.end()
        self._skip_space()
        if not call[1].startswith("np.") or call[1].endswith("array"):
            if not self.text.startswith("[", self.position):
                raise self._error()
            value: object = self._items("]", depth + 1, commas_only=True)
        else:
            value = self._value(depth + 1)
        end = _CALL_END.match(self.text, self.position)
        if end is None:
            raise self._error()
        self.position = end.end()
        return value

    def _string(self) -> str:
        found = _STRING.match(self.text, self.position)
        if found is None:
            raise self._error()
        self.position = found.end()
        inner = found[0][1:-1]
        return _ESCAPE.sub(self._unescaped, inner) if "\\" in inner else inner

    def _unescaped(self, escape: re.Match[str]) -> str:
        *codes, char = escape.groups()
        if char is not None:
            if char not in _ESCAPED:  # `repr` writes no other escape, so its meaning is unknown
                raise CellError(f"{check.shown(self.text)}, with the unknown escape {escape[0]!r}")
            return _ESCAPED[char]
        code = int(next(filter(None, codes)), 16)
        if code > 0x10FFFF:
            raise self._error()
        return chr(code)

    def _number(self, written: str) -> float:
        try:
            return int(written)
        except ValueError:  # a fraction, or a whole number of thousands of digits
            return float(written)

    def _skip_space(self) -> bool:
        start = self.position
        found = _SPACE.match(self.text, start)
        self.position = found.end() if found else start
        return self.position > start

    def _take(self, char: str) -> bool:
        if self.text.startswith(char, self.position):
            self.position += 1
            return True
        return False

    def _error(self) -> CellError:
        return CellError(check.shown(self.text))


def _quote(text: str) -> str:
    """Return the quote in which `repr` prints a text."""
    return '"' if "'" in text and '"' not in text else "'"
