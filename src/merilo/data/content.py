"""One normal form of what retrievers, stores, services and tools return: a list of passages, each with its text.

JSON in a text is what it holds, if the whole text is JSON. An object with one list of passages, at any depth, is that
list. A passage is a text, or an object with one text: under a known name, or in a nested object. Each value is looked
at once, and at most `_MAX_OBJECTS` in all; what cannot be read is returned as it was.

Lists and objects printed into one cell of a table by JSON, Python (list, tuple, deque) or numpy (array) are read
exactly or rejected. `ast.literal_eval` must not be used here: Python joins string literals that only white space
separates, so numpy's `['a' 'b']` would become the single text `ab`.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Final

from merilo.data import check

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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


MAX_JSON: Final = 2_000_000
"""Maximum characters of a text that is read as JSON."""
_MAX_DEPTH: Final = 6
_MAX_OBJECTS: Final = 2_000
"""Maximum objects and lists in which a list of passages is looked for."""
_MAX_INSIDE: Final = 100
"""Maximum objects within one passage in which its text is looked for."""
MAX_KEYS: Final = 20
"""Keys of one item of a list among which a list of passages is looked for."""
_PAIR: Final = 2  # a passage and its score
_MAX_ROW: Final = 4
_LOOKED_AT: Final = 5
"""Items of a list that must be passages; the others are read when they are used."""
_SCRIPTS_WITHOUT_SPACES: Final = 0x0E00
_PRINTED: Final = re.compile(
    r"\s*(?:<[\w.]{1,80} object at 0x|[A-Z]\w{2,60}\(\w{1,60}=|(?:defaultdict|OrderedDict|Counter)\("
    r"|(?:id|content|text|messages|page_content)=['\"\[{N])"
)
"""The beginning of an object as Python prints it."""


@cache
def names() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the names in `content.toml`."""
    tables = tomllib.loads(files("merilo.data").joinpath("content.toml").read_text("utf-8"))
    return {table: {name: tuple(each) for name, each in rows.items()} for table, rows in tables.items()}


def held(value: object) -> object:
    """Return the object or list that a text is as JSON, or as Python prints it; any other value as it is."""
    if not isinstance(value, str) or (value[:1] not in _OPENING and not _PRINTED.match(value)):
        return value
    bare = value.strip() if len(value) <= MAX_JSON else ""
    if not bare.endswith(("}", "]", ")", "'", '"')):
        return value
    try:
        if bare[0] == "[":
            found: object = list_in_cell(bare)
        else:
            found = value_in(bare if bare[0] == "{" or bare.endswith(")") else f"object({bare})")
    except CellError:
        return value
    return found if check.is_record(found) or check.is_list(found) else value


_OWN: Final = frozenset({"text", "id", "score", "language", "metadata"})
_OPENING: Final = frozenset("{[ \n\r\t\ufeff")


def is_unreadable(text: str) -> bool:
    """Return True for a text that is JSON or an object as Python prints it: an export or a log, not an answer."""
    return held(text) is not text if text[:1] in _OPENING else _PRINTED.match(text) is not None


def parts_of(text: str) -> list[object]:
    """Return the passages of a text: between known separators, or as texts or objects one after the other."""
    for separator in names()["around"]["separators"]:
        if separator in text:
            return [part.strip() for part in text.split(separator) if part.strip()]
    if text.lstrip()[:1] in ('"', "'", "{") or _PRINTED.match(text):
        with suppress(CellError):
            found = value_in(f"[{', '.join(text.strip().splitlines())}]")
            return [*found] if check.is_list(found) and all(map(_is_passage, found)) else [text]
        with suppress(CellError):
            found = value_in(f"[{text}]")
            return [*found] if check.is_list(found) and all(map(_is_passage, found)) else [text]
    return [text]


def is_text(item: object) -> bool:
    """Return True for a text, and for an object that has its text under a known name."""
    return isinstance(item, str) or (check.is_record(item) and _text_key(item) is not None)


