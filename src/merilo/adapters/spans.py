"""The spans in a record of a trace file, reduced to what a sample needs.

Their inputs and outputs may be text, JSON, messages or objects of a library. The names of attributes and keys are those
of `spans.toml`. Attributes are read as a tree: dotted names, OTLP's typed values, and JSON in strings.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from merilo.data import check
from merilo.data.aliases import text_in
from merilo.data.content import held, is_unreadable, names, passage_of, passages_in
from merilo.data.history import ASSISTANT, MAX_TURNS
from merilo.data.messages import (
    Message,
    amounts_in,
    exchanges_in,
    kind_named,
    list_in,
    messages_in,
    passages_returned,
    query_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

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


_ID_BYTES: Final = (8, 16)
_HEX: Final = re.compile(r"(?:0x)?([0-9a-fA-F]{16}|[0-9a-fA-F]{32})")
_MAX_CHILDREN: Final = 64
"""Levels of runs within runs that are read."""
_NANOSECONDS: Final = 1_000_000_000
_MAX_TIME: Final = 1e19
"""Nanoseconds since 1970 of a span, or milliseconds, below which a number is a time."""
UNKNOWN: Final = "unknown"
RETRIEVAL: Final = frozenset({"retriever", "reranker"})


@dataclass(slots=True)
class Span:
    """One span of a trace; `start` and `end` are nanoseconds, 0 if unknown.

    `documents`: the documents that a retriever or reranker returned; None if it states none.
    `asked`: the last message of the user to an LLM. `replied`: the last message of the LLM.
    """

    trace: str
    id: str
    parent: str | None = None
    kind: str = UNKNOWN
    name: str = ""
    start: int = 0
    end: int = 0
    input: str | None = None
    output: str | None = None
    query: str | None = None
    asked: str | None = None
    replied: str | None = None
    documents: list[dict[str, Any]] | None = None  # Any: JSON
    reranked: list[dict[str, Any]] | None = None  # Any: JSON
    """The documents that a reranker was given; None if it states none."""
    called: list[tuple[str, list[dict[str, Any]]]] | None = None  # Any: JSON
    """Query and documents of what tools retrieved, by the messages of the span; None if they call no tool."""
    is_other: bool = False
    """True for a tool that is not among those that retrieve, so that nothing within it does."""
    input_tokens: float = 0
    output_tokens: float = 0
    session: str | None = None
    response_id: str | None = None
    scores: dict[str, float] = field(default_factory=dict[str, float])


def spans_in(record: Mapping[str, object], file: SpanFile, tools: Collection[str] | None = None) -> Iterator[Span]:
    """Yield the spans in a record of a file; what is not a span, or has no trace or span id, is skipped.

    `tools`: the names of the tools that retrieve; None: those whose results are passages.
    """
    scores = _scores(find(record, file.record_scores), file) if file.record_scores else {}
    trace = first(record, ("id", "trace.id")) if file.root else None
    for at in file.root:
        if check.is_record(found := find(record, at)) and (span := _root(found, file, tools)) is not None:
            span.scores = scores
            yield span
            scores = {}
            break
    for raw in _raw_spans(record, file):
        span = _span(raw, file, trace, tools)
        if span is not None:
            span.scores |= scores
            scores = {}
            yield span


def _root(trace: Mapping[str, object], file: SpanFile, tools: Collection[str] | None) -> Span | None:
    """Return a trace's own record as its root span, if it has an id and an input or an output."""
    if not isinstance(trace.get("id"), str) or not (trace.get("input") or trace.get("output")):
        return None
    return _span({**trace, "traceId": trace["id"], "type": "TRACE"}, file, None, tools)


def _raw_spans(record: Mapping[str, object], file: SpanFile) -> Iterator[Mapping[str, object]]:
    if not file.spans:
        yield from _with_children(record, file, 0)
        return
    for path in file.spans:
        found: list[object] = [record]
        for part in path.split("."):
            found = [
                each
                for node in found
                if check.is_record(node) and (below := node.get(part)) is not None
                for each in (below if check.is_list(below) else [below])
            ]
        yield from (each for each in found if check.is_record(each))


def _with_children(record: Mapping[str, object], file: SpanFile, depth: int) -> Iterator[Mapping[str, object]]:
    yield record
    if file.children and depth < _MAX_CHILDREN:
        for each in items_of(record.get(file.children)):
            if check.is_record(each):
                yield from _with_children(each, file, depth + 1)


