"""Texts and documents in the inputs and outputs of spans, which may be text, JSON, messages or objects of a library.

The names of attributes and keys are those of `spans.toml`. Attributes are read as a tree: dotted names, OTLP's typed
values, and JSON in strings.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from merilo.data import check
from merilo.data.aliases import text_in
from merilo.data.content import held, is_unreadable, names, passage_of, passages_in
from merilo.data.history import ASSISTANT, MAX_TURNS
from merilo.data.messages import Message, exchanges_in, list_in, messages_in, passages_returned, query_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

Tree: TypeAlias = "dict[str, object]"

_MAX_DEPTH: Final = 32
"""Levels of names and values below which nothing is unfolded."""
_OWN: Final = ""
"""The key of a node's own value, if a name is also the beginning of longer ones."""
_OTLP_VALUES: Final = ("stringValue", "intValue", "doubleValue", "boolValue")


def tree_of(values: Mapping[str, object]) -> Tree:
    """Return values with dotted names as a tree: `{"a.0.b": 1}` becomes `{"a": {"0": {"b": 1}}}`."""
    return _tree(values, 0)


def find(tree: object, name: str) -> object:
    """Return the value or subtree with a dotted name; None if there is none."""
    node = tree
    for part in name.split(".") if name else ():
        if check.is_record(node := held(node)):
            node = node.get(part)
        else:
            return None
    if check.is_record(node) and _OWN in node:
        return node[_OWN] if len(node) == 1 or not check.is_mapping(node[_OWN]) else node
    return node


def first(tree: object, names: Iterable[str]) -> object:
    """Return the first value that is not missing under one of the names; None if there is none."""
    for name in names:
        value = find(tree, name)
        if value is not None and value not in ("", [], {}):
            return value
    return None


def items_of(node: object) -> list[object]:
    """Return the items of a list, or of a tree whose names are positions; an empty list for anything else."""
    if check.is_list(node):
        return list(node)
    if check.is_record(node) and node and all(name.isdecimal() and len(name) < 10 for name in node):
        return [node[name] for name in sorted(node, key=int)]
    return []


def finite(value: object) -> float | None:
    """Return a number or truth value as a float; None for anything else, and for one that is not finite."""
    if not isinstance(value, bool | int | float):
        return None
    try:
        found = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return None
    return found if isfinite(found) else None


def decoded(value: object) -> object:
    """Return the JSON value in a string; the value itself if it is anything else."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def otlp_attributes(found: object) -> dict[str, object]:
    """Return the attributes of an OTLP span or event, a list of keys and typed values; a plain object as it is."""
    if check.is_record(found):
        return dict(found)
    pairs: dict[str, object] = {}
    for each in found if check.is_list(found) else ():
        if check.is_record(each) and isinstance(key := each.get("key"), str):
            pairs[key] = _otlp_value(each.get("value"), 0)
    return pairs


def _otlp_value(value: object, depth: int) -> object:
    if not check.is_record(value) or depth > _MAX_DEPTH:
        return value
    for name in _OTLP_VALUES:
        if name in value:
            return value[name]
    if check.is_record(array := value.get("arrayValue")):
        listed = array.get("values")
        return [_otlp_value(each, depth + 1) for each in listed] if check.is_list(listed) else []
    if check.is_record(pairs := value.get("kvlistValue")):
        listed = pairs.get("values")
        return {
            str(each.get("key")): _otlp_value(each.get("value"), depth + 1)
            for each in (listed if check.is_list(listed) else ())
            if check.is_record(each)
        }
    return None


def _tree(values: Mapping[str, object], depth: int) -> Tree:
    tree: Tree = {}
    for name, value in values.items():
        _put(tree, name, _unfolded(value, depth + 1))
    return tree


def _unfolded(value: object, depth: int) -> object:
    if depth > _MAX_DEPTH:
        return value
    if check.is_record(value):
        return _tree(value, depth)
    if check.is_list(value):
        return [_unfolded(each, depth + 1) for each in value]
    return value


def _put(tree: Tree, name: str, value: object) -> None:
    parts = name.split(".")
    if len(parts) > _MAX_DEPTH or not all(parts):
        parts = [name]
    node = tree
    for part in parts[:-1]:
        there = node.get(part)
        below = subtree(there)
        if below is None:
            below = {} if there is None else {_OWN: there}
            node[part] = below
        node = below
    last = parts[-1]
    there, added = subtree(node.get(last)), subtree(value)
    if there is not None and added is not None:
        merge(there, added)
    elif there is not None:
        there.setdefault(_OWN, value)
    else:
        node[last] = value


def subtree(value: object) -> Tree | None:
    """Return a value that is a tree; None for anything else."""
    return cast("Tree", value) if isinstance(value, dict) else None  # all names in JSON are texts


def merge(into: Tree, other: Tree) -> None:
    """Add the values of another tree where there is none."""
    for name, value in other.items():
        there, added = subtree(into.setdefault(name, value)), subtree(value)
        if there is not None and added is not None and there is not added:
            merge(there, added)


_Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanFile:
    """One kind of file of spans: how it is recognised, and where its spans are. `spans.toml` describes the fields."""

    name: str
    title: str
    package: str
    has: tuple[_Names, ...]
    spans: _Names = ()
    root: _Names = ()
    children: str = ""
    session: _Names = ()
    json_attributes: bool = False
    record_scores: str = ""
    span_scores: str = ""
    score_name: _Names = ()
    score_value: _Names = ()


@dataclass(frozen=True, slots=True)
class Conventions:
    """The whole table."""

    names: Mapping[str, _Names]
    """The attributes of spans that state each part of a sample."""
    keys: Mapping[str, _Names]
    """The keys of spans, other than their attributes."""
    kinds: Mapping[str, str]
    """A kind in lower case → `retriever`, `reranker`, `llm`, `chain`, `agent`, `tool`, or the kind itself."""
    message_events: Mapping[str, str]
    files: tuple[SpanFile, ...]
    evaluation: Mapping[str, str]
    """The event with which results are written, and its attributes."""


@cache
def conventions() -> Conventions:
    """Return the table, read once."""
    table = frozen(tomllib.loads(files("merilo.adapters").joinpath("spans.toml").read_text("utf-8")))
    kinds = {kind: kind if ours == "others" else ours for ours, kinds in table.pop("kinds").items() for kind in kinds}
    return Conventions(kinds=kinds, files=tuple(SpanFile(**row) for row in table.pop("files")), **table)


def frozen(value: Any) -> Any:  # Any: a value of TOML
    """Return a value with tuples for its lists."""
    if check.is_record(value):
        return {name: frozen(each) for name, each in value.items()}
    return tuple(map(frozen, value)) if check.is_list(value) else value


def question_in(value: object) -> str | None:
    """Return the user's text in an input: the last message of the user, or the value of a known key."""
    return _text(value, "user_input")