def is_prose(text: str) -> bool:
    """Return True for several words, or for text in a script that need not divide words by spaces."""
    return len(text.split(None, 1)) > 1 or any(ord(char) >= _SCRIPTS_WITHOUT_SPACES for char in text[:200])


def passages_in(value: object) -> list[object] | None:
    """Return the only list of passages in a value; None if there is none, or several and none under a known name."""
    found: dict[str, list[object]] = {}
    waiting: deque[tuple[str, object, int]] = deque([("", value, 0)])
    for _ in range(_MAX_OBJECTS):
        if not waiting:
            break
        path, each, depth = waiting.popleft()
        each = held(each)
        rows, inner = _rows_in(each)
        if depth == 0 and check.is_record(each) and not rows and (key := _text_key(each)) is not None:
            blocks = each[key]
            is_list = check.is_list(blocks) and all(check.is_record(block) and "type" in block for block in blocks)
            return [*blocks] if check.is_list(blocks) and is_list else [each]
        if rows:
            found.setdefault(path, []).extend(rows)
        elif depth < _MAX_DEPTH:
            waiting.extend((f"{path}.{key}", item, depth + 1) for key, item in inner if len(key) <= MAX_KEY)
    if len(found) > 1:
        known = {path: items for path, items in found.items() if path.rpartition(".")[2] in names()["around"]["lists"]}
        found = known if len(known) == 1 else found
    if len(found) == 1:
        return next(iter(found.values()))
    return [value] if not found and check.is_record(value) and len(_path(value)) > 1 else None


def _rows_in(value: object) -> tuple[Sequence[object], Iterable[tuple[str, object]]]:
    """Return the passages of a list, or of an object of columns or of numbered keys; otherwise what is within it."""
    if check.is_list(value):
        items = value[0] if len(value) == 1 and check.is_list(value[0]) and not _is_passage(value[0]) else value
        inner = _lists_in(items)
        return items if not inner and all(map(_is_passage, items[:_LOOKED_AT])) else (), inner
    if not check.is_record(value):
        return (), ()
    rows: Sequence[object] = columns_of(value) or _numbered(value)
    return rows if rows and _is_passage(rows[0]) else (), islice(value.items(), _MAX_OBJECTS)


def _lists_in(items: Sequence[object]) -> list[tuple[str, object]]:
    """Return the lists of passages in the items of a list, of which the first has no text itself, by their keys."""
    first = items[0] if items else None
    if not check.is_record(first) or _text_key(first) is not None:
        return []
    if (path := _path(first)) and path[0][1] in names()["around"]["inside"]:
        return []
    records = [each for each in items[:_MAX_INSIDE] if check.is_record(each)]
    pairs = [pair for each in records for pair in islice(each.items(), MAX_KEYS)]
    return [(key, held) for key, held in pairs if check.is_list(held) and held and _is_passage(held[0])]


def _numbered(value: Mapping[str, object]) -> list[object]:
    """Return the passages of an object whose keys are numbers or names with a number, such as `doc1`."""
    is_list = bool(value) and all(key[-1:].isdecimal() for key in islice(value, _MAX_OBJECTS))
    return [*value.values()] if is_list and all(map(_is_passage, islice(value.values(), _LOOKED_AT))) else []


_NUMBER: Final = re.compile(r"[-+]?\d{1,20}(?:\.\d{0,20})?(?:[eE][-+]?\d{1,2})?")
MAX_KEY: Final = 200
"""Characters of a key; what a longer one holds is not looked into."""
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d{0,6})\]")


def at_path(value: object, path: str) -> object:
    """Return what an object holds at a path such as `outputs.answer` or `contexts[].metadata.text`; None if nothing.

    `[]` stands for each item of a list.
    """
    for found in _STEP.finditer(path):
        value = held(value)
        if found[1] is not None:
            value = value.get(found[1]) if check.is_record(value) else None
        elif found[2]:
            value = value[int(found[2])] if check.is_list(value) and int(found[2]) < len(value) else None
        else:
            rest = path[found.end() :].lstrip(".")
            items = [at_path(each, rest) for each in value] if check.is_list(value) else []
            return [each for each in items if each is not None] or None
    return value


