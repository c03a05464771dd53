"""Lists and objects printed into one cell of a table by JSON, Python (list, tuple, deque) or numpy (array).

Each printed form is read exactly or rejected. `ast.literal_eval` must not be used here: Python joins string literals
that only white space separates, so numpy's `['a' 'b']` would become the single text `ab`.
"""

import json
import math
import re
from dataclasses import dataclass, field
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
_TOKEN: Final = re.compile(
    r"""(?P<space>\s++)
    |(?P<text>'[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*+'|"[^"\\\r\n]*+(?:\\.[^"\\\r\n]*+)*+\")
    |(?P<number>[-+]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?(?![\w.]))
    |(?P<word>(?:None|nan|NaN|NaT|<NA>|(?:np\.)?(?:True|False)_?)(?![\w.(]))
    |(?P<shape>,\s*+(?:shape=\([0-9,\s]*+\)|(?:dtype|maxlen)=[\w'"<>=|.]++(?:\([^()]*+\))?))
    |(?P<key>[A-Za-z]\w*+=)
    |(?P<open>[\[{]|(?:[A-Za-z][\w.]*+)?\()
    |(?P<close>[\])}])
    |(?P<sign>[,:]|\.\.\.)""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(00[01][0-9a-fA-F]{5})|([\\'\"nrt])|(.))")
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}
_WORDS: Final = {"None": None, "True": True, "False": False}
_TYPES: Final = re.compile(rf"(?:{_SEQUENCES}|np\.(?:str_|bool_?|u?int[0-9]*|float[0-9]*))\(")
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
    `array([...])`, `list([...])`, `deque([...])`, a Python tuple of texts, or a list inside quotes.

    Raises CellError for a list that cannot be read exactly, such as pandas' `Index([`, and for a printed set, which
    has lost the order.
    """
    cell = cell.lstrip("\ufeff")
    is_list = _LIST.match(cell) and not _NOTE.match(cell)
    if not is_list and not cell.lstrip().startswith(("(", "{", '"')):
        return None
    try:
        value = value_in(cell)
    except CellError:
        if is_list:
            raise
        return None
    if isinstance(value, str) and _LIST.match(value):
        return list_in_cell(value)
    items = value.items if isinstance(value, _Set) else value
    if check.is_list(items) and (is_list or all(isinstance(item, str) for item in items)):
        if items is not value:
            raise CellError(f"{check.shown(cell)}, a set, which has no order")
        return [*items]
    if is_list:
        raise CellError(check.shown(cell))
    return None


def value_in(text: str) -> object:
    """Return the value that a text is as JSON, or as Python prints it. Raises CellError."""
    if check.has_too_many_values(text):
        raise CellError(f"{check.shown(text)}, with more than {check.MAX_VALUES:,} values")
    try:
        return json.loads(text, object_pairs_hook=check.without_repeated_keys)
    except (ValueError, RecursionError):
        return _printed(text)


@dataclass(frozen=True, slots=True)
class _Set:
    """The items of a printed set."""

    items: list[object]


@dataclass(slots=True)
class _Open:
    """What was opened and is not closed: the sign, and the items so far."""

    sign: str
    items: list[object] = field(default_factory=list[object])
    keys: list[object] = field(default_factory=list[object])
    """The keys of the first items, such as in a dict or of keywords."""
    commas: int = 0
    gaps: int = 0
    """Items that only white space separates from the one before."""
    like_repr: bool = True
    """True if all texts are in the quotes of `repr`, as numpy prints them; others it did not print without commas."""
    last: str = ""
    """The kind of the last part other than white space, and `space` added if that follows it."""


def _printed(text: str) -> object:
    """Return the value of one literal as Python and numpy print it."""
    opened = [_Open("")]
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise CellError(check.shown(text))
        position = found.end()
        kind, part, now = str(found.lastgroup), found[0], opened[-1]
        if kind == "open":
            if len(opened) > _DEPTH:
                raise CellError("one that is nested too deeply")
            opened.append(_Open(part))
        elif kind == "close":
            opened.pop()
            if not opened:
                raise CellError(check.shown(text))
            _add(opened[-1], _closed(now, part, opened[-1].sign, text), text)
        elif kind in ("text", "number", "word"):
            value = _value(kind, part, text)
            now.like_repr &= kind != "text" or part[0] == _quote(str(value))
            _add(now, value, text)
        else:
            _take(now, kind, part, text)
    if len(opened) > 1 or len(opened[0].items) != 1 or opened[0].commas or opened[0].keys:
        raise CellError(check.shown(text))
    return opened[0].items[0]


def _take(now: _Open, kind: str, part: str, text: str) -> None:
    """Take what stands between items. Raises CellError where it cannot stand."""
    if kind == "space":
        now.last = now.last if now.last.endswith("space") else f"{now.last} space"
        return
    is_key = kind == "key" or part == ":"
    if kind == "key" and now.sign not in ("", "[", "{", "("):
        now.keys.append(part[:-1])
    elif part == ":" and now.sign == "{" and now.last.startswith("value") and len(now.keys) == len(now.items) - 1:
        now.keys.append(now.items.pop())
    elif part == "..." and now.sign:
        got = "one that was shortened to '...' when it was printed, so items are lost"
        raise CellError(got, "save the data again as JSON Lines, or write each list as JSON")
    elif part == "," and now.last.startswith("value"):
        now.commas += 1
    elif kind != "shape" or not _TYPES.fullmatch(now.sign):
        raise CellError(check.shown(text))
    now.last = "key" if is_key else kind


def _add(now: _Open, value: object, text: str) -> None:
    if now.last.startswith("value"):
        if now.last == "value":
            raise CellError(check.shown(text))
        now.gaps += 1
    now.items.append(value)
    now.last = "value"


def _closed(now: _Open, sign: str, outer: str, text: str) -> object:
    """Return the value of what is closed; `outer`: what it is in."""
    if now.gaps and (now.commas or now.sign != "[" or _TYPES.fullmatch(outer) or not now.like_repr):
        raise CellError(f"{check.shown(text)}, with a comma missing between two items")
    is_pair = {"[": "]", "{": "}"}.get(now.sign, ")") == sign and not now.last.startswith("key")
    if is_pair and now.sign == "[":
        return now.items
    if is_pair and now.sign == "(" and (len(now.items) != 1 or now.commas):  # `('a')` is a text in parentheses
        return tuple(now.items)
    if is_pair and _TYPES.fullmatch(now.sign) and len(now.items) == 1 and not now.keys:
        return now.items[0]
    if is_pair and len(now.keys) == len(now.items) and now.sign != "(" and (now.keys or now.sign == "{"):
        if all(isinstance(key, str) for key in now.keys) and len({*map(str, now.keys)}) == len(now.keys):
            return dict(zip(now.keys, now.items, strict=True))
    elif is_pair and now.sign == "{" and not now.keys:
        return _Set(now.items)
    elif is_pair and len(outer) > 1 and not now.keys:  # a value in an object, such as a date
        return now.items[0] if len(now.items) == 1 else tuple(now.items)
    raise CellError(check.shown(text))


def _value(kind: str, part: str, text: str) -> object:
    if kind == "word":
        return _WORDS.get(part.removeprefix("np.").removesuffix("_"), math.nan)
    if kind == "number":
        try:
            return int(part)
        except ValueError:  # a fraction, or a whole number of thousands of digits
            return float(part)

    def unescaped(escape: re.Match[str]) -> str:
        *codes, char, unknown = escape.groups()
        if unknown is not None:  # `repr` writes no other escape, so its meaning is unknown
            raise CellError(f"{check.shown(text)}, with the unknown escape {escape[0]!r}")
        return _ESCAPED.get(char, char) if char is not None else chr(int(next(filter(None, codes)), 16))

    return _ESCAPE.sub(unescaped, part[1:-1]) if "\\" in part else part[1:-1]


def _quote(text: str) -> str:
    """Return the quote in which `repr` prints a text."""
    return '"' if "'" in text and '"' not in text else "'"