def answer_in(value: object) -> str | None:
    """Return the answer in an output: the last message of the assistant, or the value of a known key."""
    return _text(value, "response")


def _text(value: object, name: str) -> str | None:
    """Return the text of a field; a dump that cannot be read is not a text: another span may have the text."""
    inner = held(value)
    found = inner if isinstance(inner, str) else text_in(inner, name)
    return None if found is None or is_unreadable(found) else found


def documents_in(value: object) -> list[dict[str, object]]:
    """Return the documents in a value as contexts: objects with `text`, `id`, `score` and `metadata` where known.

    A document without text keeps its id only; a value without documents gives an empty list.
    """
    items = passages_in(value)
    if items is None:
        items = [*value] if check.is_list(value) else []
    return [found for item in items if (found := _document(item))]


def returned_in(value: object, *, is_named: bool) -> list[dict[str, object]] | None:
    """Return the documents in what a tool returned, such as a message; None if it holds no passages.

    `is_named`: the user says that the tool retrieves, so that its text is a passage, whatever it is.
    """
    results = [result.value for each in messages_in([value]) or () for result in each.results] or [value]
    passages = [item for each in results for item in passages_returned(each) or ([each] if is_named else [])]
    return [found for item in passages if (found := _document(item))] or None


def called_in(*messages: object, tools: Collection[str] | None) -> list[tuple[str, list[dict[str, object]]]] | None:
    """Return what tools retrieved in the last exchange of messages: the query and the documents of each call.

    None if no tool was called.
    """
    listed: list[object] = []
    for each in messages:
        listed += list_in(each) or (each if check.is_list(each) else [])
    read = messages_in(listed[-MAX_TURNS:]) or []
    if not any(each.calls or each.results for each in read):
        return None
    exchanges = [*exchanges_in([*read, Message(ASSISTANT, "-")], tools)]
    found = exchanges[-1].retrievals if exchanges else []
    return [(each.query, [made for item in each.passages if (made := _document(item))]) for each in found]


def query_in(value: object) -> str | None:
    """Return the query in what a tool was given; None if there is none."""
    return query_of(value) or question_in(value)


def _document(item: object) -> dict[str, object]:
    """Return a document as a context; empty if it has neither text nor id."""
    if isinstance(item, str):
        return {"text": item}
    found = passage_of(item)
    known = names()["passage"]["id"]
    if not check.is_record(found):
        return {}
    if isinstance(found.get("text"), str):
        return {name: each for name, each in found.items() if name != "metadata" or check.is_record(each)}
    inner = found.get("document")
    name = first(inner if check.is_record(inner) else found, known)
    return {"id": name} if isinstance(name, str | int) and not isinstance(name, bool) else {}


def unfolded(value: object, depth: int = 0) -> object:
    """Return a value with the JSON in it as objects, and with a list for each object whose names are positions."""
    value = value if depth else held(value)
    if depth > _MAX_DEPTH or not (check.is_record(value) or check.is_list(value)):
        return value
    if items := items_of(value):
        return [unfolded(each, depth + 1) for each in items]
    return {name: unfolded(each, depth + 1) for name, each in value.items()} if check.is_record(value) else value
