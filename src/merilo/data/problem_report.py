"""Problems of records as messages: equal ones grouped, with advice on mapping columns with other names."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Final

from merilo.data import check
from merilo.data.aliases import LIST_FIELDS, aliases, fitting, letters
from merilo.data.sample import DOUBT, FIELDS, Columns
from merilo.data.shapes import within

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from merilo.errors import Problem

_NEAR: Final = 0.75
_MAX_SPANS: Final = 4
_MAX_COLUMNS: Final = 200
_MAX_NAMED: Final = 20
_NUMBER: Final = re.compile(r"(?:[._ -]|(?<!\d))\d++$")
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def grouped_messages(problems: Sequence[Problem], *, records: int) -> list[str]:
    """Return one sentence per problem; equal problems of several records are grouped with their places.

    `records`: the number of records read, good and bad; it identifies a problem that all records have.
    """
    alike: dict[Problem, list[Problem]] = {}
    for each in problems:
        alike.setdefault(replace(each, line=None), []).append(each)
    return [
        same[0].message if len(same) == 1 else _of_several(fault, [each.line for each in same], records)
        for fault, same in alike.items()
    ]


def _of_several(fault: Problem, places: Sequence[int | None], records: int) -> str:
    lines = sorted({place for place in places if place is not None})
    if len(lines) < len(places):
        where = f"{len(places)} times"
    elif len(lines) == records:
        where = f"all {records} records"
    else:
        where = f"{fault.unit}s {_spans(lines)}"
    source = where if fault.source is None else f"{fault.source}, {where}"
    return replace(fault, source=source).message


def _spans(lines: Sequence[int]) -> str:
    """Return numbers in rising order as text: `1 to 30`, `1 to 3, 7 and 12 more`."""
    spans: list[list[int]] = []
    for line in lines:
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    shown = ", ".join(f"{low}" if low == high else f"{low} to {high}" for low, high in spans[:_MAX_SPANS])
    more = sum(high - low + 1 for low, high in spans[_MAX_SPANS:])
    return f"{shown} and {more} more" if more else shown


def named_columns(columns: Iterable[str], kinds: Mapping[str, Collection[str]] | None = None) -> str:
    """Return the names of columns for a message, at most 20 of them.

    `kinds`: by column, the fields whose form it has, which say what it holds.
    """
    kinds = kinds or {}
    names = list(islice(columns, _MAX_NAMED + 1))
    shown = ", ".join(f"{check.cut(name)!r}{_kind(kinds.get(name, ()))}" for name in names[:_MAX_NAMED])
    return f"{shown}, ..." if len(names) > _MAX_NAMED else shown


def _kind(forms: Collection[str]) -> str:
    """Return the kind of a value in brackets, by the fields whose form it has; empty for any other."""
    if "retrieved_contexts" in forms and "user_input" not in forms:
        return " (lists of texts)"
    return " (texts)" if "user_input" in forms else ""


def unread_columns(columns: Columns, missing: Collection[str]) -> str:
    """Return a sentence that names the unread columns and the options that map them; empty if all were read."""
    if not columns.kept:
        return ""
    advice = _map_options(columns, missing)
    it = "it" if advice.count("--map") == 1 else "them"
    return f"Unread columns: {named_columns(columns.kept, columns.kept)}.{f' Read {it}: {advice}' if advice else ''}"


def question_advice(columns: Columns) -> str:
    """Return a note for data of which no column was read as the question; empty if none resembles it."""
    advice = _map_options(columns, {"user_input"})
    return f"{DOUBT}none was read as user_input. Read it: {advice}" if "=user_input" in advice else ""


def mapping_advice(columns: Columns, missing: Collection[str]) -> str:
    """Return advice for data without a known column: `--map` options, or their form if no column resembles a field."""
    options = _map_options(columns, missing) or "--map COLUMN=FIELD"
    return f"map columns with {options}"


def _map_options(read: Columns, missing: Collection[str]) -> str:
    """Return `--map` options that can be typed as shown; empty if no column resembles a field.

    Each missing field appears once, for the first column or path that resembles it in name and value and that fills it
    in the first records.
    """
    found: dict[str, str] = {}
    columns = dict(islice(read.kept.items(), _MAX_COLUMNS))
    for column, forms in (*columns.items(), *_paths(read)):
        field, name = _near(column)
        if field is None or field in found or field not in forms or field not in (*missing, "id"):
            continue
        if field == "id" or read.filled is None or field in read.filled({name: field}):
            found[field] = name
    lists = [name for name, forms in columns.items() if _kind(forms) == " (lists of texts)" and not _is_other(name)]
    if "retrieved_contexts" in missing and len(lists) == 1 and lists[0] not in found.values():
        found.setdefault("retrieved_contexts", lists[0])
    if found.keys() <= {"id"}:
        return ""
    return " ".join(f"--map {shlex.quote(f'{column}={field}')}" for field, column in found.items())


def _paths(read: Columns) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the paths to the values within the unread columns of the first record, with the fields that these fit."""
    first: Mapping[str, object] = read.first[0] if read.first else {}
    for path, value in islice(within({name: first[name] for name in first if name in read.kept}), _MAX_COLUMNS):
        yield path, fitting(value)
        for key, each in islice(value.items(), _MAX_NAMED) if check.is_record(value) else ():
            yield f"{path}.{key}", fitting(each)


def _is_other(column: str) -> bool:
    """Return True for a name with a word that makes a passage something else, such as a negative one."""
    return not aliases().words["other"].isdisjoint(letters(word) for word in _WORDS.findall(column))


def _near(column: str) -> tuple[str | None, str]:
    """Return the field that a name may mean, None if no known name is similar, and the name to map.

    The last word that says anything decides: `question_id` is an id, and `question_type` no question.
    """
    words = aliases().words
    base = _NUMBER.sub("", column)
    spelled = [word.lower() for word in _WORDS.findall(base)]
    expected = not words["expected"].isdisjoint(spelled)
    if _is_other(column):
        return None, column
    for word in reversed(spelled):
        if word in words["none"]:
            return None, column
        if word in words["id"]:
            kind = "reference_context_ids" if expected else "retrieved_context_ids"
            is_several = not words["retrieved_contexts"].isdisjoint(spelled) and word.endswith("s")
            return (kind if is_several else "id"), column
        field = next((name for name in FIELDS if word in words.get(name, ())), None)
        field = field or aliases().fields.get(word)
        if field in {"response", "retrieved_contexts"} and expected:
            field = "reference" if field == "response" else "reference_contexts"
        if field is not None:
            return field, base if base != column and field in LIST_FIELDS else column
    fields = {**aliases().fields, **aliases().alone}
    known = {letters(name): field for name, field in fields.items() if field in FIELDS}
    near = get_close_matches(letters(column), known, n=1, cutoff=_NEAR)
    return (known[near[0]] if near else None), column
