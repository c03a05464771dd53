"""Texts and documents in the inputs and outputs of spans, which may be text, JSON, messages or objects of a library.

The names of attributes and keys are those of `spans.toml`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.attributes import first, items_of
from merilo.data import check
from merilo.data.aliases import text_in
from merilo.data.content import held, is_unreadable, names, passage_of, passages_in
from merilo.data.history import ASSISTANT, MAX_TURNS
from merilo.data.messages import Message, exchanges_in, list_in, messages_in, passages_returned, query_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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


_MAX_DEPTH: Final = 32


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
