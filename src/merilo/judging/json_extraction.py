"""Finds the one JSON value in a model's reply, or reports why there is none. It never guesses between two.

Reasoning before a closing tag is skipped; fences and prose around the value are ignored. Damaged JSON is repaired only
if the repair can neither lose nor invent a decision. So the text must be complete (not truncated), and each expected
key must occur in it as often as in the repaired value. A context that is quoted in a reply may contain other JSON and
tags, so nothing is ever extracted from within a damaged value.

The messages of `ReplyParseError` are sent to the judge in a re-ask. So they are part of the prompts.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from merilo.judging.json_types import Json, as_list, as_object, scanner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.verdicts import Verdict

_TAGS = "think|thinking|thought|reasoning|reflection|analysis"
_REASONING_START = re.compile(rf"<\s*(?:{_TAGS})\s*>|\[THINK\]|<\|channel\|>\s*analysis", re.IGNORECASE)
_REASONING_END = re.compile(
    rf"</\s*(?:{_TAGS})\s*>|\[/THINK\]|<\|channel\|>\s*final[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>",
    re.IGNORECASE,
)
_OPENING = re.compile(r"\{|\[(?=\s*\{)")
_MAY_BEGIN = re.compile(r"\{\s*[\"'“”«\w]|\[")
_BEGINS_OBJECT = re.compile(r"\[?\s*\{\s*[\"'“”«]?\w+[\"'“”»]?\s*:")
_QUOTES = re.compile(r"(?<=[{\[,:])(\s{0,20})[“”„«»]|[“”„«»](?=\s{0,20}[}\],:])")
_DIGITS = re.compile(r"(?<=[:\[,])(\s{0,20})([^\W_a-zA-Z0-9]{1,9})(?=\s{0,20}[,}\]])")
"""A number in digits that are not those of JSON."""
_FENCED = re.compile(r"\s*```[\w-]*+\n?(.*?)```\s*", re.DOTALL)
MAX_REPLY_CHARACTERS: Final = 400_000
"""Maximum length of a reply that is parsed or stored, in characters. A longer reply is unreadable."""
TOO_LONG: Final = "Your reply was far too long."
"""Message to the judge in the re-ask after such a reply."""
_MAX_EFFORT = 100_000
_EFFORT_IN_VAIN = 10
_CHARACTERS_AN_EFFORT = 40
"""Limits the time spent on brackets that begin no object. Each costs 1, plus 10 if decoding was tried, plus 1 for
each forty characters decoded in vain. The limit is reached after some 0.1 s; without it, brackets alone take half a
minute."""
_NOTHING: Final = frozenset({"none", "n/a", "null", "nothing", "-", "–", "—"})
"""What models write into an empty field, in lower case and without a full stop."""
_OBJECT: Final = {dict}
_MAX_REPAIRED = 60_000
"""Maximum characters of damaged JSON that are repaired; the repair takes a microsecond or more per character."""


class ReplyParseError(Exception):
    """A reply that cannot be parsed; the message is a sentence to the judge.

    `weak`: the verdict that stands without what is wrong, marked as such; None if there is none.
    """

    def __init__(self, message: str, weak: Verdict | None = None) -> None:
        super().__init__(message)
        self.weak = weak


@dataclass(frozen=True, slots=True)
class JsonShape:
    """Structure of the expected value: an object with the first key or, with `item`, a list of objects under it."""

    keys: tuple[str, ...]
    """Every key of the reply that affects the verdict; the first one distinguishes the object from other JSON."""
    item: str | None = None
    """The key that each object of the list has; a bare list of such objects is accepted too."""


def read_object(text: str, shape: JsonShape) -> Json:
    """Return the one object in the text with the shape's first key. Raises Unreadable."""
    if (plain := _plain(text, shape)) is not None:
        return plain
    value = _read(text, shape)
    if isinstance(value, list):
        raise ReplyParseError("Your reply is a list, not one JSON object.")
    return value


def read_list(text: str, shape: JsonShape) -> list[object]:
    """Return the one list in the text, under the shape's first key or bare. Raises Unreadable."""
    value = _plain(text, shape) or _read(text, shape)
    if isinstance(value, list):
        return value
    if is_nothing(value[shape.keys[0]]):
        return []
    inner = as_list(value[shape.keys[0]])
    if inner is None:
        raise ReplyParseError(f'"{shape.keys[0]}" must be a list.')
    return inner