def columns_of(value: Mapping[str, object]) -> list[dict[str, object]] | None:
    """Return an object of lists of equal length, one for each key, as a list of objects; None for any other object.

    The lists may each be in a list of one, as for one query of several.
    """
    noise = names()["around"]["noise"]
    lists = {name: each for name, each in value.items() if each is not None and name not in noise}
    if len(lists) > _MAX_INSIDE or not all(check.is_list(each) and each for each in lists.values()):
        return None
    if lists and all(check.is_list(each) and len(each) == 1 and check.is_list(each[0]) for each in lists.values()):
        lists = {name: each[0] for name, each in lists.items() if check.is_list(each)}
    columns = [[*each] for each in lists.values() if check.is_list(each)]
    if len({len(each) for each in columns}) != 1 or not columns[0]:
        return None
    if len(columns) == 1 and (len(lists) > 1 or not isinstance(columns[0][0], str)):
        return None
    return [dict(zip(lists, row, strict=True)) for row in zip(*columns, strict=True)]


def passage_of(item: object) -> object:
    """Return a passage as an object with `text`, and id, score, language and metadata where known; others as they are.

    Keys of the object that has the text, and of those around it, that have no such meaning become metadata.
    """
    if isinstance(item, str):
        return passage_of(found) if check.is_record(found := held(item)) and _path(found) else item
    if check.is_list(item):
        return _of_row(item)
    if not check.is_record(item):
        return item
    is_plain = item.keys() <= _OWN and not isinstance(item.get("score"), str | dict)
    if is_plain and isinstance(text := item.get("text"), str) and text[:1] not in _OPENING:
        return item  # nearly all passages
    inner = item.get("kwargs") if item.get("lc") == 1 else item  # LangChain's serialised object
    whole = inner if check.is_record(inner) else item
    item = {name: value for name, value in whole.items() if (name, value) != ("type", "Document")}
    parts: dict[str, object] = {}
    other: dict[str, object] = {}
    keys, noise = _keys(item), _roles()[1]
    for each, below in [(item, "")] if "text" in keys else _path(item) or [(item, "")]:
        keys = keys if each is item else _keys(each)
        if below:
            keys.pop("text", None)
        parts |= {role: each[key] for role, key in keys.items() if role not in parts and role != "metadata"}
        used = {*keys.values(), below}
        there = {key: value for key, value in each.items() if value is not None and key not in used}
        rest = {key: value for key, value in there.items() if key not in noise and not check.is_missing(value)}
        own = held(each[keys["metadata"]]) if keys.get("metadata", below) != below else None
        if check.is_record(own):
            rest = {f"field {name}" if name in own else name: value for name, value in rest.items()} | {**own}
        elif own is not None:
            parts["metadata"] = own  # rejected, with its field, when the sample is created
        other |= rest
    if "text" not in parts:
        return item
    parts["text"] = parts["text"] if isinstance(parts["text"], str) else joined(parts["text"]) or parts["text"]
    parts |= {"score": _number(parts["score"])} if "score" in parts else {}
    return {"metadata": other, **parts} if other else parts


def _number(score: object) -> object:
    """Return the number in a text, or in an object of one key as MongoDB writes it; other values as they are."""
    value = next(iter(score.values())) if check.is_record(score) and len(score) == 1 else score
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return float(value)
    return value if isinstance(value, int | float) else score


def _of_row(row: list[object] | tuple[object, ...]) -> object:
    """Return the passage of a row: one and its score, a title and its sentences, or the only text with an id."""
    if len(row) == _PAIR and isinstance(row[0], str) and check.is_list(row[1]):
        return passage_of({"title": row[0], "text": row[1]})
    is_scored = len(row) == _PAIR and isinstance(row[1], int | float)
    texts = [each for each in row if isinstance(each, str) and is_prose(each)] if _PAIR <= len(row) <= _MAX_ROW else []
    first = texts[0] if len(texts) == 1 else row[0] if is_scored else None
    found = {"text": first} if isinstance(first, str) else passage_of(first)
    if not check.is_record(found) or "text" not in found:
        return row
    return {**found, "score": row[1]} if is_scored else found


