"""Objects of other packages as plain values: documents, results of a chain, models, arrays, dates.

A type is recognised by the names of its package and class, never imported: a caller who passes such an object has
imported it already. `READERS` has one row for each type that needs more than its fields.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from merilo.data import check
from merilo.data.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

AS_IS: Final[set[type]] = {str, int, bool, float, type(None), Context}
_MAX_DEPTH: Final = 40
_MAX_TYPES: Final = 1000  # a program that makes classes must not fill the memory
_SCORES: Final = ("relevance_score", "score")
"""Where retrievers of LangChain put the score of a document in its metadata."""


class Role(StrEnum):
    """What an object of another package is in a sample."""

    TEXT = "text"
    CONTEXT = "context"
    RESULT = "result"


@dataclass(frozen=True, slots=True)
class Reader:
    """The role of a type, and the function from its instance to a plain value."""

    role: Role
    read: Callable[[Any], object]  # Any: an instance of a class that is not imported


def role_of(value: object) -> Role | None:
    """Return the role of an object of a known type; None for any other value."""
    reader = None if type(value) in AS_IS else _reader(type(value))
    return None if reader is None else reader.role


def plain(value: object, depth: int = 0) -> object:
    """Return a value with each object of another package replaced by texts, numbers, lists and dicts.

    A value of an unknown type is returned as it is, and so is one without such objects. A missing value becomes None.
    """
    kind = type(value)
    if kind in AS_IS or depth > _MAX_DEPTH:
        return value
    if kind is dict or kind is list or kind is tuple:
        return _plain_container(value, depth)
    if check.is_missing(value):
        return None
    if (reader := _reader(kind)) is not None:
        return plain(reader.read(value), depth + 1)
    found = _simple(value)
    return value if found is value else plain(found, depth + 1)


def _plain_container(value: object, depth: int) -> object:
    if check.is_mapping(value):
        values = {key: plain(item, depth + 1) for key, item in value.items()}
        return values if any(values[key] is not item for key, item in value.items()) else value
    if check.is_list(value):
        if len(value) == 2 and role_of(value[0]) is Role.CONTEXT and isinstance(value[1], (int, float)):
            found = plain(value[0], depth + 1)
            return {**found, "score": float(value[1])} if check.is_record(found) else found
        if len(value) == 1 and role_of(value[0]) is Role.RESULT:
            return plain(value[0], depth + 1)
        if all(type(item) is str for item in value):  # nearly all lists
            return value
        items = [plain(item, depth + 1) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _simple(value: object) -> object:
    """Return a value of a standard or array type as a plain one; the value itself if its type is unknown."""
    match value:
        case Enum():
            return value.value
        case date() | time():
            return value.isoformat()
        case UUID() | PurePath():
            return str(value)
        case Decimal():
            return float(value)
        case str() | int() | float():
            return value
        case _:
            return {**value} if check.is_record(value) else _array_or_fields(value)


def _array_or_fields(value: object) -> object:
    package = type(value).__module__.partition(".")[0]
    is_array = package in {"array", "numpy", "pandas", "polars", "pyarrow"}
    if is_array or (not isinstance(value, type) and hasattr(value, "__array__")):
        for method in ("tolist", "to_list", "as_py"):  # numpy and pandas, polars, pyarrow
            if callable(found := getattr(value, method, None)):
                return found()
    return dict(_fields(value)) or value


def _fields(value: object) -> Iterator[tuple[str, object]]:
    """Yield the public fields of an instance of pydantic, dataclasses, attrs or a named tuple; none for others."""
    kind: Any = type(value)  # Any: its attributes are those of a package that is not imported
    names: Iterable[str] = getattr(kind, "__fields__", ()) if not hasattr(kind, "model_fields") else ()  # pydantic 1
    if dataclasses.is_dataclass(value):
        names = [each.name for each in dataclasses.fields(value)]
    elif hasattr(kind, "model_fields"):
        names = [*kind.model_fields, *(getattr(value, "model_extra", None) or ())]
    elif hasattr(kind, "__attrs_attrs__"):
        names = [each.name for each in kind.__attrs_attrs__]
    elif tuple in kind.__mro__:
        names = getattr(kind, "_fields", ())
    for name in names:
        if not name.startswith("_"):
            yield name, getattr(value, name, None)


def _reader(kind: type) -> Reader | None:
    """Return the row of a class or of its first known base; None if there is none."""
    if kind not in _FOUND:
        if len(_FOUND) > _MAX_TYPES:
            _FOUND.clear()
        names = ((base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__)
        _FOUND[kind] = next((READERS[name] for name in names if name in READERS), None)
    return _FOUND[kind]


def _langchain_document(value: Any) -> object:
    own = dict(value.metadata or {})
    scores = [own[name] for name in _SCORES if isinstance(own.get(name), (int, float))]
    return _context(value.page_content, getattr(value, "id", None), next(iter(scores), None), own)


def _llamaindex_scored(value: Any) -> object:
    found = plain(value.node)
    return {**found, "score": value.score} if check.is_record(found) and value.score is not None else found


def _llamaindex_response(value: Any) -> object:
    response = value.response if hasattr(value, "response") else str(value)  # reads a streaming response completely
    text = response if response is None or isinstance(response, str) else str(response)
    return {"response": text, "retrieved_contexts": list(value.source_nodes)}


def _haystack_answer(value: Any) -> object:
    documents = value.documents if hasattr(value, "documents") else [value.document]
    return {"user_input": value.query, "response": value.data, "retrieved_contexts": [d for d in documents or () if d]}


def _dspy_example(value: Any) -> object:
    names = {"context": "retrieved_contexts", "passages": "retrieved_contexts"}
    found = {names.get(name, name): item for name, item in value.items()}
    contexts = found.get("retrieved_contexts")
    return {**found, "retrieved_contexts": [contexts]} if isinstance(contexts, str) else found


def _context(text: object, id: object, score: object, metadata: dict[str, object]) -> dict[str, object]:
    found = {"text": text, "id": id, "score": score, "metadata": metadata or None}
    return {name: value for name, value in found.items() if value is not None or name == "text"}


READERS: Final[dict[tuple[str, str], Reader]] = {
    ("langchain_core", "Document"): Reader(Role.CONTEXT, _langchain_document),
    ("llama_index", "NodeWithScore"): Reader(Role.CONTEXT, _llamaindex_scored),
    ("llama_index", "BaseNode"): Reader(
        Role.CONTEXT, lambda node: _context(node.get_content(), node.node_id, None, dict(node.metadata or {}))
    ),
    ("llama_index", "Response"): Reader(Role.RESULT, _llamaindex_response),
    ("llama_index", "PydanticResponse"): Reader(Role.RESULT, _llamaindex_response),
    ("llama_index", "StreamingResponse"): Reader(Role.RESULT, _llamaindex_response),
    ("haystack", "Document"): Reader(
        Role.CONTEXT, lambda found: _context(found.content, found.id, found.score, dict(found.meta or {}))
    ),
    ("haystack", "ChatMessage"): Reader(Role.TEXT, lambda value: value.text),
    ("haystack", "GeneratedAnswer"): Reader(Role.RESULT, _haystack_answer),
    ("haystack", "ExtractedAnswer"): Reader(Role.RESULT, _haystack_answer),
    ("dspy", "Example"): Reader(Role.RESULT, _dspy_example),  # a Prediction too
}

_FOUND: Final[dict[type, Reader | None]] = {}