def is_nothing(value: object) -> bool:
    """Return True for null, "", a word that models write into an empty field (`None`, `N/A`), or a list of these."""
    if value is None or isinstance(value, str):
        return not value or value.strip().rstrip(".").lower() in _NOTHING
    items = as_list(value)
    return items is not None and all(each and isinstance(each, str) and is_nothing(each) for each in items)


def has_answer(text: str) -> bool:
    """Return True if a reply that was cut off has any text after the model's reasoning."""
    rest = _after_reasoning(text)
    return bool(rest.strip()) and not (rest == text and _REASONING_START.match(rest.lstrip()))


def complete_fields(text: str) -> str:
    """Return the object that a cut reply begins with, as JSON of the fields that are complete; empty if none is."""
    text = _after_reasoning(text)
    start = re.match(r"\s*(?:```[\w-]*\s*)?(?=\{)", text)
    if start is None:
        return ""
    text, depth, quoted, escaped, end = text[start.end() :], 0, False, False, 0
    for place, character in enumerate(text):
        if quoted:
            quoted = escaped or character != '"'
            escaped = not escaped and character == "\\"
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if not depth:
                return "" if "{" in text[place + 1 :] else text[: place + 1]
        elif character == "," and depth == 1:
            end = place
    return f"{text[:end]}}}" if end else ""


def _plain(text: str, shape: JsonShape) -> Json | None:
    """Return the object if it is the whole text and has the first key, as in nearly all replies; `_read` finds it too,
    with ten times the calls. None for any other reply.
    """
    size = len(text)
    if size > MAX_REPLY_CHARACTERS:
        return None
    try:
        value, end = _scan(text, 0)
    except (StopIteration, ValueError, RecursionError):
        return None
    whole = end == size or text[end:].isspace()
    return value if whole and type(value) in _OBJECT and shape.keys[0] in value else None


def _read(text: str, shape: JsonShape) -> Json | list[object]:
    text = text.lstrip("\ufeff").strip()
    if not text:
        raise ReplyParseError("Your reply was empty.")
    if len(text) > MAX_REPLY_CHARACTERS:
        raise ReplyParseError(TOO_LONG)
    try:
        rest = _after_reasoning(text)
        whole = _alone(text, shape)
        if whole is None and rest != text:
            whole = _alone(rest.strip(), shape)
        if whole is not None:
            return whole
        start, end = _REASONING_START.match(text), _REASONING_END.search(text)
        if start and end is None:
            raise ReplyParseError("Your reply holds only reasoning and no answer after it.")
        return _scanned(text[end.end() :] if start and end else text, shape)
    except RecursionError:
        raise ReplyParseError("Your reply was nested too deeply.") from None


def _after_reasoning(text: str) -> str:
    """Return what follows the last closing tag; the whole text if there is none."""
    ends = [match.end() for match in _REASONING_END.finditer(text)]
    return text[ends[-1] :] if ends else text


def _alone(text: str, shape: JsonShape) -> Json | list[object] | None:
    """Return the value of a text that consists of one value, optionally within a fence; otherwise None."""
    fenced = _FENCED.fullmatch(text) if text.startswith("`") else None
    try:
        value = _DECODER.decode(fenced[1].strip() if fenced else text)
        if isinstance(value, str):  # JSON that was encoded twice
            value = _DECODER.decode(value.strip())
    except ValueError:  # JSONDecodeError, or a number of thousands of digits
        return None
    return _wanted(value, shape)


class _Text(str):
    """A text without line numbers for errors: JSONDecodeError would count the lines before each error again."""

    __slots__ = ()

    def count(self, *_: object) -> int:
        """Return 0."""
        return 0

    def rfind(self, *_: object) -> int:
        """Return -1."""
        return -1


def _scanned(reply: str, shape: JsonShape) -> Json | list[object]:
    text, effort = _Text(reply), 0
    found: dict[str, Json | list[object]] = {}
    position = 0
    while opening := _OPENING.search(text, position):
        if _REASONING_END.search(text, position, opening.start()):
            found.clear()  # the values before a closing tag were reasoning
        start = opening.start()
        value, position, vain = _begun(text, start)
        if vain:
            effort += vain
            if effort > _MAX_EFFORT:
                raise ReplyParseError("Your reply holds too many brackets that begin no JSON object.")
            if _BEGINS_OBJECT.match(text, start):
                if found or _REASONING_END.search(text, start):
                    break  # a quotation or a draft: it is unclear which value is meant
                return _repaired(reply[start:], shape)
            continue
        if (wanted := _wanted(value, shape)) is not None:
            found[json.dumps(wanted, sort_keys=True)] = wanted
    else:
        if len(found) == 1 and not _REASONING_END.search(text, position):
            return next(iter(found.values()))
        if not found:
            raise ReplyParseError(f'Your reply holds no JSON object with the field "{shape.keys[0]}".')
    raise ReplyParseError("Your reply holds more than one JSON object, or one that cannot be told from the rest.")