def _is_passage(item: object) -> bool:
    if isinstance(item, str):
        return is_prose(item)
    if check.is_list(item):
        return len(item) > 1 and not check.is_list(item[1]) and check.is_record(_of_row(item))
    inner = item.get("kwargs", item) if check.is_record(item) and "lc" in item else item
    return check.is_record(inner) and bool(_path(inner))


_USUAL: Final = 100  # more than the names of any part


@cache
def _roles() -> tuple[Mapping[str, tuple[str, int]], frozenset[str]]:
    """Return the part that a key names and its rank, the least first; and the keys that say nothing."""
    ranks = {
        key: (role, first + rank)
        for table, first in (("usual", _USUAL), ("passage", 0))
        for role, keys in names()[table].items()
        for rank, key in enumerate(keys)
    }
    return ranks, frozenset(names()["around"]["noise"])


def _keys(item: Mapping[str, object], only: str = "") -> dict[str, str]:
    """Return the keys of the parts of a passage, or of one; a usual name counts if no other has a value."""
    best: dict[str, str] = {}
    least: dict[str, int] = {}
    several: set[str] = set()
    ranks = _roles()[0]
    for key, value in item.items():
        role, rank = ranks.get(key.casefold() if key[:1].isupper() else key, ("", 0))  # "Content", "CHUNK"
        if not role or (only and role != only):
            continue
        if not _fits(value, role, key):
            if role != key or role == "text" or value is None or check.is_missing(value):
                continue
            rank = 2 * _USUAL  # rejected, if there is no other
        several |= {role} if role in best else set()
        if rank < least.get(role, 3 * _USUAL):
            best[role], least[role] = key, rank
    return {role: key for role, key in best.items() if least[role] < _USUAL or role not in several} if several else best


def _fits(value: object, role: str, key: str) -> bool:
    """Return True if a value has the form of a part of a passage."""
    if role == "text":
        return bool(joined(value)) and (isinstance(value, str) or key not in names()["around"]["lists"])
    if value is None or isinstance(value, bool):
        return False
    match role:
        case "id":
            return isinstance(value, str | int) and value != ""
        case "score":
            return isinstance(value, int | float) and not check.is_missing(value)
        case "metadata":
            return check.is_record(held(value))
        case _:
            return isinstance(value, str)


def _text_key(item: Mapping[str, object]) -> str | None:
    """Return the known name under which an object has its text, or the parts of it; None if it has none itself."""
    return _keys(item, "text").get("text")


def _path(
    item: Mapping[str, object], left: list[int] | None = None, depth: int = 0
) -> list[tuple[Mapping[str, object], str]]:
    """Return the objects from a passage to the one that has its text, each with the key of the next.

    Empty if there is none, or if several have a text and none is under a known name.
    """
    left = [_MAX_INSIDE] if left is None else left
    left[0] -= 1
    if _text_key(item) is not None:
        return [(item, "")]
    if depth >= _MAX_DEPTH or left[0] < 0:
        return []
    known = [key for key in names()["around"]["inside"] if key in item]
    others = [key for key in islice(item, _MAX_INSIDE) if key not in known]
    found: list[list[tuple[Mapping[str, object], str]]] = []
    for key in (*known, *others):
        if check.is_record(inner := held(item[key])) and (path := _path(inner, left, depth + 1)):
            if key in known:
                return [(item, key), *path]
            found.append([(item, key), *path])
    return found[0] if len(found) == 1 and left[0] >= 0 else []


def joined(value: object) -> str:
    """Return a text, or the texts of its parts joined; empty for anything else, such as JSON."""
    if isinstance(value, str):
        return "" if held(value) is not value else value.strip() and value
    if not check.is_list(value) or not value:
        return ""
    texts = [each.get("text") if check.is_record(each) else each for each in value]
    return " ".join(str(each).strip() for each in texts) if all(isinstance(each, str) for each in texts) else ""
