"""Records as chains, query engines and pipelines return them, and as one object holds them.

Four forms need more than the names of columns: a result inside a record, documents under any name, the output of a
Haystack pipeline, which is one dict for each component, and one JSON object that holds several records: a list under a
key, columns of values, or records by their ids.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from merilo.data import check
from merilo.data.aliases import LIST_FIELDS, TEXT_FIELDS, aliases, text_in
from merilo.data.content import held, is_prose, names, passage_of, passages_in
from merilo.data.messages import answer_in, are_messages, messages_in
from merilo.data.objects import Role, plain, role_of
from merilo.data.sample import FIELDS
from merilo.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from merilo.data.aliases import Planner

_CONTEXTS: Final = "retrieved_contexts"
_OUTPUTS: Final = frozenset({"documents", "replies", "answers"})
"""Outputs of the components of a Haystack pipeline that belong to a sample."""
_MAX_INNER: Final = 200
_MAX_INNER_DEPTH: Final = 5
_ANSWER: Final = {"query": "user_input", "data": "response", "documents": _CONTEXTS}


@dataclass(frozen=True, slots=True)
class PlainRecord:
    """A record without objects of other packages, and the columns that were read under another name."""

    value: dict[str, object]
    renamed: dict[str, str] = field(default_factory=dict[str, str])


def plain_record(given: object, mapped: Mapping[str, str]) -> PlainRecord | None:
    """Return a record in memory with plain values; None if it is neither a mapping nor an object with fields.

    `mapped`: the columns that the user named, which keep their names. Raises DataError for an ambiguous result.
    """
    if role_of(given) is Role.CONTEXT:
        advice = 'put the documents of one question in a record: {"user_input": ..., "retrieved_contexts": documents}'
        raise DataError.of(Problem("a record with a question or an answer", "a document", advice=advice))
    record = given if check.is_record(given) else plain(given)
    if not check.is_record(record):
        return None
    if _is_pipeline_output(record):
        return PlainRecord(_of_components(record))
    renamed: dict[str, str] = {}
    found: dict[str, object] = {}
    inner: dict[str, object] = {}
    for name, value in record.items():
        if isinstance(value, str):  # nearly all values
            found[name] = value
        elif name in names()["message"]["list"] and name not in mapped and are_messages(value):
            found[name] = messages_in(value) if _has_objects(value) else value
        elif name not in mapped and role_of(value) is Role.RESULT:
            inner |= _fields_of_result(value)
        elif name not in mapped and _are_documents(value) and not _fills_contexts(name, record):
            renamed[name] = _CONTEXTS
            found[_CONTEXTS] = plain(value)
        else:
            found[name] = plain(value)
    if len(renamed) > 1:
        raise DataError.of(_several("columns", list(renamed)))
    filled = {aliases().fields.get(name) for name in found} if inner else set[str | None]()
    found |= {name: value for name, value in inner.items() if aliases().fields.get(name, name) not in filled}
    return PlainRecord(found, renamed)


def _fields_of_result(value: object) -> Mapping[str, object]:
    """Return the fields of a sample in a result of a chain or an agent, but not the question of an agent."""
    fields = plain(value)
    if not check.is_record(fields) or _MESSAGES not in fields:
        return fields if check.is_record(fields) else {}
    return {key: each for key, each in answer_in(fields[_MESSAGES]).items() if key != "user_input"}


def _has_objects(value: object) -> bool:
    return check.is_list(value) and not all(check.is_record(each) or check.is_list(each) for each in value)


def inner_columns(records: Sequence[Mapping[str, object]], planner: Planner) -> dict[str, str]:
    """Return path → field for fields that no column fills: the only value within the records that has their name.

    The retrieved contexts are also the only list of passages under any name that does not mean something else. A
    response among expected values is a reference.
    """
    found: dict[str, dict[str, None]] = {}
    lists: dict[str, None] = {}
    filled: set[str] = set()
    for record in records:
        fields = planner.plan(record).fields
        filled |= {name for name, _ in fields}
        used = {column: name for name, sources in fields for each in sources for column in each.columns}
        for path, value in _within(record, {column for column, name in used.items() if name in LIST_FIELDS}):
            is_expected = _has_word(path, "expected")
            is_free = path not in used and path != "metadata" and not is_expected
            is_free = is_free and not _has_word(path.rpartition(".")[2], "other")
            if (
                is_free
                and not any(path.startswith((f"{each}.", f"{each}[")) for each in lists)
                and _are_passages(value)
            ):
                lists[path] = None
            for name, (source, *_) in (
                planner.plan(value).fields if check.is_record(value) and len(value) <= _MAX_INNER else ()
            ):
                inner = value.get(source.columns[0])
                if name in LIST_FIELDS or (name in TEXT_FIELDS and (isinstance(inner, str) or text_in(inner, name))):
                    own = "reference" if is_expected and name == "response" else name
                    found.setdefault(own, {})[f"{path}.{source.columns[0]}"] = None
    known = {path: None for path in lists if path.rpartition(".")[2] in names()["around"]["lists"]}
    found.setdefault(_CONTEXTS, known if len(lists) > 1 else lists)
    least = {name: min((path.count(".") for path in paths), default=0) for name, paths in found.items()}
    nearest = {name: [path for path in paths if path.count(".") == least[name]] for name, paths in found.items()}
    return {paths[0]: name for name, paths in nearest.items() if len(paths) == 1 and name not in filled}


def _within(record: Mapping[str, object], used: Collection[str]) -> Iterator[tuple[str, object]]:
    """Yield the values at the paths of a record, not below the columns `used`: those nearest to it first.

    Columns whose names begin alike up to a point, such as `inputs.query`, are one object, too.
    """
    dotted: dict[str, dict[str, object]] = {}
    for name, value in record.items():
        prefix, _, last = name.rpartition(".")
        dotted.setdefault(prefix, {})[last] = value
    calls = {"tool_calls", "function_call"}
    waiting = deque((name, value, 0) for name, value in {**record, **dotted}.items() if name not in {*used, *calls, ""})
    for _ in range(_MAX_INNER):
        if not waiting:
            break
        path, given, depth = waiting.popleft()
        value = held(given)
        yield path, value
        if check.is_list(value) and len(value) == 1:
            path, value = f"{path}[0]", value[0]
        if check.is_record(value) and depth < _MAX_INNER_DEPTH:
            inner = ((key, each) for key, each in islice(value.items(), _MAX_INNER) if key not in calls)
            waiting.extend((f"{path}.{key}", each, depth + 1) for key, each in inner)


def _has_word(path: str, kind: str) -> bool:
    """Return True if a name in a path has a word of a kind."""
    return not aliases().words[kind].isdisjoint(re.split(r"[\W_]+", path.lower()))


def _are_passages(value: object) -> bool:
    """Return True for a list of objects with texts of several words, or what holds only one."""
    if check.is_list(value) and (are_messages(value) or not value or isinstance(value[0], str)):
        return False
    found = passages_in(value) if check.is_list(value) or check.is_record(value) else None
    first = passage_of(found[0]) if found and found[0] is not value else None
    return check.is_record(first) and isinstance(text := first.get("text"), str) and is_prose(text)


def _are_documents(value: object) -> bool:
    """Return True for a list of documents or nodes, each alone or with its score."""
    if not check.is_list(value) or not value:
        return False
    first = value[0]
    return role_of(first[0] if check.is_list(first) and first else first) is Role.CONTEXT


def _fills_contexts(name: str, record: Mapping[str, object]) -> bool:
    """Return True if a column of documents has a meaning by its name, or another column holds the retrieved ones."""
    targets = aliases().fields
    if name != "context" and targets.get(name, "").endswith("_contexts"):
        return True
    return any(targets.get(other) == _CONTEXTS for other in record)


def _is_pipeline_output(record: Mapping[str, object]) -> bool:
    if not all(isinstance(each, dict) for each in record.values()):
        return False
    return any(check.is_record(each) and not _OUTPUTS.isdisjoint(each) for each in record.values())


def _of_components(record: Mapping[str, object]) -> dict[str, object]:
    """Return the fields in the output of a pipeline: its answer, otherwise its reply, and its documents."""
    parts = {name: part for name, part in record.items() if check.is_record(part)}
    answers = _only(parts, "answers", "answer builders")
    documents = _only(parts, "documents", "components with documents") if answers is None else None
    found: dict[str, object] = {}
    if check.is_list(answers) and answers:
        answer = plain(answers[0])
        fields = answer.items() if check.is_record(answer) else ()
        found = {_ANSWER.get(name, name): value for name, value in fields if name != "meta"}
    elif check.is_list(replies := plain(_only(parts, "replies", "generators"))) and replies:
        found["response"] = replies[0] if isinstance(replies[0], str) else text_in(replies[0], "response")
    if documents is not None:
        found[_CONTEXTS] = plain(documents)
    return {name: value for name, value in found.items() if value is not None}


def _only(parts: Mapping[str, Mapping[str, object]], key: str, what: str) -> object:
    """Return the value under a key that at most one component has, or that all that have it agree on."""
    found = {name: part[key] for name, part in parts.items() if key in part}
    values = [*found.values()]
    if any(value != values[0] for value in values[1:]):
        raise DataError.of(_several(what, list(found)))
    return values[0] if values else None


def _several(what: str, names: list[str]) -> Problem:
    advice = "keep one in the record, or wrap the pipeline in a function that returns the fields of a sample"
    return Problem("one list of documents or one answer", f"several {what}: {', '.join(names)}", advice=advice)


WRAPPERS: Final = ("samples", "data", "rows")
"""Keys whose array holds the records, whatever the other keys hold."""
_MESSAGES: Final = "messages"
NEEDED: Final = "an array of objects, or an object that contains one as 'samples', 'data' or 'rows'"
_ADVICE: Final = "write the records as an array, or as JSON Lines with one object per line"


def records_in(
    value: Mapping[str, object], choose: str = "write one of them to another file"
) -> list[Mapping[str, object]]:
    """Return the records that an object holds in one of the forms that tools write. `choose`: advice for several lists.

    An object that fills a field and another, or one that its inner records fill, too, is the record itself; what else
    it fills belongs to each of its records.

    Raises DataError for several lists of records, for columns of different lengths and for anything else.
    """
    talks = [name for name in names()["message"]["list"] if check.is_list(value.get(name)) and value[name]]
    known = {name: field for name in value if (field := aliases().field_of(name)) in FIELDS and name not in talks}
    is_one = any(_is_text(value[name], field) for name, field in known.items())
    listed = {name: items for name in value if name not in {*known, *talks} and (items := _objects(value[name]))}
    records = {name: items for name, items in listed.items() if name in WRAPPERS}
    records = records or {name: items for name, items in listed.items() if any(map(_is_record, items))}
    records = records or ({} if is_one or talks else listed)
    if check.is_list(header := value.get("columns")) and check.is_list(rows := value.get("data")):  # pandas: split
        return [dict(zip(map(str, header), row, strict=False)) for row in rows if check.is_list(row)]
    of_items = {aliases().field_of(key) for items in records.values() for item in items for key in item}
    own = {field for key, field in known.items() if not check.is_missing(value[key])}
    if is_one and records.keys().isdisjoint(WRAPPERS) and (len(own) > 1 or own & of_items):
        return [value]
    if len(records) > 1:
        named = ", ".join(f"{name!r} ({len(items):,})" for name, items in records.items())
        raise DataError.of(Problem("one list of records", f"several: {named}", advice=choose))
    if records:
        shared = {key: each for key, each in value.items() if key in known and known[key] not in of_items}
        return [{**shared, **item} for items in records.values() for item in items]
    if is_one or talks:
        return [value]
    if (
        columns := {name: [*items] for name, items in value.items() if check.is_list(items)}
    ) and known.keys() & columns:
        return _of_columns(value, columns, known)
    rows_by_id = {name: item for name, item in value.items() if check.is_record(item)}
    if value and len(rows_by_id) == len(value):
        keys = [*next(iter(rows_by_id.values()))]
        if known and all(
            [*item] == keys for item in rows_by_id.values()
        ):  # pandas: each column by the names of its rows
            return [{name: item[key] for name, item in rows_by_id.items()} for key in keys]
        if all(_is_record(item) for item in rows_by_id.values()):
            return [item if "id" in item else {"id": name, **item} for name, item in rows_by_id.items()]
    if any(map(_is_record, rows_by_id.values())):
        return [value]
    raise DataError.of(Problem(NEEDED, check.shown(value), advice=_ADVICE))


def _of_columns(
    value: Mapping[str, object], columns: Mapping[str, list[object]], known: Mapping[str, str]
) -> list[Mapping[str, object]]:
    """Return one record for each position in lists of equal length; any other value belongs to each record."""
    if not any(known.get(name) in TEXT_FIELDS for name in columns):
        got = f"lists in {', '.join(map(repr, columns))} alone, which may be one record or columns of several"
        raise DataError.of(Problem("a column of questions or answers", got, advice=_ADVICE))
    lengths = {name: len(items) for name, items in columns.items()}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{name!r} ({number:,})" for name, number in lengths.items())
        raise DataError.of(Problem("columns of equal length", got))
    rest = {name: item for name, item in value.items() if name not in columns}
    return [{**rest, **dict(zip(columns, items, strict=True))} for items in zip(*columns.values(), strict=True)]


def _is_text(value: object, field: str) -> bool:
    is_read = isinstance(value, str) or are_messages(value) or (check.is_record(value) and text_in(value, field))
    return field in TEXT_FIELDS and bool(is_read)


def _objects(value: object) -> list[Mapping[str, object]]:
    """Return the items of a list of objects; an empty list for any other value."""
    return [each for each in value if check.is_record(each)] if check.is_list(value) and value else []


def _is_record(item: object) -> bool:
    """Return True for an object with a field of a sample, which a context or a message has not."""
    return check.is_record(item) and any(aliases().field_of(name) in FIELDS for name in item)