def _begun(text: str, start: int) -> tuple[object, int, int]:
    """Return the value that begins at a bracket, the place after it, and 0; or None, the next one, and the effort."""
    if not _MAY_BEGIN.match(text, start):
        return None, start + 1, 1
    try:
        return *_DECODER.raw_decode(text, start), 0
    except ValueError as error:  # JSONDecodeError, or a number of thousands of digits
        read: int = getattr(error, "pos", len(text)) - start
        return None, start + 1, 1 + _EFFORT_IN_VAIN + read // _CHARACTERS_AN_EFFORT


def _wanted(value: object, shape: JsonShape) -> Json | list[object] | None:
    """Return the value if it is the expected object or list, after removing one layer of wrapping; otherwise None."""
    items = as_list(value)
    if items and shape.item:
        return items if all(shape.item in (as_object(item) or ()) for item in items) else None
    if items is not None and len(items) == 1:
        value = items[0]
    fields = as_object(value)
    if fields is None or shape.keys[0] in fields:
        return fields
    inner = next(iter(fields.values())) if len(fields) == 1 else fields.get("arguments", fields.get("parameters"))
    try:
        inner = as_object(_DECODER.decode(inner) if isinstance(inner, str) else inner)
    except ValueError:
        inner = None
    if inner is not None and shape.keys[0] in inner:
        return inner
    folded = _folded(fields)
    return None if folded == fields else _wanted(folded, shape)


def _folded(value: object) -> Any:  # Any: JSON of the same form
    """Return a value with the keys of its objects in lower case."""
    if (fields := as_object(value)) is not None:
        return _object([(name.strip().lower(), _folded(inner)) for name, inner in fields.items()])
    return [_folded(inner) for inner in items] if (items := as_list(value)) is not None else value


def _repaired(text: str, shape: JsonShape) -> Json | list[object]:
    from json_repair import repair_json

    text = text[: max(text.rfind("}"), text.rfind("]")) + 1]
    if text.count("{") != text.count("}") or text.count("[") != text.count("]") or not text:
        raise ReplyParseError("Your reply is not valid JSON: its brackets do not close.")
    if len(text) > _MAX_REPAIRED:
        raise ReplyParseError("Your reply is not valid JSON.")
    if '"' not in text:
        text = _QUOTES.sub(r'\1"', text)
    text = _DIGITS.sub(lambda found: found[1] + (str(int(found[2])) if found[2].isdecimal() else found[2]), text)
    try:
        value: object = repair_json(text, return_objects=True, skip_json_loads=True)
    except ValueError:  # raised by json-repair for deep nesting
        value = None
    wanted = _wanted(value, shape)
    if wanted is None:
        raise ReplyParseError("Your reply is not valid JSON.")
    for key in shape.keys:
        occurrences = len(re.findall(rf"\b{key}\b[\"'“”»]?\s*:", text))
        if occurrences != sum(1 for name in _keys(wanted) if name == key):
            raise ReplyParseError(f'Your reply is not valid JSON: "{key}" cannot be read with certainty.')
    return wanted


def _keys(value: object) -> Iterator[str]:
    fields = as_object(value)
    if fields is not None:
        yield from fields
    for inner in fields.values() if fields is not None else as_list(value) or ():
        yield from _keys(inner)


def _object(pairs: list[tuple[str, object]]) -> Json:
    value: Json = dict(pairs)
    if len(value) == len(pairs):
        return value
    value = {}
    for key, inner in pairs:
        if key in value and value[key] != inner:
            raise ReplyParseError(f'Your reply gives "{key}" twice, with different values.')
        value[key] = inner
    return value


def _no_constant(name: str) -> object:
    raise ReplyParseError(f"Your reply holds {name}, which is not a JSON value.")


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_object, parse_constant=_no_constant)
_scan: Final = scanner(_DECODER)