def _span(raw: Mapping[str, object], file: SpanFile, trace: object, tools: Collection[str] | None) -> Span | None:
    held = {name: value for name, value in raw.items() if name not in ("attributes", "events", file.children)}
    tree = tree_of(held)
    own = otlp_attributes(raw.get("attributes"))
    if file.json_attributes:
        own = {name: decoded(value) for name, value in own.items()}
    if check.is_record(flat := tree.get("attributes")):
        own = {**flat, **own}
    names, keys = conventions().names, conventions().keys
    trace_id, span_id = _id(first(tree, keys["trace"]) or trace), _id(first(tree, keys["span"]))
    if trace_id is None or span_id is None:
        return None
    attributes = tree_of(own)
    events = _messages_in(raw.get("events"), attributes)

    def stated(part: str) -> object:
        found = first(tree, keys.get(part, ()))
        return unfolded(first(attributes, names.get(part, ())) if found is None else found)

    kind = str(first(attributes, names["kind"]) or first(tree, keys["kind"]) or UNKNOWN).lower()
    span = Span(
        trace=trace_id,
        id=span_id,
        parent=_id(stated("parent")),
        kind=conventions().kinds.get(kind, UNKNOWN),
        name=str(first(attributes, names["tool"]) or raw.get("name") or "")[:200],
        start=_time(stated("start")),
        end=_time(stated("end")),
        session=_id(first(attributes, names["session"]) or first(tree, file.session)),
        response_id=_id(stated("response_id")),
        scores=_means(find(raw, file.span_scores)) if file.span_scores else {},
        input_tokens=finite(decoded(stated("input_tokens"))) or 0,
        output_tokens=finite(decoded(stated("output_tokens"))) or 0,
    )
    if span.parent == span.id:  # a damaged span is not inside itself
        span.parent = None
    _fill(span, stated, events, tools)
    return span


def _fill(
    span: Span,
    stated: Callable[[str], object],
    events: tuple[list[object], list[object]],
    tools: Collection[str] | None,
) -> None:
    given, made = stated("input"), stated("output")
    asked, replied = stated("input_messages") or events[0], stated("output_messages") or events[1]
    span.input, span.output = question_in(given), answer_in(made)
    query = stated("query")
    span.query = query if isinstance(query, str) else None
    if span.kind in RETRIEVAL:
        documents = stated("documents" if span.kind == "retriever" else "reranked_to")
        span.documents = _documents(made if documents is None else documents)
        span.reranked = _documents(stated("reranked_from") or given)
        span.query = span.query or span.input
        return
    if span.kind == "tool":
        says = kind_named(span.name) == ASSISTANT  # smolagents answers by a tool
        span.is_other = says if tools is None else span.name not in tools
        span.output = None if says else span.output
        span.documents = None if span.is_other else returned_in(made, is_named=tools is not None)
        span.query = span.query or query_in(given)
    else:
        # an agent's output repeats its input
        span.called = called_in(replied or made, tools=tools) or called_in(asked or given, replied or made, tools=tools)
        if not span.input_tokens and not span.output_tokens and span.kind == "llm":
            used = amounts_in(made, anywhere=True)
            span.input_tokens = finite(used.get("input_tokens")) or 0
            span.output_tokens = finite(used.get("output_tokens")) or 0
    span.asked, span.replied = question_in(asked), answer_in(replied)


def _documents(value: object) -> list[dict[str, object]] | None:
    """Return the documents in a value; None if it states none, an empty list if it is an empty list."""
    found = documents_in(value)
    return found if found or value == [] else None


def _messages_in(events: object, attributes: Tree) -> tuple[list[object], list[object]]:
    """Return the messages to an LLM and from it that events state; other events add to the attributes."""
    asked: list[object] = []
    replied: list[object] = []
    for event in items_of(events):
        if not check.is_record(event):
            continue
        name, own = str(event.get("name")), tree_of(otlp_attributes(event.get("attributes")))
        if name in conventions().names["detail_events"]:
            merge(attributes, own)
        elif (role := conventions().message_events.get(name)) is not None:
            message = held(own.get("message")) or own
            content = first(message, ("content", "message"))
            (replied if role == "assistant" else asked).append({"role": role, "content": content})
    return asked, replied


def _scores(found: object, file: SpanFile) -> dict[str, float]:
    """Return the numbers in a list of scores by name; a later one of a name replaces an earlier one."""
    scores: dict[str, float] = {}
    for each in items_of(found):
        name, value = first(each, file.score_name), finite(first(each, file.score_value))
        if isinstance(name, str) and value is not None:
            scores[name] = value
    return scores


def _means(found: object) -> dict[str, float]:
    """Return the mean of each kind of feedback."""
    if not check.is_record(found):
        return {}
    means = {name: finite(find(each, "avg")) for name, each in found.items()}
    return {name: value for name, value in means.items() if value is not None}


def _id(value: object) -> str | None:
    """Return an id as text: hexadecimal ids in lower case; base64 ones, as protobuf writes them, as hexadecimal."""
    if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
        return None
    text = str(value)
    if found := _HEX.fullmatch(text):
        return found[1].lower()
    if text.endswith("=") and len(text) <= 24:
        try:
            raw = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error):
            return text
        return raw.hex() if len(raw) in _ID_BYTES else text
    return text


def _time(value: object) -> int:
    """Return nanoseconds since 1970 of a number of nanoseconds or milliseconds, or an ISO time; 0 if it is neither."""
    if isinstance(value, int | float):
        if finite(value) is None:
            return 0
        if not 0 <= value < _MAX_TIME:
            return 0
        return int(value) if value > 1e15 else int(value * 1_000_000)
    if not isinstance(value, str):
        return 0
    if value.isdecimal() and len(value) < 25:
        return _time(int(value))
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return 0
    since = (found if found.tzinfo else found.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * _NANOSECONDS + since.microseconds * 1_000
