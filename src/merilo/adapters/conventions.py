"""The names of attributes and keys in traces, read from `spans.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from merilo.data import check

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
    roles: Mapping[str, str]
    document: DocumentKeys


@dataclass(frozen=True, slots=True)
class Conventions:
    """The whole table; `checked` names each convention's package and the version in which its names were checked."""

    schema: int
    names: SpanNames
    files: tuple[SpanFile, ...]
    keys: Keys
    evaluation: Mapping[str, str]
    """The event with which results are written, and its attributes."""
    checked: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def conventions() -> Conventions:
    """Return the table, read once."""
    table = tomllib.loads(files("merilo.adapters").joinpath("spans.toml").read_text("utf-8"))
    rows: list[dict[str, Any]] = list(table["conventions"].values())  # Any: values of TOML
    keys = table["keys"]
    return Conventions(
        schema=table["schema"],
        names=_span_names(rows),
        files=tuple(SpanFile(**{key: _frozen(value) for key, value in row.items()}) for row in table["files"]),
        keys=Keys(
            input=tuple(keys["input"]),
            output=tuple(keys["output"]),
            documents=tuple(keys["documents"]),
            roles=keys["roles"],
            document=DocumentKeys(**{key: tuple(value) for key, value in keys["document"].items()}),
        ),
        evaluation=table["evaluation"],
        checked={name: f"{row['package']} {row['version']}" for name, row in table["conventions"].items()},
    )


def _span_names(rows: list[dict[str, Any]]) -> SpanNames:  # Any: values of TOML
    def joined(name: str) -> _Names:
        return tuple(each for row in rows for each in row.get(name, ()))

    kinds = {kind.upper(): kind.lower() for kind in joined("other_kinds")}
    events: dict[str, str] = {}
    for row in rows:
        kinds.update({kind.upper(): ours for kind, ours in row.get("kinds", {}).items()})
        events.update(row.get("message_events", {}))
    lists = ("input", "output", "input_messages", "output_messages", "documents", "reranked_from", "reranked_to")
    more = ("kind", "query", "session", "response_id", "detail_events")
    return SpanNames(kinds=kinds, message_events=events, **{name: joined(name) for name in (*lists, *more)})


def _frozen(value: Any) -> Any:  # Any: a value of TOML
    return tuple(_frozen(each) for each in value) if check.is_list(value) else value
