"""Texts and documents in the inputs and outputs of spans, which may be text, JSON, messages or objects of a library.

The names of attributes and keys are those of `spans.toml`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.attributes import decoded, finite, first, items_of
from merilo.data import check
from merilo.data.history import ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
class DocumentKeys:
    """Keys of a retrieved document."""

    inside: _Names
    text: _Names
    id: _Names
    score: _Names
    metadata: _Names


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of JSON objects in inputs and outputs."""

    input: _Names
    output: _Names
    documents: _Names
    document: DocumentKeys


@dataclass(frozen=True, slots=True)
class Conventions:
    """The whole table."""

    names: SpanNames
    files: tuple[SpanFile, ...]
    keys: Keys
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
    keys = _frozen(table["keys"])
    return Conventions(
        names=SpanNames(kinds=kinds, message_events=events, **joined),
        files=tuple(SpanFile(**_frozen(row)) for row in table["files"]),
        keys=Keys(document=DocumentKeys(**keys.pop("document")), **keys),
        evaluation=table["evaluation"],
    )


def _frozen(value: Any) -> Any:  # Any: a value of TOML
    if check.is_record(value):
        return {name: _frozen(each) for name, each in value.items()}
    return tuple(map(_frozen, value)) if check.is_list(value) else value


_MAX_DEPTH: Final = 8
_PAIR: Final = 2  # a document and its score


def question_in(value: object) -> str | None:
    """Return the user's text in an input: the last message of the user, or the value of a known key."""
    return _text(value, "user", 0)


def answer_in(value: object) -> str | None:
    """Return the answer in an output: the last message of the assistant, or the value of a known key."""
    return _text(value, "assistant", 0)


def documents_in(value: object) -> list[dict[str, object]]:
    """Return the documents in a value as contexts: objects with `text`, `id`, `score` and `metadata` where known.

    A document without text keeps its id only; a value without documents gives an empty list.
    """
    return list(_documents(decoded(value), 0))


def _text(value: object, role: str, depth: int) -> str | None:
    if isinstance(value, str):
        inner = decoded(value)
        return value if isinstance(inner, str) else _text(inner, role, depth + 1) or value
    if depth > _MAX_DEPTH or value is None:
        return None
    if items := items_of(value):
        return _text_of_items(items, role, depth)
    if not check.is_record(value):
        return None
    if _role(value) is not None:
        return _content(value, depth) if _role(value) == role else None
    keys = conventions().keys
    for key in keys.input if role == "user" else keys.output:
        if (found := value.get(key)) is not None and (text := _text(found, role, depth + 1)) is not None:
            return text
    if len(value) == 1:
        return _text(next(iter(value.values())), role, depth + 1)
    return None


def _text_of_items(items: list[object], role: str, depth: int) -> str | None:
    """Return the text of the last message with a role; of the first item if the items are not messages."""
    messages = [item for each in items if check.is_record(item := _message(each)) and _role(item) is not None]
    if messages:
        texts = (_content(each, depth) for each in reversed(messages) if _role(each) == role)
        return next((text for text in texts if text), None)
    return _text(items[0], role, depth + 1)


def _message(item: object) -> object:
    """Return the message in an item: OpenInference has it under `message`, LangChain in `kwargs`, or as a pair."""
    if check.is_list(item) and len(item) == _PAIR and isinstance(item[0], str):
        return {"role": item[0], "content": item[1]}
    if not check.is_record(item):
        return item
    inner = item.get("message")
    if check.is_record(inner) and "role" not in item:
        return inner
    made, names = item.get("kwargs"), item.get("id")
    if check.is_record(made) and check.is_list(names) and names:
        return {"role": names[-1], **made}
    return item


def _role(message: object) -> str | None:
    """Return `user`, `assistant` or another role of a message; None if the value is not a message."""
    if not check.is_record(message) or not ({"content", "parts", "contents"} & message.keys()):
        return None
    named = message.get("role") or message.get("type")
    return ROLES.get(named.casefold(), named) if isinstance(named, str) else None


def _content(message: object, depth: int) -> str | None:
    """Return the text of a message: a string, or its parts that are text, joined."""
    if not check.is_record(message):
        return None
    found = first(message, ("parts", "content", "contents"))
    if isinstance(found, str):
        return found
    texts = [text for part in items_of(found) if (text := _part(part)) is not None]
    if texts:
        return "".join(texts)
    return _text(found, "user", depth + 1) if check.is_record(found) else None


def _part(part: object) -> str | None:
    if isinstance(part, str):
        return part
    if check.is_record(part) and check.is_record(inner := part.get("message_content")):
        part = inner
    if not check.is_record(part) or part.get("type", "text") != "text":
        return None
    found = first(part, ("text", "content"))
    return found if isinstance(found, str) else None


def _documents(value: object, depth: int) -> Iterable[dict[str, object]]:
    if depth > _MAX_DEPTH:
        return
    items = items_of(value)
    if items:
        for each in items:
            found = _document(decoded(each), 0)
            if found is not None:
                yield found
    elif check.is_record(value):
        for key in conventions().keys.documents:
            if (inner := decoded(value.get(key))) is not None and (items_of(inner) or check.is_record(inner)):
                yield from _documents(inner, depth + 1)
                return


def _document(item: object, depth: int) -> dict[str, object] | None:
    """Return a document as a context; None if it has neither text nor id."""
    if isinstance(item, str):
        return {"text": item}
    if check.is_list(item) and len(item) == _PAIR and not isinstance(item[0], str):
        found = _document(item[0], depth + 1)
        return _scored(found, item[1]) if found is not None else None
    if not check.is_record(item) or depth > _MAX_DEPTH:
        return None
    keys = conventions().keys.document
    for key in keys.inside:
        if check.is_record(inner := item.get(key)) and (found := _document(inner, depth + 1)) is not None:
            return _scored(found, first(item, keys.score))
    made: dict[str, object] = {}
    if isinstance(text := first(item, keys.text), str):
        made["text"] = text
    if isinstance(name := first(item, keys.id), str | int) and not isinstance(name, bool):
        made["id"] = name
    if not made:
        return None
    metadata = decoded(first(item, keys.metadata))
    if check.is_record(metadata):
        made["metadata"] = dict(metadata)
    return _scored(made, first(item, keys.score))


def _scored(document: dict[str, object], score: object) -> dict[str, object]:
    if not isinstance(score, bool) and finite(score) is not None:
        document["score"] = score
    return document
