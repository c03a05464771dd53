"""The spans in a record of a trace file, reduced to what a sample needs."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.contents import (
    answer_in,
    called_in,
    conventions,
    decoded,
    documents_in,
    find,
    finite,
    first,
    items_of,
    merge,
    otlp_attributes,
    query_in,
    question_in,
    returned_in,
    tree_of,
    unfolded,
)
from merilo.data import check
from merilo.data.content import held
from merilo.data.history import ASSISTANT
from merilo.data.messages import amounts_in, kind_named

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from merilo.adapters.contents import SpanFile, Tree

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
