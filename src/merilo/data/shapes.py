"""Records as chains, query engines and pipelines return them, and as one object holds them.

What no column of a record fills may be within one of them: in a result, in an output, under the names of components.
One object may hold several records: a list under a key, columns of values, or records by their ids. A table may have
one row for each context of a question.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import chain, groupby, islice, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data import check
from merilo.data.aliases import LIST_FIELDS, TEXT_FIELDS, Planner, aliases, text_in
from merilo.data.content import MAX_KEY, held, is_prose, names, passage_of, passages_in
from merilo.data.context import MAX_CONTEXTS
from merilo.data.lines import RawRecord
from merilo.data.messages import answer_in, are_messages, messages_in
from merilo.data.objects import Role, plain, role_of
from merilo.data.sample import FIELDS, NUGGETS, Sample
from merilo.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence


_CONTEXTS: Final = "retrieved_contexts"
_OWN: Final = frozenset({"metadata", "tools", NUGGETS, "qrels", "span_labels"})
"""Columns that merilo reads itself; `tools`: what tools returned that do not retrieve."""
_CALLS: Final = frozenset({"tool_calls", "function_call"})
_MAX_INNER: Final = 200
_MAX_INNER_DEPTH: Final = 5


def plain_record(given: object) -> dict[str, object] | None:
    """Return a record in memory with plain values; None if it is neither a mapping nor an object with fields.

    Raises DataError for a document.
    """
    if role_of(given) is Role.CONTEXT:
        advice = 'put the documents of one question in a record: {"user_input": ..., "retrieved_contexts": documents}'
        raise DataError.of(Problem("a record with a question or an answer", "a document", advice=advice))
    record = given if check.is_record(given) else plain(given)
    if not check.is_record(record):
        return None
    return {name: value if isinstance(value, str) else _plain(name, value) for name, value in record.items()}


def _plain(name: str, value: object) -> object:
    """Return the value of a column; a result of an agent as the fields of its last answer, without the question."""
    if name in names()["message"]["list"] and are_messages(value):
        has_objects = check.is_list(value) and not all(check.is_record(each) or check.is_list(each) for each in value)
        return messages_in(value) if has_objects else value
    found = plain(value)
    if role_of(value) is Role.RESULT and check.is_record(found) and _MESSAGES in found:
        return {key: each for key, each in answer_in(found[_MESSAGES]).items() if key != "user_input"}
    return found


def inner_columns(records: Sequence[Mapping[str, object]], planner: Planner) -> dict[str, str]:
    """Return path → field for fields that no column fills: the only value within the records that has their name.

    The retrieved contexts are also the only list of passages under any name that does not mean something else. A
    response among expected values is a reference.
    """
    found: dict[str, dict[str, None]] = {}
    lists: dict[str, None] = {}
    filled: set[str] = set()
    has_inner = any(_has_inner(name, each) for record in records for name, each in record.items())
    for record in records if has_inner else ():
        fields = planner.plan(record).fields
        filled |= {name for name, _ in fields}
        used = {column: name for name, sources in fields for each in sources for column in each.columns}
        # An answer is not looked into, since it would supply its own contexts.
        read = {
            column
            for column, name in used.items()
            if name in LIST_FIELDS or (name in {"response", "reference"} and isinstance(record.get(column), str))
        }
        for path, value in within(record, read | _OWN - {"metadata"}):
            is_expected = _has_word(path, "expected")
            is_known = (
                is_expected
                or path in used
                or path.rpartition(".")[2] in _OWN
                or _has_word(path.rpartition(".")[2], "other")
            )
            if not (is_known or path.startswith(tuple(f"{each}{sign}" for each in lists for sign in ".["))):
                lists |= {path: None} if _are_passages(value) else {}
            for name, column in _fields_in(value, planner):
                own = "reference" if is_expected and name == "response" else name
                found.setdefault(own, {})[f"{path}.{column}"] = None
    known = {path: None for path in lists if path.rpartition(".")[2] in names()["around"]["lists"]}
    found.setdefault(_CONTEXTS, known if len(lists) > 1 else lists)
    least = {name: min((path.count(".") for path in paths), default=0) for name, paths in found.items()}
    nearest = {name: [path for path in paths if path.count(".") == least[name]] for name, paths in found.items()}
    return {paths[0]: name for name, paths in nearest.items() if len(paths) == 1 and name not in filled}


def _has_inner(name: str, value: object) -> bool:
    """Return True for a column that may hold fields, which plain texts and lists of texts do not."""
    if isinstance(value, str):
        return "." in name or value[:1] in ("{", "[")
    return value is not None and not (check.is_list(value) and (not value or isinstance(value[0], str)))


def _fields_in(value: object, planner: Planner) -> Iterator[tuple[str, str]]:
    """Yield the fields that the keys of an object fill, each with its key."""
    for name, (source, *_) in planner.plan(value).fields if check.is_record(value) and len(value) <= _MAX_INNER else ():
        inner = value[source.columns[0]] if check.is_record(value) else None
        is_list = check.is_list(inner) or check.is_record(inner) or isinstance(inner, str)
        if (name in LIST_FIELDS and is_list) or (
            name in TEXT_FIELDS and (isinstance(inner, str) or text_in(inner, name))
        ):
            yield name, source.columns[0]


def within(record: Mapping[str, object], used: Collection[str] = ()) -> Iterator[tuple[str, object]]:
    """Yield the objects and lists at the paths of a record, not below the columns `used`: those nearest to it first.

    Columns whose names begin alike up to a point, such as `inputs.query`, are one object, too.
    """
    dotted: dict[str, object] = {}
    for prefix, names_of in groupby(
        sorted(name for name in record if "." in name), lambda name: name.rpartition(".")[0]
    ):
        dotted[prefix] = {name.rpartition(".")[2]: record[name] for name in names_of}
    waiting = deque((name, value, 0) for name, value in {**record, **dotted}.items() if name not in used)
    for _ in range(_MAX_INNER):
        if not waiting:
            break
        path, given, depth = waiting.popleft()
        value = held(given)
        if path.rpartition(".")[2] in _CALLS or not (check.is_record(value) or check.is_list(value)):
            continue
        yield path, value
        if check.is_list(value) and len(value) == 1:
            path, value = f"{path}[0]", value[0]
        if check.is_record(value) and depth < _MAX_INNER_DEPTH:
            inner = islice(value.items(), _MAX_INNER)
            waiting.extend((f"{path}.{key}", each, depth + 1) for key, each in inner if len(key) <= MAX_KEY)


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
    if len(value) > check.MAX_COLUMNS and not check.is_record(next(iter(value.values()))):
        raise DataError.of(Problem(NEEDED, check.shown(value), advice=_ADVICE))
    known = {name: field for name in value if (field := aliases().field_of(name)) in FIELDS and name not in talks}
    is_one = bool(talks) or any(_is_text(value[name], field) for name, field in known.items())
    if check.is_list(header := value.get("columns")) and check.is_list(rows := value.get("data")):  # pandas: split
        return [dict(zip(map(str, header), row, strict=False)) for row in rows if check.is_list(row)]
    lists = {name: each for name, each in value.items() if name not in {*known, *talks} and check.is_list(each)}
    found = {name: [item for item in items if check.is_record(item)] for name, items in lists.items()}
    listed = {name: items for name, items in found.items() if items}
    needed = TEXT_FIELDS if is_one else frozenset(FIELDS)  # passages are not records
    records = {name: items for name, items in listed.items() if name in WRAPPERS}
    records = records or {
        name: items for name, items in listed.items() if any(needed & _fields(item) for item in items)
    }
    records = records or ({} if is_one else listed)
    of_items = frozenset[str]().union(*(_fields(item) for items in records.values() for item in items))
    own = {field for key, field in known.items() if not check.is_missing(value[key])}
    # Passages next to a question and an answer are not records; several answers to a question are.
    answered = "response" not in own and all(
        "response" in _fields(item) for items in records.values() for item in items
    )
    is_inner = records.keys().isdisjoint(WRAPPERS) or of_items.isdisjoint(TEXT_FIELDS)
    if is_one and (not records or (is_inner and not answered and (len(own) > 1 or own & of_items))):
        return [value]
    if len(records) > 1:
        named = ", ".join(f"{name!r} ({len(items):,})" for name, items in records.items())
        raise DataError.of(Problem("one list of records", f"several: {named}", advice=choose))
    if records:
        shared = {key: each for key, each in value.items() if key in known and known[key] not in of_items}
        return [{**shared, **item} for items in records.values() for item in items]
    columns = {name: [*items] for name, items in value.items() if check.is_list(items)}
    return _of_columns(value, columns, known) if known.keys() & columns else _by_names(value, known)


def _by_names(value: Mapping[str, object], known: Mapping[str, str]) -> list[Mapping[str, object]]:
    """Return the records by their ids, the record in an object, or those whose columns are by the names of rows."""
    parts = {name: item for name, item in value.items() if check.is_record(item)}
    if value and len(parts) == len(value):
        keys = [*next(iter(parts.values()))]
        if known and all([*item] == keys for item in parts.values()):  # pandas
            return [{name: item[key] for name, item in parts.items()} for key in keys]
        if frozenset(FIELDS).intersection(*map(_fields, parts.values())):
            return [item if "id" in item else {"id": name, **item} for name, item in parts.items()]
    if any(map(_fields, parts.values())):
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


def _fields(item: object) -> frozenset[str]:
    """Return the fields of a sample that an object has; a context or a message has none."""
    found = (aliases().field_of(name) for name in (item if check.is_record(item) else ()))
    return frozenset(name for name in found if name in FIELDS)


class _Row(NamedTuple):
    """The values of all other fields in a row, and its only context, in a column."""

    others: tuple[object, ...]
    column: str
    text: str

    def continues(self, row: _Row) -> bool:
        """Return True if this is a further context of another row: all else is equal, or blank as in merged cells."""
        is_blank = all(each is None or each == "" for each in self.others)
        return self.column == row.column and self.text != row.text and (is_blank or self.others == row.others)


def _row(record: Mapping[str, object], planner: Planner, ignored: str = "") -> _Row | None:
    fields = {name: sources for name, sources in planner.plan(record).fields if name != ignored}
    found = fields.pop(_CONTEXTS, ())
    if "user_input" not in fields or len(found) != 1 or len(found[0].columns) != 1:
        return None
    text = record[found[0].columns[0]]
    if not isinstance(text, str) or not text.strip() or text.lstrip()[0] in "[{(":
        return None
    others = tuple(record[source.columns[0]] for source, *_ in fields.values())
    return _Row(others, found[0].columns[0], text)


def awaits(record: Mapping[str, object], planner: Planner) -> bool:
    """Return True if further records may change how one is read: it has fields within columns, or a single context."""
    return _row(record, planner) is not None or bool(inner_columns([record], planner))


def has_rows_of_contexts(records: Iterable[Mapping[str, object]], planner: Planner, ignored: str = "") -> bool:
    """Return True if a question has several adjacent rows, which differ in their only context and a field `ignored`."""
    rows = [_row(record, planner, ignored) for record in records]
    return any(one is not None and other is not None and other.continues(one) for one, other in pairwise(rows))


def joined_rows(
    rows: Iterable[RawRecord | Sample], present: Callable[[Mapping[str, object]], dict[str, object]], planner: Planner
) -> Iterator[RawRecord | Sample]:
    """Yield the records, with the adjacent rows of one question as one record at the place of the first."""
    first: RawRecord | None = None
    last: _Row | None = None
    texts: list[str] = []
    for raw in chain(rows, (None,)):
        is_row = isinstance(raw, RawRecord) and raw.value is not None and not raw.problems
        row = _row(present(raw.value or {}), planner) if is_row and isinstance(raw, RawRecord) else None
        if row is not None and last is not None and row.continues(last):
            texts += [row.text] if len(texts) <= MAX_CONTEXTS else []
            last = last._replace(text=row.text)
            continue
        if first is not None and first.value is not None and last is not None:
            yield first._replace(value={**first.value, last.column: texts})
        first, last, texts = (
            (raw, row, [row.text]) if row is not None and isinstance(raw, RawRecord) else (None, None, [])
        )
        if row is None and raw is not None:
            yield raw
