"""Texts and documents in the inputs and outputs of spans, which may be text, JSON, messages or objects of a library.

The names of attributes and keys are those of `spans.toml`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.attributes import decoded, first, items_of
from merilo.data import check
from merilo.data.aliases import text_in
from merilo.data.content import is_unreadable, names, passage_of, passages_in
from merilo.data.history import ASSISTANT
from merilo.data.messages import Message, exchanges_in, list_in, messages_in, passages_returned

if TYPE_CHECKING:
    from collections.abc import Mapping

_Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpanNames:
    """Names of a span's attributes in all conventions, in the order of the table."""

    kind: _Names
    kinds: Mapping[str, str]
    """A kind in upper case → `retriever`, `reranker`, `llm`, `chain`, `agent`, or the kind itself in lower case."""
    input: _Names
    output: _Names
    input_messages: _Names
    output_messages: _Names
    documents: _Names
    reranked_from: _Names
    reranked_to: _Names
    query: _Names
    session: _Names
    response_id: _Names
    detail_events: _Names
    message_events: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanFile:
    """One kind of file of spans: how it is recognised, and the keys of its spans. `spans.toml` describes the fields."""

    name: str
    title: str
    package: str
    has: tuple[_Names, ...]
    trace: _Names
    span: _Names
    parent: _Names
    start: _Names
    end: _Names
    spans: _Names = ()
    root: _Names = ()
    children: str = ""
    kind: _Names = ()
    input: _Names = ()
    output: _Names = ()
    session: _Names = ()
    json_attributes: bool = False
    record_scores: str = ""
    span_scores: str = ""
    score_name: _Names = ()
    score_value: _Names = ()


@dataclass(frozen=True, slots=True)
class Conventions:
    """The whole table."""

    names: SpanNames
    files: tuple[SpanFile, ...]
    evaluation: Mapping[str, str]
    """The event with which results are written, and its attributes."""


@cache
def conventions() -> Conventions:
    """Return the table, read once."""
    table = tomllib.loads(files("merilo.adapters").joinpath("spans.toml").read_text("utf-8"))
    rows: list[dict[str, Any]] = list(table["conventions"].values())  # Any: values of TOML
    lists = {each.name for each in fields(SpanNames)} - {"kinds", "message_events"}
    joined = {name: tuple(each for row in rows for each in row.get(name, ())) for name in (*lists, "other_kinds")}
    kinds = {kind.upper(): kind.lower() for kind in joined.pop("other_kinds")}
    events: dict[str, str] = {}
    for row in rows:
        kinds.update({kind.upper(): ours for kind, ours in row.get("kinds", {}).items()})
        events.update(row.get("message_events", {}))
    return Conventions(
        names=SpanNames(kinds=kinds, message_events=events, **joined),
        files=tuple(SpanFile(**frozen(row)) for row in table["files"]),
        evaluation=table["evaluation"],
    )


def frozen(value: Any) -> Any:  # Any: a value of TOML
    """Return a value with tuples for its lists."""
    if check.is_record(value):
        return {name: frozen(each) for name, each in value.items()}
    return tuple(map(frozen, value)) if check.is_list(value) else value


_MAX_DEPTH: Final = 32


def question_in(value: object) -> str | None:
    """Return the user's text in an input: the last message of the user, or the value of a known key."""
    return _text(value, "user_input")


def answer_in(value: object) -> str | None:
    """Return the answer in an output: the last message of the assistant, or the value of a known key."""
    return _text(value, "response")


def _text(value: object, name: str) -> str | None:
    """Return the text of a field; a dump that cannot be understood is no text: another span may have the text."""
    inner = with_lists(decoded(value))
    if isinstance(inner, str):
        return None if is_unreadable(inner) else inner
    return text_in(inner, name)


def documents_in(value: object) -> list[dict[str, object]]:
    """Return the documents in a value as contexts: objects with `text`, `id`, `score` and `metadata` where known.

    A document without text keeps its id only; a value without documents gives an empty list.
    """
    inner = with_lists(decoded(value))
    items = passages_in(inner)
    if items is None:
        items = [*inner] if check.is_list(inner) else []
    return [found for item in items if (found := _document(item))]


def returned_in(value: object) -> list[dict[str, object]] | None:
    """Return the documents in what a tool returned, such as a message; None if it holds no passages."""
    inner = with_lists(decoded(value))
    read = messages_in([inner]) or ()
    results = [result.value for each in read for result in each.results] or [inner]
    passages = [item for each in results for item in passages_returned(each) or ()]
    return [found for item in passages if (found := _document(item))] or None


def retrieved_in(*messages: object) -> list[tuple[str, list[dict[str, object]]]]:
    """Return what tools retrieved in the last exchange of messages: the query and the documents of each call."""
    read: list[object] = []
    for each in messages:
        inner = with_lists(decoded(each))
        read += list_in(inner) or (inner if check.is_list(inner) else [])
    exchanges = [*exchanges_in([*(messages_in(read) or ()), Message(ASSISTANT, "-")])]
    found = exchanges[-1].retrievals if exchanges else []
    return [(each.query, [made for item in each.passages if (made := _document(item))]) for each in found]


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


def with_lists(value: object, depth: int = 0) -> object:
    """Return a tree with a list for each object whose names are positions."""
    if depth > _MAX_DEPTH or not (check.is_record(value) or check.is_list(value)):
        return value
    if items := items_of(value):
        return [with_lists(each, depth + 1) for each in items]
    return {name: with_lists(each, depth + 1) for name, each in value.items()} if check.is_record(value) else value
